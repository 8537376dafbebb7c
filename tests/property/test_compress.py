"""Whatever is said: a compressed request is never larger, says every number, keeps its envelopes, and does not change its mind."""
import json
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.compress import plan, wires
from gateway.compress.filters import builtin
from gateway.wire import WIRES

FILTERS = builtin()
NUMBER = re.compile(r"\d+(?:\.\d+)*")
LINES = ["Compiling demo", "waiting for the queue", "waiting for the queue", "    return total", "def total():", "", "", "", "plain words here.",
         "Nobody asked about the colour of it. It was grey.", "error: no such table", "you must never drop it", "src/app/reader.py:12", "```python",
         "```", "x = 41", "@@ -1,2 +1,2 @@", "-a", "+b", "tests/a.py::test_b PASSED [ 45%]", '{"key": 1}', "trailing   ", "\x1b[32mgreen\x1b[0m", "~~~",
         "On branch main", "`inline`", "[…]", "progress 10%\rprogress 20%", "  (use \"git add <file>...\" to update)", "Grüße 🙂 表"]
RECORDS = json.dumps([{"id": i, "name": f"n{i}", "price": i / 4} for i in range(12)], indent=1)
LONG = "\n".join(f"The reader of table {chr(97 + i)} waits for its worker and says so. A second sentence about nothing." for i in range(9))

WHOLES = [RECORDS, LONG, LONG + "\n\n" + LONG, LONG + "\n\n" + RECORDS, '{"items": ' + RECORDS + "}"]
CALLS = [("Read", {"file_path": "a.py"}), ("Read", {"file_path": "b.py"}), ("Write", {"file_path": "a.py", "content": LONG}),
         ("Bash", {"command": "git status"}), ("Bash", {"command": "pytest -q"}), ("Bash", {"command": "./run"}),
         ("Bash", {"command": "cat a.py"}), ("list_items", {})]


def text(dice):
    kind = dice.randrange(4)
    if kind == 0:
        return dice.choice(WHOLES)
    if kind == 1:
        return "\n".join(dice.choices(LINES[:14], k=dice.randint(1, 6)) * 30)
    return "\n".join([*dice.choices(LINES, k=dice.randint(1, 40)), "."])


def rounds(dice, least=1):
    """Question, calls with their results, answer; a number of them."""
    return [(text(dice), [(dice.choice(CALLS), text(dice)) for _ in range(dice.randrange(4))], text(dice))
            for _ in range(dice.randint(least, 16))]


# A dialogue from one number: hundreds of lines drawn one by one would take longer than what is tested.
talks = st.integers(0, 1 << 32).map(lambda seed: rounds(Random(seed)))
long_talks = st.integers(0, 1 << 32).map(lambda seed: rounds(Random(seed), 8))


def chat(rounds):
    out = [{"role": "system", "content": LONG}]
    for question, called, answer in rounds:
        out.append({"role": "user", "content": question})
        for (tool, arguments), result in called:
            id_ = f"call_{len(out)}"
            out.append({"role": "assistant", "content": None, "tool_calls": [
                {"id": id_, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]})
            out.append({"role": "tool", "tool_call_id": id_, "content": result})
        out.append({"role": "assistant", "content": answer})
    return {"model": "m", "messages": [*out, {"role": "user", "content": "And now, reader?"}], "temperature": 1.0}


def anthropic(rounds):
    out = []
    for question, called, answer in rounds:
        out.append({"role": "user", "content": question})
        for (tool, arguments), result in called:
            id_ = f"toolu_{len(out)}"
            out.append({"role": "assistant", "content": [{"type": "tool_use", "id": id_, "name": tool, "input": arguments}]})
            out.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": result}]})
        out.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
    return {"model": "m", "max_tokens": 5, "system": LONG, "messages": [*out, {"role": "user", "content": "And now, reader?"}]}


def gemini(rounds):
    out = []
    for question, called, answer in rounds:
        out.append({"role": "user", "parts": [{"text": question}]})
        for (tool, arguments), result in called:
            out.append({"role": "model", "parts": [{"functionCall": {"name": tool, "args": arguments}}]})
            out.append({"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"output": result}}}]})
        out.append({"role": "model", "parts": [{"text": answer}]})
    return {"systemInstruction": {"parts": [{"text": LONG}]}, "contents": [*out, {"role": "user", "parts": [{"text": "And now, reader?"}]}]}


def responses(rounds):
    out = []
    for question, called, answer in rounds:
        out.append({"role": "user", "content": question})
        for (tool, arguments), result in called:
            id_ = f"call_{len(out)}"
            out.append({"type": "function_call", "call_id": id_, "name": tool, "arguments": json.dumps(arguments)})
            out.append({"type": "function_call_output", "call_id": id_, "output": result})
        out.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]})
    return {"model": "m", "instructions": LONG, "input": [*out, {"role": "user", "content": "And now, reader?"}]}


