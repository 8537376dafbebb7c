"""How a turn is written to a chat client: frames that came pass, the rest is built; the rules of a finished stream hold."""
import json
from typing import Any

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.sse import Splitter
from tests.unit.wire.frames import CHAT, asked, chunk, dump, shown, sse

DONE = "[DONE]"


def written(*events: ev.Event, **how: Any) -> bytes:
    return CHAT.encoder(shown(**how)).encode(list(events))


def frames(data: bytes) -> list[Any]:
    return [DONE if frame == b"[DONE]" else json.loads(frame) for _, frame in Splitter(1 << 20).feed(data)]


def deltas(data: bytes) -> list[dict[str, Any]]:
    return [choice["delta"] for frame in frames(data) if frame != DONE for choice in frame["choices"]]


ROLE = ev.Meta("chatcmpl-up", "m", 1_700_000_000, dump(chunk({"role": "assistant", "content": ""})))


def test_frames_of_the_same_format_pass_as_they_came():
    raws = [dump(chunk({"content": c}, extra=[1])) for c in "ab"]
    assert written(ROLE, *[ev.Text("?", raw) for raw in raws]) == sse(ROLE.raw, *raws)


def test_frames_of_the_same_format_are_not_used_for_another_upstream():
    assert [d.get("content") for d in deltas(written(ev.Text("b", dump(chunk({"content": "a"}))), same=False))] == ["b"]


def test_the_first_delta_has_the_role():
    assert deltas(written(ev.Text("a"), ev.Text("b"))) == [{"role": "assistant", "content": "a"}, {"content": "b"}]


def test_a_role_of_ours_goes_before_an_upstream_frame_that_has_none():
    raw = dump(chunk({"content": "a"}))
    out = frames(written(ev.Meta("chatcmpl-up", "m", 5), ev.Text("a", raw)))
    assert out[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert out[0]["id"] == out[1]["id"] == "chatcmpl-up"
    assert out[1] == json.loads(raw)


def test_every_choice_has_its_role():
    assert [d.get("role") for d in deltas(written(ev.Text("a"), ev.Text("b", choice=1), ev.Text("c", choice=1)))] == [
        "assistant", "assistant", None]


def test_frames_of_ours_have_the_envelope_of_the_upstreams():
    built = frames(written(ROLE, ev.Text("x")))[-1]
    assert (built["id"], built["created"], built["model"], built["object"]) == (
        "chatcmpl-up", 1_700_000_000, "m", "chat.completion.chunk")


def test_without_an_upstream_id_the_requests_is_used():
    [built] = frames(written(ev.Meta("msg_1", "claude", 3), ev.Text("x"), same=False))
    assert (built["id"], built["created"]) == ("chatcmpl-req1", 9)


@pytest.mark.parametrize("text", ['"\\\n\r\t\x00\x1f', "😀é\u2028", "</script>", "a" * 100_000])
def test_any_text_is_escaped(text):
    assert deltas(written(ev.Text(text)))[0]["content"] == text


def test_every_kind_of_event_has_its_place():
    call = ev.ToolCall(0, "c1", "f", '{"a":1}')
    custom = ev.ToolCall(1, "c2", "g", "free text", kind="custom")
    out = deltas(written(ROLE, ev.Reasoning("hm"), ev.Refusal("no"), call, custom, ev.Opaque("openai-chat", "audio", {"id": "a"})))
    assert out[1:] == [
        {"reasoning_content": "hm"}, {"refusal": "no"},
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]},
        {"tool_calls": [{"index": 1, "id": "c2", "type": "custom", "custom": {"name": "g", "input": "free text"}}]},
        {"audio": {"id": "a"}}]


def test_live_calls_begin_once_and_grow():
    events = [ev.ToolStart(0, "c1", "f"), ev.ToolArgs(0, '{"a"'), ev.ToolArgs(0, ":1}"), ev.ToolStart(1, "c2", "g", kind="custom"),
              ev.ToolArgs(1, "x")]
    pieces = [d["tool_calls"][0] for d in deltas(written(*events))]
    assert pieces == [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a"'}}, {"index": 0, "function": {"arguments": ":1}"}},
        {"index": 1, "id": "c2", "type": "custom", "custom": {"name": "g", "input": ""}}, {"index": 1, "custom": {"input": "x"}}]


