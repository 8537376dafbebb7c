"""Bedrock's Converse: how a dialogue is said, what answers and binary streams hold."""
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire import WIRES
from gateway.wire.base import Outbound
from gateway.wire.bedrock_converse.eventstream import Splitter, message
from gateway.wire.bedrock_converse.schema import call_id

BEDROCK, CHAT = WIRES["bedrock-converse"], WIRES["openai-chat"]
PIXEL = "iVBORw0KGgoAAAANSUhEUg=="


def built(body, model="amazon.nova-pro-v1:0", **to):
    request = CHAT.parse_request(json.dumps({"model": "m", **body}).encode())
    request.conversation = CHAT.open(request)
    return json.loads(BEDROCK.build_request(request, Outbound(model=model, provider="p", stream=True, **to)))


def user(content):
    return {"role": "user", "content": content}


def event(name, **payload):
    return message({":message-type": "event", ":event-type": name, ":content-type": "application/json"}, json.dumps(payload).encode())


def decoded(data, cuts=()):
    decoder, out, at = BEDROCK.decoder(False, "", 1 << 20), [], 0
    for cut in (*cuts, len(data)):
        out += decoder.feed(data[at:cut])
        at = cut
    return out + decoder.close()


STREAM = (
    event("messageStart", role="assistant")
    + event("contentBlockDelta", contentBlockIndex=0, delta={"reasoningContent": {"text": "Hm"}})
    + event("contentBlockDelta", contentBlockIndex=0, delta={"reasoningContent": {"signature": "sig"}})
    + event("contentBlockDelta", contentBlockIndex=1, delta={"text": "Grüße"})
    + event("contentBlockStart", contentBlockIndex=2, start={"toolUse": {"toolUseId": "t1", "name": "f"}})
    + event("contentBlockDelta", contentBlockIndex=2, delta={"toolUse": {"input": '{"a":'}})
    + event("contentBlockDelta", contentBlockIndex=2, delta={"toolUse": {"input": "1}"}})
    + event("contentBlockStop", contentBlockIndex=2)
    + event("messageStop", stopReason="tool_use")
    + event("metadata", usage={"inputTokens": 5, "outputTokens": 7, "totalTokens": 20, "cacheReadInputTokens": 8}))
EVENTS = [
    ev.Meta(), ev.Reasoning("Hm"), ev.Reasoning("", None, 0, "sig"), ev.Text("Grüße"), ev.ToolDelta(2, "t1", "f"),
    ev.ToolDelta(2, arguments='{"a":'), ev.ToolDelta(2, arguments="1}"), ev.Finish("tool_calls"),
    ev.Usage(input=13, output=7, cached=8, total=20,
             native={"inputTokens": 5, "outputTokens": 7, "totalTokens": 20, "cacheReadInputTokens": 8}), ev.End()]


# ---------------------------------------------------------------- framing
def test_a_message_comes_back_as_it_was_written():
    assert Splitter(100).feed(message({"a": "b", ":c": ""}, b"payload")) == [({"a": "b", ":c": ""}, b"payload")]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cut_of_the_bytes_gives_the_same_events(cuts):
    assert decoded(STREAM, sorted(cuts)) == EVENTS


def test_byte_by_byte():
    assert decoded(STREAM, range(1, len(STREAM))) == EVENTS


def test_one_wrong_bit_anywhere_is_noticed():
    chance = random.Random(3)
    for _ in range(100):
        data = bytearray(STREAM)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            assert decoded(bytes(data)) != EVENTS
        except GatewayError as error:
            assert error.kind == "bad_reply"


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused_with_our_own_error_or_waits_for_more(data):
    try:
        decoded(data)
    except GatewayError as error:
        assert error.kind == "bad_reply"


def test_a_message_is_bounded_before_it_is_there():
    with pytest.raises(GatewayError, match="more than 100 bytes"):
        Splitter(100).feed(message({}, b"x" * 200)[:12])


def test_headers_of_other_types_are_passed_over():
    import struct
    import zlib
    headers = b"\x01a\x00" + b"\x01b\x04\x00\x00\x00\x07" + b"\x01c\x06\x00\x02xy" + b"\x01d\x09" + bytes(16) + b"\x01e\x07\x00\x01z"
    head = struct.pack(">II", len(headers) + 16, len(headers))
    head += struct.pack(">I", zlib.crc32(head)) + headers
    assert Splitter(100).feed(head + struct.pack(">I", zlib.crc32(head))) == [({"e": "z"}, b"")]


# ---------------------------------------------------------------- streams and answers
def test_the_counts_may_come_before_the_reason():
    data = event("metadata", usage={"inputTokens": 1, "outputTokens": 1}) + event("messageStop", stopReason="end_turn")
    assert [type(one) for one in decoded(data)] == [ev.Meta, ev.Usage, ev.Finish, ev.End]


def test_a_stream_without_its_reason_has_no_end():
    assert not any(isinstance(one, (ev.End, ev.Finish)) for one in decoded(STREAM[:-400]))


