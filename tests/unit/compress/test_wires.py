"""Texts are found on every wire with the calls they belong to, and written back while all else keeps its bytes."""
import json

import pytest

from gateway.compress import wires
from gateway.compress.filters import builtin
from gateway.compress.plan import Aim, compress

RESULT = "waiting for the queue to become ready\n" * 12
ARGUMENTS = '{"command":"./deploy"}'
BODIES = {
    "openai-chat": {"messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "bash", "arguments": ARGUMENTS}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": RESULT}]}]},
    "anthropic": {"system": [{"type": "text", "text": "Be good."}], "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm   \n\n\n\n", "signature": "s"}, {"type": "tool_use", "id": "c", "name": "bash", "input": json.loads(ARGUMENTS)}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": RESULT}]}]},
    "openai-responses": {"instructions": "Be good.", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Go."}]}, {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": ARGUMENTS}, {"type": "function_call_output", "call_id": "c", "output": RESULT}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Go."}]}, {"role": "model", "parts": [
        {"functionCall": {"name": "bash", "args": json.loads(ARGUMENTS)}, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": RESULT, "code": 0}}}]}]},
    "ollama": {"messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "bash", "arguments": json.loads(ARGUMENTS)}}]}, {"role": "tool", "tool_name": "bash", "content": RESULT}]},
}
TAIL = b',"seed":123456789012345678901234567890,"ratio":1e5,"note":"\\u00e9\\/"}'


@pytest.mark.parametrize("wire", BODIES)
def test_a_result_is_known_by_its_call_and_all_else_keeps_its_bytes(wire):
    raw = json.dumps(BODIES[wire], separators=(",", ":")).encode()[:-1] + TAIL
    talk = wires.read(wire, raw)
    result = talk.segments[-1]
    assert (result.role, result.tool, result.arguments, result.text) == ("tool", "bash", ARGUMENTS, RESULT)
    talk.filters = builtin()
    changed = compress(talk, Aim("standard")).changed
    assert changed == [result]
    assert wires.write(raw, changed) == raw.replace(json.dumps(RESULT).encode(), json.dumps(result.text).encode())


def test_the_first_task_the_last_turn_and_a_started_answer_are_locked():
    talk = wires.read("openai-chat", json.dumps({"messages": [{"role": role, "content": "x"} for role in (
        "user", "assistant", "user", "assistant", "user", "assistant")]}).encode())
    assert [segment.locked for segment in talk.segments] == [True, False, False, False, True, True]
    assert [segment.turn for segment in talk.segments] == [0, 0, 1, 1, 2, 2] and talk.turns == 3


def test_what_lies_before_a_cache_marker_is_pinned():
    def pins(*marked, **more):
        return [segment.pinned for segment in wires.read("anthropic", json.dumps({**more, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x", **({"cache_control": {"type": "ephemeral"}} if i in marked else {})}]}
            for i in range(3)]}).encode()).segments]
    assert pins() == [False] * 3
    assert pins(0, 1) == [True, True, False]
    assert pins(cache_control={"type": "ephemeral"}) == [True] * 3
    assert pins(system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]) == [True, False, False, False]


def test_what_is_signed_cited_or_an_error_is_no_text():
    content = [{"type": "text", "text": "cited", "citations": [{}]}, {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "failed"}]
    assert wires.read("anthropic", json.dumps({"messages": [{"role": "assistant", "content": content}]}).encode()).segments == []
    parts = [{"text": "a", "thought": True}, {"text": "b", "thoughtSignature": "s"},
             {"functionResponse": {"name": "f", "response": {"error": "no"}}}]
    assert wires.read("gemini", json.dumps({"contents": [{"role": "model", "parts": parts}]}).encode()).segments == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b'{"messages": 1}', b'{"messages": [1, null, {"content": 2}, {"tool_calls": [{}]}]}', b"{"])
@pytest.mark.parametrize("wire", [*BODIES, "cohere"])
def test_nonsense_holds_no_texts(wire, raw):
    talk = wires.read(wire, raw)
    assert talk is None or not talk.segments


def test_a_text_that_is_too_long_to_be_looked_at_is_locked():
    talk = wires.read("openai-chat", json.dumps({"messages": [{"role": "user", "content": "x"}, {"role": "tool", "content": "x" * 131_073},
                                                              {"role": "user", "content": "x"}]}).encode())
    assert talk.segments[1].locked


def test_a_prompt_is_the_last_turn():
    talk = wires.read("openai-responses", b'{"input": "Go."}')
    assert [(segment.text, segment.locked) for segment in talk.segments] == [("Go.", True)]
