"""Whole Messages answers and errors, read and written."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.wire.anthropic import ANTHROPIC, build_count

from .anthropic_turns import blocks, decode, ending, judged, opening, read, shown, start, stop, text_block

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-up", "content": [{"type": "text", "text": "d"}],
           "stop_reason": "end_turn", "stop_sequence": None,
           "usage": {"input_tokens": 25, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 75, "output_tokens": 5}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}}
SEARCH = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}},
          {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]}]
CITED = {"type": "text", "text": "So.", "citations": [{"type": "web_search_result_location", "url": "u"}]}


def whole(same=True, **fields) -> list[ev.Event]:
    return judged(ANTHROPIC.parse_reply(json.dumps(MESSAGE | fields).encode(), same), stream=False, tools={"f": None})


def answer(events, raw=None, same=True) -> dict:
    return json.loads(ANTHROPIC.build_reply(fold(events), shown(same), raw))


# ---------------------------------------------------------------- upstream's answer
def test_an_answer_is_the_events_of_its_turn():
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
               {"type": "text", "text": "t"}, CALL]
    events = ANTHROPIC.parse_reply(json.dumps(MESSAGE | {"content": content, "stop_reason": "tool_use"}).encode(), False)
    assert [e for e in events if type(e) is not ev.Opaque] == [
        ev.Meta("msg_1", "m-up"), ev.Reasoning("hm", signature="s"), ev.Reasoning("", redacted="d"), ev.Text("t"),
        ev.ToolDelta(3, "toolu_1", "f", '{"a":1}'), ev.Finish("tool_calls"),
        ev.Usage(input=110, output=5, cached=75, cache_write=10, total=115, native=MESSAGE["usage"]), ev.End()]


@pytest.mark.parametrize("raw", [b"<html>", b"[]", b'{"content', b'{"choices":[]}', b"{}"])
def test_what_is_no_message_is_a_bad_reply(raw):
    with pytest.raises(GatewayError) as caught:
        ANTHROPIC.parse_reply(raw, False)
    assert caught.value.kind == "bad_reply"


def test_an_error_under_200_is_a_failure():
    (fault,) = ANTHROPIC.parse_reply(b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}', False)
    assert (fault.error.kind, fault.error.upstream_status) == ("in_band", 429)


# ---------------------------------------------------------------- the client's answer
def test_an_untouched_answer_goes_back_byte_for_byte():
    raw = json.dumps(MESSAGE | {"vendor": {"x": 1.50}, "content": [*SEARCH, CITED, CALL], "stop_reason": "tool_use"}, indent=1).encode()
    events = judged(ANTHROPIC.parse_reply(raw, True), stream=False, tools={"f": None})
    assert ANTHROPIC.build_reply(fold(events), shown(), raw) == raw


def test_the_shown_model_is_spliced_in():
    raw = json.dumps(MESSAGE | {"model": "other"}, indent=1).encode()
    events = judged(ANTHROPIC.parse_reply(raw, True), stream=False)
    assert ANTHROPIC.build_reply(fold(events), shown(), raw) == raw.replace(b'"other"', b'"m-up"')


def test_what_has_to_change_changes_and_nothing_else():
    raw = json.dumps(MESSAGE | {"vendor": 1, "content": [{"type": "text", "text": "t", "x": 1}, {**CALL, "input": None}]}).encode()
    out = answer(judged(ANTHROPIC.parse_reply(raw, True), stream=False, tools={"f": None}), raw)
    assert out["content"] == [{"type": "text", "text": "t", "x": 1}, {**CALL, "input": {}}]
    assert (out["stop_reason"], out["vendor"], out["usage"]) == ("tool_use", 1, MESSAGE["usage"])


def test_a_stream_folded_for_a_client_that_does_not_stream():
    data = opening() + start(0, type="thinking", thinking="", signature="") \
        + b'data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}\n\n' \
        + b'data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}\n\n' + stop(0) \
        + start(1, type="server_tool_use", id="s", name="web_search", input={}) \
        + b'data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"q\\":\\"x\\"}"}}\n\n' \
        + stop(1) + start(2, **SEARCH[1]) + stop(2) + text_block(3, "a", "b") + text_block(4, "c") + ending()
    assert answer(judged(decode(data)))["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"}, *SEARCH, {"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]


def test_an_answer_streamed_to_a_client_that_wants_it_so():
    frames = read(ANTHROPIC.encoder(shown()).encode(whole(content=[*SEARCH, CITED, CALL])))
    assert [b["type"] for b in blocks(frames)] == ["server_tool_use", "web_search_tool_result", "text", "tool_use"]
    assert blocks(frames)[0] == SEARCH[0]
    assert any(f.get("delta", {}).get("type") == "citations_delta" for f in frames)


def test_an_answer_from_another_format():
    out = answer([ev.Meta("chatcmpl-1"), ev.Reasoning("hm"), ev.Text("a"), ev.Text("b"), ev.ToolCall(0, "call:1", "f", '{"a":1}'),
                  ev.Finish("tool_calls"), ev.Usage(input=100, output=5, cached=80), ev.End()], same=False)
    assert out == {"id": "msg_chatcmpl1", "type": "message", "role": "assistant", "model": "m-up", "content": [
        {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "ab"},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}], "stop_reason": "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 80, "output_tokens": 5}}


def test_a_refusal_in_an_answer_is_text_with_its_reason():
    out = answer([ev.Refusal("No."), ev.Finish("stop"), ev.End()], same=False)
    assert (out["content"], out["stop_reason"]) == ([{"type": "text", "text": "No."}], "refusal")


def test_a_count():
    assert json.loads(build_count(42)) == {"input_tokens": 42}


# ---------------------------------------------------------------- errors
@pytest.mark.parametrize("kind, status, word", [
    ("bad_request", 400, "invalid_request_error"), ("unauthorized", 401, "authentication_error"),
    ("forbidden", 403, "permission_error"), ("no_model", 404, "not_found_error"), ("body_too_large", 413, "request_too_large"),
    ("limited", 429, "rate_limit_error"), ("overloaded", 503, "overloaded_error"), ("server_error", 502, "api_error"),
    ("timeout", 504, "timeout_error"), ("internal", 500, "api_error"), ("unprocessable", 422, "invalid_request_error"),
    ("context_too_large", 413, "request_too_large"),
])
def test_errors_have_anthropics_types(kind, status, word):
    error = GatewayError(kind, "why")
    body = json.loads(ANTHROPIC.render_error(error))
    assert (error.status, body["type"], body["error"]["type"], body["error"]["message"]) == (status, "error", word, "why")


def test_a_retry_time_is_told():
    body = json.loads(ANTHROPIC.render_error(GatewayError("rate_limited", "wait", extra={"retryAtMs": 17})))
    assert body["error"] == {"type": "rate_limit_error", "message": "wait", "code": "rate_limit_exceeded", "retryAtMs": 17}


def test_the_upstreams_own_words_go_back_where_they_fit():
    own = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}, "request_id": "r"}
    assert json.loads(ANTHROPIC.render_error(GatewayError("rejected", "x", verbatim=own))) == own
    other = {"error": {"message": "x", "code": 1}}
    assert json.loads(ANTHROPIC.render_error(GatewayError("rejected", "x", verbatim=other)))["error"]["type"] == "invalid_request_error"