@pytest.mark.parametrize(("headers", "status", "words"), [
    ({":message-type": "exception", ":exception-type": "throttlingException"}, 429, "Slow down"),
    ({":message-type": "exception", ":exception-type": "validationException"}, 400, "Slow down"),
    ({":message-type": "error", ":error-code": "InternalServerException", ":error-message": "Oops"}, 500, "Oops"),
])
def test_a_failure_inside_of_a_stream_is_one(headers, status, words):
    fault = decoded(message(headers, b'{"message":"Slow down"}'))[-1]
    assert isinstance(fault, ev.Fault) and (fault.error.upstream_status, fault.error.message) == (status, words)


def test_a_malformed_output_is_a_failure():
    assert isinstance(decoded(event("messageStop", stopReason="malformed_tool_use"))[1], ev.Fault)


def test_tools_that_the_service_runs_are_no_calls():
    data = event("contentBlockStart", contentBlockIndex=0, start={"toolUse": {"toolUseId": "x", "name": "n", "type": "server_tool_use"}}) \
        + event("contentBlockDelta", contentBlockIndex=0, delta={"toolUse": {"input": "{}"}})
    assert not any(isinstance(one, ev.ToolDelta) for one in decoded(data))


def test_a_whole_answer():
    body = {"output": {"message": {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "s"}}}, {"text": "Hi"},
        {"citationsContent": {"content": [{"text": " there"}], "citations": [1]}}, {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}}]}},
        "stopReason": "tool_use", "usage": {"inputTokens": 1, "outputTokens": 2}}
    found = BEDROCK.parse_reply(json.dumps(body).encode(), False)
    assert [one for one in found if not isinstance(one, (ev.Usage, ev.Opaque))] == [
        ev.Meta(), ev.Reasoning("Hm", None, 0, "s"), ev.Text("Hi"), ev.Text(" there"),
        ev.ToolDelta(3, "t", "f", '{"a":1}', whole=True), ev.Finish("tool_calls"), ev.End()]


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"{}", b'{"output":{}}'])
def test_what_is_no_answer_is_refused(raw):
    with pytest.raises(GatewayError) as told:
        BEDROCK.parse_reply(raw, False)
    assert told.value.kind == "bad_reply"


# ---------------------------------------------------------------- requests
def test_a_dialogue_with_a_tool_loop():
    body = built({"max_tokens": 50, "temperature": 1.5, "stop": "x", "messages": [
        {"role": "system", "content": "Be brief."}, user("Hi"),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"}, user("And?")],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": "required"})
    assert body == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Hi"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "42"}]}}, {"text": "And?"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object", "properties": {}}}}}],
                       "toolChoice": {"any": {}}},
        "inferenceConfig": {"maxTokens": 50, "temperature": 1, "stopSequences": ["x"]}}


def test_instructions_alone_become_what_the_user_says():
    assert built({"messages": [{"role": "system", "content": "Hi"}]}) == {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def test_pictures_go_as_bytes_with_the_type_that_they_have():
    body = built({"messages": [user([{"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PIXEL}"}}])]})
    assert body["messages"][0]["content"] == [{"image": {"format": "png", "source": {"bytes": PIXEL}}}]


def test_a_picture_that_is_elsewhere_is_named():
    with pytest.raises(GatewayError, match=r"messages\.0\.content\.0") as told:
        built({"messages": [user([{"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}])]})
    assert told.value.kind == "unsupported"


def test_calls_without_an_answer_get_one_and_ids_are_short():
    long = "call_" + "x" * 100
    body = built({"messages": [user("a"), {"role": "assistant", "tool_calls": [
        {"id": long, "type": "function", "function": {"name": "f", "arguments": ""}}]}, user("b")]})
    use, result = body["messages"][1]["content"][0]["toolUse"], body["messages"][2]["content"][0]["toolResult"]
    assert use["toolUseId"] == result["toolUseId"] == call_id(long) and len(use["toolUseId"]) <= 64
    assert result["status"] == "error"


def test_claude_thinks_in_its_own_words():
    body = built({"messages": [user("a")], "reasoning_effort": "low", "temperature": 0.5}, model="us.anthropic.claude-sonnet-4-5-v1:0")
    assert body["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
    assert "temperature" not in body["inferenceConfig"]
    assert body["inferenceConfig"]["maxTokens"] > body["additionalModelRequestFields"]["thinking"]["budget_tokens"]


def test_a_schema_is_an_instruction_or_a_setting():
    wanted = {"messages": [user("a")], "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}}
    assert "JSON Schema" in built(wanted)["system"][0]["text"]
    told = built(wanted, flags=frozenset({"structured_outputs"}))
    assert told["outputConfig"]["textFormat"]["structure"]["jsonSchema"] == {"name": "n", "schema": '{"type":"object"}'}
    assert "system" not in told


def test_more_than_one_answer_cannot_be_asked_for():
    with pytest.raises(GatewayError, match="one answer"):
        built({"messages": [user("a")], "n": 2})


def test_the_model_is_in_the_path():
    to = Outbound(model="us.anthropic.claude-x-v1:0", provider="p", stream=True)
    assert BEDROCK.upstream_path(None, to) == "/model/us.anthropic.claude-x-v1%3A0/converse-stream"


def test_no_client_speaks_it():
    with pytest.raises(GatewayError, match="No client"):
        BEDROCK.parse_request(b"{}")