def test_what_stands_beside_a_call_goes_with_it():
    extra = {"extra_content": {"google": {"thought_signature": "s"}}}
    assert deltas(written(ev.ToolCall(0, "c", "f", "{}", extra=extra)))[0]["tool_calls"][0]["extra_content"] == extra["extra_content"]
    foreign = deltas(written(ev.ToolCall(0, "c", "f", "{}", extra={"thought_signature": "s", "other": 1}), same=False))
    assert foreign[0]["tool_calls"][0]["extra_content"] == extra["extra_content"]
    assert "other" not in foreign[0]["tool_calls"][0]


def test_payload_of_other_formats_is_not_written():
    assert written(ev.Opaque("anthropic", "server_tool_use", {"x": 1}, b"{}"), same=False) == b""


def test_a_client_of_the_functions_form_gets_a_function_call():
    request = asked(functions=[{"name": "f"}])
    out = frames(written(ev.ToolCall(0, "c", "f", "{}"), ev.Finish("tool_calls"), request=request))
    assert out[0]["choices"][0]["delta"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert out[1]["choices"][0]["finish_reason"] == "function_call"


@pytest.mark.parametrize(("reason", "word"), [
    ("stop", "stop"), ("length", "length"), ("tool_calls", "tool_calls"), ("content_filter", "content_filter"),
    ("refusal", "content_filter"), ("pause", "stop"), ("something", "stop"),
])
def test_every_reason_is_one_of_chats_words(reason, word):
    assert frames(written(ev.Finish(reason)))[0]["choices"][0]["finish_reason"] == word


def test_a_choice_is_finished_once():
    out = frames(written(ev.Text("a"), ev.Finish("stop"), ev.Finish("length"), ev.Finish("stop", 1)))
    assert [f["choices"][0]["finish_reason"] for f in out] == [None, "stop", "stop"]


def test_the_upstreams_finish_frame_passes_and_takes_a_corrected_reason():
    raw = dump(chunk({}, "stop", timings={"ms": 1}))
    assert written(ROLE, ev.Finish("stop", 0, raw)) == sse(ROLE.raw, raw)
    corrected = frames(written(ROLE, ev.Finish("tool_calls", 0, raw)))[-1]
    assert (corrected["choices"][0]["finish_reason"], corrected["timings"]) == ("tool_calls", {"ms": 1})


def test_usage_is_written_once_and_only_if_asked():
    used = ev.Usage(3, 4, cached=1, reasoning=2, total=7, estimated=True)
    assert written(used, include_usage=False) == b""
    [out] = frames(written(used, used))
    assert out["choices"] == []
    assert out["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "estimated": True,
                            "prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 2}}


def test_the_upstreams_own_usage_passes():
    native = {"prompt_tokens": 1, "completion_tokens": 2, "queue_time": 0.1}
    assert frames(written(ev.Usage(1, 2, native=native)))[0]["usage"] == native
    raw = dump(chunk(choices=[], usage=native, cost=1))
    assert written(ev.Usage(1, 2, native=native, raw=raw)) == sse(raw)
    foreign = frames(written(ev.Usage(1, 2, native={"input_tokens": 1}), same=False))[0]["usage"]
    assert foreign == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_done_is_written_once():
    assert written(ev.End(), ev.End()) == b"data: [DONE]\n\n"


@pytest.mark.parametrize("done", [True, False])
def test_a_failure_is_an_error_frame(done):
    out = frames(written(ev.Text("a"), ev.Fault(GatewayError("truncated", "it broke")), ev.End(), done_after_error=done))
    assert out[1]["error"] == {"message": "it broke", "type": "stream_error", "param": None, "code": "upstream_failed"}
    assert out[2:] == ([DONE] if done else [])


def test_silence_is_broken_by_a_comment():
    assert Splitter(100).feed(CHAT.silence + b"data: x\n\n") == [(None, b"x")]


def test_half_a_character_of_another_format_stays_an_escape():
    assert b'"content":"a\\ud83e"' in written(ev.Text("a\ud83e")) and b'"arguments":"\\udd8a"' in written(
        ev.ToolStart(0, "c", "look"), ev.ToolArgs(0, "\udd8a"))