WIRE = {"openai-chat": chat, "anthropic": anthropic, "gemini": gemini, "openai-responses": responses}
BUDGETS = (0, 600)


def made(wire, raw, mode, target=0):
    talk = wires.read(wire, raw)
    talk.filters = FILTERS
    outcome = plan.compress(talk, plan.Aim(mode, len(raw) // 4, target))
    assert plan.FAILED not in {reason for stage in outcome.stages for reason in stage.discarded}
    return wires.write(raw, outcome.changed) if outcome.changed else raw


def hollow(value):
    """The same without its texts."""
    if isinstance(value, dict):
        return {key: hollow(item) if key not in ("content", "text", "output") or not isinstance(item, str) else "" for key, item in value.items()}
    return [hollow(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("target", BUDGETS)
@pytest.mark.parametrize("mode", plan.MODES[1:])
@given(talk=talks, wire=st.sampled_from(sorted(WIRE)))
@settings(max_examples=25, deadline=None)
def test_it_is_smaller_says_every_number_and_keeps_its_envelopes(mode, target, talk, wire):
    raw = json.dumps(WIRE[wire](talk)).encode()
    out = made(wire, raw, mode, target)
    before, after = json.loads(raw), json.loads(out)
    assert len(out) <= len(raw)
    assert hollow(before) == hollow(after)
    WIRES[wire].parse_request(out, "chat", "m", False)
    said = [" ".join(segment.text for segment in wires.read(wire, body).segments) for body in (raw, out)]
    plain = re.sub(r"\x1b\[\d+m|\d+%|tests/a.py::test_b PASSED", " ", said[0])                # colours and progress are nobody's facts
    assert set(NUMBER.findall(plain)) <= set(NUMBER.findall(said[1]))
    talked = [next(iter(body[key] for key in ("messages", "contents", "input") if key in body)) for body in (before, after)]
    assert talked[0][-1] == talked[1][-1]
    assert [before.get(key) for key in ("system", "instructions", "systemInstruction")] == \
        [after.get(key) for key in ("system", "instructions", "systemInstruction")]


@pytest.mark.parametrize("mode", plan.MODES[1:])
@given(talk=talks, wire=st.sampled_from(sorted(WIRE)))
@settings(max_examples=25, deadline=None)
def test_a_second_time_changes_nothing(mode, talk, wire):
    once = made(wire, json.dumps(WIRE[wire](talk)).encode(), mode)
    assert made(wire, once, mode) == once


@given(talk=talks)
@settings(max_examples=25, deadline=None)
def test_a_growing_conversation_keeps_its_beginning_to_the_byte(talk):
    whole = chat(talk)["messages"]
    before = []
    for end in (at for at, message in enumerate(whole, 1) if message["role"] in ("user", "tool")):
        after = json.loads(made("openai-chat", json.dumps({"model": "m", "messages": whole[:end]}).encode(), "lossless"))["messages"]
        assert after[:len(before)] == before
        before = after


@given(talk=long_talks)
@settings(max_examples=15, deadline=None)
def test_what_looks_back_changes_the_beginning_in_steps_only(talk):
    whole = chat(talk)["messages"]
    before, changes, requests = [], 0, 0
    for end in (at for at, message in enumerate(whole, 1) if message["role"] in ("user", "tool")):
        after = json.loads(made("openai-chat", json.dumps({"model": "m", "messages": whole[:end]}).encode(), "standard"))["messages"]
        changes += after[:len(before)] != before
        before, requests = after, requests + 1
    assert changes <= len(whole) // 8
