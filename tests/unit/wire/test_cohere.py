"""Cohere's v2 chat: how a dialogue is said, what answers and streams hold."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire import WIRES
from gateway.wire.base import Outbound

COHERE, CHAT = WIRES["cohere"], WIRES["openai-chat"]
PIXEL = "iVBORw0KGgoAAAANSUhEUg=="


def built(body, **to):
    request = CHAT.parse_request(json.dumps({"model": "m", **body}).encode())
    request.conversation = CHAT.open(request)
    return json.loads(COHERE.build_request(request, Outbound(model="command-x", provider="p", stream=True, **to)))


def user(content):
    return {"role": "user", "content": content}


def frames(*docs):
    return b"".join(b"event: %b\ndata: %b\n\n" % (doc["type"].encode(), json.dumps(doc).encode()) for doc in docs) + b"data: [DONE]\n\n"


def said(kind, index=0, **message):
    return {"type": kind, "index": index, "delta": {"message": message}}


END = {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {
    "billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": {"input_tokens": 30.0, "output_tokens": 4}, "cached_tokens": 16}}}
STREAM = frames(
    {"type": "message-start", "id": "x1", "delta": {"message": {"role": "assistant"}}},
    said("content-start", content={"type": "thinking", "thinking": ""}), said("content-delta", content={"thinking": "Hm"}),
    said("content-delta", content={"text": "Hi"}), said("tool-plan-delta", tool_plan="I look."),
    said("tool-call-start", 1, tool_calls={"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}),
    said("tool-call-delta", 1, tool_calls={"function": {"arguments": '{"a":1}'}}), {"type": "tool-call-end", "index": 1},
    said("something-new"), END)


def decoded(data, size=1 << 20):
    decoder, out = COHERE.decoder(False, "", 1 << 20), []
    for at in range(0, len(data), size):
        out += decoder.feed(data[at:at + size])
    return out + decoder.close()


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_a_stream_says_the_same_whatever_its_cut(size):
    assert decoded(STREAM, size) == [
        ev.Meta("x1"), ev.Reasoning("Hm"), ev.Text("Hi"), ev.Reasoning("I look."), ev.ToolDelta(1, "c", "f", ""),
        ev.ToolDelta(1, arguments='{"a":1}'), ev.Finish("tool_calls"),
        ev.Usage(input=30, output=4, cached=16, total=34, native=END["delta"]["usage"]), ev.End()]


def test_a_stream_that_closes_after_its_reason_is_whole_and_one_before_is_not():
    assert isinstance(decoded(STREAM.removesuffix(b"data: [DONE]\n\n"))[-1], ev.End)
    assert not any(isinstance(one, (ev.End, ev.Finish)) for one in decoded(STREAM[:400]))


@pytest.mark.parametrize(("reason", "status"), [("ERROR", 500), ("TIMEOUT", 504)])
def test_an_end_that_is_none_is_a_failure(reason, status):
    fault = decoded(frames({"type": "message-end", "delta": {"finish_reason": reason, "error": "went wrong"}}))[0]
    assert isinstance(fault, ev.Fault) and (fault.error.upstream_status, fault.error.message) == (status, "went wrong")


def test_an_error_in_words_is_a_failure():
    assert isinstance(decoded(b'data: {"message":"invalid request"}\n\n')[0], ev.Fault)


def test_a_whole_answer():
    body = {"id": "x", "finish_reason": "COMPLETE", "message": {"role": "assistant", "tool_plan": "plan", "content": [
        {"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}],
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}, "usage": {"tokens": {"input_tokens": 1, "output_tokens": 2}}}
    assert COHERE.parse_reply(json.dumps(body).encode(), False) == [
        ev.Meta("x"), ev.Reasoning("plan"), ev.Reasoning("Hm"), ev.Text("Hi"), ev.ToolDelta(0, "c", "f", "{}"), ev.Finish("stop"),
        ev.Usage(input=1, output=2, total=3, native=body["usage"]), ev.End()]


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"{}"])
def test_what_is_no_answer_is_refused(raw):
    with pytest.raises(GatewayError) as told:
        COHERE.parse_reply(raw, False)
    assert told.value.kind == "bad_reply"


def test_a_dialogue_with_a_tool_loop():
    body = built({"max_tokens": 50, "temperature": 1.5, "top_p": 1, "stop": ["x"], "seed": 3, "messages": [
        {"role": "developer", "content": "Be brief."}, user([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}]),
        {"role": "assistant", "content": "Well", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}},
                  {"type": "function", "function": {"name": "g"}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}})
    assert body == {
        "model": "command-x", "stream": True, "max_tokens": 50, "temperature": 1, "p": 0.99, "stop_sequences": ["x"], "seed": 3,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}]},
            {"role": "assistant", "content": "Well", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": "REQUIRED"}


def test_a_schema_and_thinking_have_fields_of_their_own():
    body = built({"messages": [user("a")], "reasoning_effort": "low",
                  "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}})
    assert body["response_format"] == {"type": "json_object", "json_schema": {"type": "object"}}
    assert body["thinking"] == {"type": "enabled", "token_budget": 1024}


def test_what_the_target_refuses_is_left_out():
    assert "seed" not in built({"messages": [user("a")], "seed": 1}, drop_params=frozenset({"seed"}))


def test_pictures_carry_the_type_that_they_have():
    body = built({"messages": [user([{"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PIXEL}"}}])]})
    assert body["messages"][0]["content"][0]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"


def test_more_than_one_answer_cannot_be_asked_for():
    with pytest.raises(GatewayError, match="one answer"):
        built({"messages": [user("a")], "n": 2})
