"""A whole chat answer is read as the events of its turn, and written with as little changed as possible."""
import json
from typing import Any

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from tests.unit.wire.frames import CHAT, asked, dump, shown


def answer(message: dict[str, Any] | None = None, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": "chatcmpl-up", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi", **(message or {})}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
    body.update(more)
    return {key: value for key, value in body.items() if value is not None}


def read(body: Any) -> list[ev.Event]:
    return CHAT.parse_reply(body if isinstance(body, bytes) else dump(body), True)


def written(events: list[ev.Event], raw: Any = None, **how: Any) -> dict[str, Any]:
    raw = dump(raw) if isinstance(raw, dict) else raw
    return json.loads(CHAT.build_reply(fold(events), shown(**how), raw))


# ---------------------------------------------------------------- reading
def test_a_whole_answer_is_a_turn():
    meta, said, finish, used, end = read(answer())
    assert meta == ev.Meta("chatcmpl-up", "m", 5, passes=True)
    assert (said, finish, end) == (ev.Text("hi"), ev.Finish("stop"), ev.End())
    assert (used.input, used.output, used.total) == (1, 2, 3)


def test_everything_that_a_message_may_hold():
    calls = [{"id": "a", "index": 0, "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
             {"id": "b", "index": 0, "type": "function", "function": {"name": "g", "arguments": "{}"}}]
    message = {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "t"}], "refusal": "no",
               "tool_calls": calls, "audio": {"id": "a"}, "annotations": [1], "function_call": None}
    assert read(answer(message, "tool_calls"))[1:-2] == [
        ev.Reasoning("hm"), ev.Text("t"), ev.Refusal("no"), ev.ToolDelta(0, "a", "f", '{"x":1}', whole=True),
        ev.ToolDelta(1, "b", "g", "{}"), ev.Opaque("openai-chat", "audio", {"id": "a"}, counts=True),
        ev.Opaque("openai-chat", "annotations", [1]), ev.Finish("tool_calls")]


@pytest.mark.parametrize(("finish", "reason"), [("end_turn", "stop"), (None, "stop"), ("", "stop"), ("MAX_TOKENS", "length")])
def test_finish_words_are_ours(finish, reason):
    assert ev.Finish(reason) in read(answer(finish=finish))


def test_several_choices_are_told_apart():
    choices = [{"message": {"content": "a"}}, {"index": 1, "message": {"content": "b"}, "finish_reason": "length"}]
    assert [(e.choice, getattr(e, "text", "")) for e in read(answer(choices=choices)) if hasattr(e, "choice")] == [
        (0, "a"), (0, ""), (1, "b"), (1, "")]


def test_an_answer_without_choices_is_an_empty_turn():
    assert read(answer(choices=[], usage=None)) == [ev.Meta("chatcmpl-up", "m", 5), ev.End()]


@pytest.mark.parametrize("body", [{"error": {"message": "no"}}, {"detail": "no"}, [{"error": "no"}], answer(finish="error"),
                                  {"object": "error", "message": "no"}])
def test_an_error_under_200_is_a_fault(body):
    last = read(dump(body))[-1]
    assert isinstance(last, ev.Fault) and last.error.kind == "in_band"


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b'{"id":"x","choices":[{"mess', b"", b"5", b"[]", b'"text"', b"{}",
                                  b'{"choices":null}', b"\xff\xfe"])
def test_what_is_no_answer_is_refused(body):
    with pytest.raises(GatewayError) as refused:
        read(body)
    assert refused.value.kind == "bad_reply"


def test_halves_of_a_character_are_joined():
    assert read(dump(answer()).replace(b'"hi"', b'"a\\ud83d\\ude42\\ud83d"'))[1].text == "a🙂\ufffd"


# ---------------------------------------------------------------- writing
def test_an_untouched_answer_keeps_every_byte():
    raw = dump(answer(None, cost=1.50, choices=answer()["choices"], system_fingerprint=None)).replace(b'"cost":1.5', b'"cost" : 1.50')
    assert CHAT.build_reply(fold(read(raw)), shown(), raw) == raw
    assert CHAT.build_reply(fold(read(raw)), shown(model="org/m"), raw) == raw.replace(b'"model":"m"', b'"model":"org/m"')


@pytest.mark.parametrize("lacking", ["id", "object", "created", "model"])
def test_what_client_libraries_rely_on_is_filled_in(lacking):
    raw = answer(extra=1, **{lacking: None})
    out = written(read(raw), raw)
    assert out["id"] and out["object"] == "chat.completion" and isinstance(out["created"], int) and out["model"] == "m"
    assert out["extra"] == 1


def test_missing_fields_of_a_choice_are_filled_in():
    raw = answer(choices=[{"message": {"content": "x"}}])
    assert written(read(raw), raw)["choices"] == [
        {"message": {"content": "x", "role": "assistant"}, "index": 0, "finish_reason": "stop"}]


def test_a_foreign_finish_word_is_put_right():
    raw = answer(finish="end_turn")
    assert written(read(raw), raw)["choices"][0]["finish_reason"] == "stop"


