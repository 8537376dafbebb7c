"""A dialogue that is too long loses what is old, never what holds it together."""
import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire import history

WORDS = "word " * 200                            # a thousand characters


def chat(turns):
    """Turns of (user's words, [(call id, tool's answer)], the model's words)."""
    items = [{"role": "system", "content": "be kind"}]
    for said, calls, answer in turns:
        items.append({"role": "user", "content": said})
        for id_, result in calls:
            items.append({"role": "assistant", "content": None, "reasoning_content": "hm " * 50,
                          "tool_calls": [{"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}}]})
            items.append({"role": "tool", "tool_call_id": id_, "content": result})
        if answer:
            items.append({"role": "assistant", "content": answer})
    return {"messages": items}


def anthropic(turns):
    items = []
    for said, calls, answer in turns:
        items.append({"role": "user", "content": [{"type": "text", "text": said}]})
        for id_, result in calls:
            items.append({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm " * 50, "signature": "s"},
                                                           {"type": "tool_use", "id": id_, "name": "f", "input": {}}]})
            items.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": result}]})
        if answer:
            items.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
    return {"system": "be kind", "messages": items}


def responses(turns):
    items = []
    for said, calls, answer in turns:
        items.append({"role": "user", "content": [{"type": "input_text", "text": said}]})
        for id_, result in calls:
            items.append({"type": "reasoning", "id": "rs" + id_, "summary": [{"type": "summary_text", "text": "hm " * 50}]})
            items.append({"type": "function_call", "id": "fc" + id_, "call_id": id_, "name": "f", "arguments": "{}"})
            items.append({"type": "function_call_output", "call_id": id_, "output": result})
        if answer:
            items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]})
    return {"instructions": "be kind", "input": items}


def gemini(turns):
    items = []
    for said, calls, answer in turns:
        items.append({"role": "user", "parts": [{"text": said}]})
        for id_, result in calls:
            items.append({"role": "model", "parts": [{"text": "hm " * 50, "thought": True},
                                                     {"functionCall": {"id": id_, "name": "f", "args": {}}}]})
            items.append({"role": "user", "parts": [{"functionResponse": {"id": id_, "name": "f", "response": {"output": result}}}]})
        if answer:
            items.append({"role": "model", "parts": [{"text": answer}]})
    return {"systemInstruction": {"parts": [{"text": "be kind"}]}, "contents": items}


WIRES = {"openai-chat": chat, "anthropic": anthropic, "openai-responses": responses, "gemini": gemini, "ollama": chat}
TALK = [("one", [("a", WORDS * 9), ("b", "short")], "first"), ("two " + WORDS, [], "second"), ("three", [("c", "fine")], "")]


def cut(wire, turns, excess):
    doc = WIRES[wire](turns)
    return doc, history.cut(doc, wire, excess)


def said(doc):
    return json.dumps(doc)


def ids(doc, call):
    """Ids of calls (or of results) in whatever format."""
    found = []

    def walk(value):
        if isinstance(value, list):
            for one in value:
                walk(one)
        elif isinstance(value, dict):
            if call:
                found.extend(one["id"] for one in value.get("tool_calls") or ())
                found.extend([value["id"]] if value.get("type") == "tool_use" else [])
                found.extend([value["call_id"]] if value.get("type") == "function_call" else [])
                found.extend([value["functionCall"]["id"]] if "functionCall" in value else [])
            else:
                found.extend([value["tool_call_id"]] if "tool_call_id" in value else [])
                found.extend([value["tool_use_id"]] if "tool_use_id" in value else [])
                found.extend([value["call_id"]] if value.get("type") == "function_call_output" else [])
                found.extend([value["functionResponse"]["id"]] if "functionResponse" in value else [])
            for one in value.values():
                walk(one)
    walk(doc)
    return found


@pytest.mark.parametrize("wire", WIRES)
def test_long_results_of_tools_go_first(wire):
    doc, found = cut(wire, TALK, 5_000)
    assert (found.results, found.thoughts, found.messages) == (1, 0, 0)
    assert found.missing <= 0
    assert "characters left out" in said(doc)
    assert "first" in said(doc)


@pytest.mark.parametrize("wire", WIRES)
def test_then_thinking_of_turns_that_are_over(wire):
    doc, found = cut(wire, TALK, 7_380)
    assert (found.results, found.messages) == (1, 0)
    assert found.thoughts == 2
    assert said(doc).count("hm " * 50) == 1, "the thinking of the last turn stays"


@pytest.mark.parametrize("wire", WIRES)
def test_then_the_oldest_turns_with_a_mark(wire):
    doc, found = cut(wire, TALK, 7_600)
    assert found.messages and found.missing <= 0
    told = said(doc)
    assert "first" not in told and "second" in told and "three" in told and "be kind" in told
    assert told.index("Earlier messages of this conversation were left out here") < told.index("two word")


@pytest.mark.parametrize("wire", WIRES)
def test_of_one_long_task_the_oldest_steps_are_left_out(wire):
    doc, found = cut(wire, [("do it", [(f"c{n}", f"result {n} " + WORDS) for n in range(9)], "")], 5_000)
    told = said(doc)
    assert found.missing <= 0 and 0 < found.messages < 18
    assert "do it" in told and "result 8" in told and "result 0" not in told
    assert "Earlier steps" in told
    assert ids(doc, True) == ids(doc, False)


@pytest.mark.parametrize("wire", WIRES)
def test_what_cannot_fit_is_said_so(wire):
    _, found = cut(wire, [("word " * 9_000, [], "")], 10_000)
    assert found.missing > 0 and not found.messages


@pytest.mark.parametrize("wire", WIRES)
def test_a_result_whose_call_is_left_out_goes_with_it(wire):
    """A user who speaks between a call and its result."""
    doc = WIRES[wire](TALK[:2] + [("three", [], "")])
    items = doc[history.LISTS[wire]]
    late = next(item for item in items if history.kind(item) == "result")
    items.remove(late)
    items.append(late)
    history.cut(doc, wire, 9_000)
    assert not set(ids(doc, False)) - set(ids(doc, True))


turn = st.tuples(st.text(min_size=1, max_size=400), st.lists(st.text(max_size=4_000), max_size=3), st.text(max_size=300))


@settings(max_examples=60, deadline=None)
@given(wire=st.sampled_from(sorted(WIRES)), turns=st.lists(turn, min_size=1, max_size=6), excess=st.integers(1, 20_000))
def test_calls_keep_their_results_and_the_last_turn_of_the_user_its_words(wire, turns, excess):
    talk = [(said, [(f"{n}-{i}", result) for i, result in enumerate(results)], answer) for n, (said, results, answer) in enumerate(turns)]
    doc = WIRES[wire](talk)
    before = copy.deepcopy(doc)
    found = history.cut(doc, wire, excess)
    assert ids(doc, True) == ids(doc, False)
    field = history.LISTS[wire]
    newest = next(item for item in reversed(doc[field]) if history.kind(item) == "user")
    assert talk[-1][0] in json.loads(json.dumps(newest)).get("content", newest.get("parts")) if isinstance(newest.get("content"), str) \
        else any(part.get("text") == talk[-1][0] for part in newest.get("content", newest.get("parts")))
    assert {k: v for k, v in doc.items() if k != field} == {k: v for k, v in before.items() if k != field}
    assert history.size(doc) <= history.size(before) + 200
    if found.missing <= 0:
        assert history.size(before) - history.size(doc) >= min(excess, 1) - 200