def test_missing_usage_is_written_in_with_its_mark():
    raw = answer(usage=None)
    out = written([*read(raw), ev.Usage(7, 8, estimated=True)], raw)
    assert out["usage"] == {"prompt_tokens": 7, "completion_tokens": 8, "total_tokens": 15, "estimated": True}


def test_a_touched_answer_is_patched_and_the_rest_stays():
    raw = answer({"content": "<tool_call>…", "annotations": [1]}, extra=[2])
    raw["choices"][0]["logprobs"] = {"content": []}
    events = [read(raw)[0], ev.ToolCall(0, "c", "f", "{}"), ev.Finish("tool_calls"), *read(raw)[-2:]]
    out = written(events, raw, touched=True)
    assert out["extra"] == [2] and out["usage"] == raw["usage"]
    assert out["choices"] == [{
        "index": 0, "finish_reason": "tool_calls", "logprobs": {"content": []},
        "message": {"role": "assistant", "content": None, "annotations": [1],
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}]


def test_thinking_that_the_turn_found_is_written_in():
    raw = answer({"content": "<think>hm</think>yes"})
    out = written([read(raw)[0], ev.Reasoning("hm"), ev.Text("yes"), ev.Finish("stop")], raw, touched=True)
    assert out["choices"][0]["message"] == {"role": "assistant", "content": "yes", "reasoning_content": "hm"}


def test_reasoning_of_another_name_stays_as_it_is():
    raw = answer({"reasoning": "hm"})
    assert written(read(raw), raw, touched=True)["choices"][0]["message"] == raw["choices"][0]["message"]


def test_a_legacy_function_call_stays_one():
    raw = answer({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call")
    events = [read(raw)[0], ev.ToolCall(0, "c", "f", '{"a":1}'), ev.Finish("tool_calls")]
    out = written(events, raw, touched=True)["choices"][0]
    assert out["message"]["function_call"] == {"name": "f", "arguments": '{"a":1}'} and "tool_calls" not in out["message"]


def test_an_answer_of_another_format_is_built():
    events = [ev.Meta("msg_1", "claude"), ev.Reasoning("hm"), ev.Text("a"), ev.Text("b"), ev.ToolCall(0, "c", "f", "{}"),
              ev.Finish("tool_calls"), ev.Usage(1, 2, native={"input_tokens": 1}), ev.End()]
    assert written(events, same=False) == {
        "id": "chatcmpl-req1", "object": "chat.completion", "created": 9, "model": "m",
        "choices": [{"index": 0, "logprobs": None, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "ab", "refusal": None, "reasoning_content": "hm",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}


def test_a_folded_stream_joins_pieces_that_only_this_format_knows():
    pieces = [ev.Opaque("openai-chat", "audio", {"id": "a", "transcript": "x"}),
              ev.Opaque("openai-chat", "audio", {"id": "a", "transcript": "y"}),
              ev.Opaque("openai-chat", "annotations", [1]), ev.Opaque("openai-chat", "annotations", [2])]
    message = written([ev.Meta("i", "m", 1), *pieces, ev.Finish("stop")])["choices"][0]["message"]
    assert (message["audio"], message["annotations"]) == ({"id": "a", "transcript": "xy"}, [1, 2])


def test_a_client_of_the_functions_form_gets_a_function_call():
    events = [ev.ToolCall(0, "c", "f", "{}"), ev.Finish("tool_calls")]
    choice = written(events, same=False, request=asked(functions=[{"name": "f"}]))["choices"][0]
    assert (choice["message"]["function_call"], choice["finish_reason"]) == ({"name": "f", "arguments": "{}"}, "function_call")


# ---------------------------------------------------------------- errors
def test_an_error_has_openais_shape():
    error = GatewayError("bad_request", "no", param="messages.0", extra={"retryAtMs": 5, "failed_generation": "x"})
    assert json.loads(CHAT.render_error(error)) == {
        "error": {"message": "no", "type": "invalid_request_error", "param": "messages.0", "code": None, "retryAtMs": 5}}


def test_the_upstreams_own_words_stay():
    own = {"error": {"message": "context", "type": "invalid_request_error", "code": "context_length_exceeded", "more": 1}, "id": "x"}
    assert json.loads(CHAT.render_error(GatewayError("rejected", "other", verbatim=own))) == {
        "error": {**own["error"], "param": None}, "id": "x"}


def test_the_upstreams_own_words_in_another_shape_are_put_into_ours():
    for own in ({"error": "text"}, {"detail": "x"}, {"error": {"message": None}}):
        out = json.loads(CHAT.render_error(GatewayError("rejected", "told", verbatim=own)))["error"]
        assert (out["message"], out["type"]) == ("told", "invalid_request_error")


def test_a_code_that_is_a_number_is_told_as_a_word():
    own = {"error": {"code": 400, "message": "too long", "status": "INVALID_ARGUMENT"}}
    told = json.loads(CHAT.render_error(GatewayError("context_too_large", "too long", verbatim=own)))["error"]
    assert told["code"] == "context_length_exceeded" and told["status"] == "INVALID_ARGUMENT"
