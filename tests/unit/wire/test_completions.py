"""Legacy completions: asked as they are where the target knows them, else as a chat whose answer is told as text."""
import json
from typing import Any

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.core.request import Request
from tests.unit.wire.frames import CHAT, chunk, dump, shown, sse, to
from tests.unit.wire.test_chat_encoder import DONE, frames

NATIVE = frozenset({"completions"})


def asked(**fields: Any) -> Request:
    return CHAT.parse_request(dump({"model": "asked", "prompt": "Say it", **fields}), "completions")


def as_chat(**fields: Any) -> dict[str, Any]:
    request = asked(**fields)
    return json.loads(CHAT.build_request(request, to(stream=request.stream)))


def written(*events: ev.Event, same: bool = False, **fields: Any) -> list[Any]:
    how = shown(request=asked(**fields), same=same, operation="completions")
    return frames(CHAT.encoder(how).encode(list(events)))


# ---------------------------------------------------------------- requests
def test_the_facts_of_a_request():
    request = asked(max_tokens=7, n=2, stream=True, suffix="end")
    assert (request.operation, request.max_tokens, request.n, request.stream, request.chars) == ("completions", 7, 2, True, 9)


@pytest.mark.parametrize("prompt", ["Say it", ["Say it"]])
def test_a_prompt_becomes_a_users_message(prompt):
    assert as_chat(prompt=prompt, max_tokens=7, temperature=0.0, echo=True, best_of=1, logprobs=1, stop=["x"], seed=None) == {
        "model": "up", "messages": [{"role": "user", "content": "Say it"}], "max_tokens": 7, "temperature": 0.0, "stop": ["x"]}


def test_a_suffix_becomes_an_instruction():
    system, user = as_chat(prompt="def f():", suffix="return x")["messages"]
    assert system["role"] == "system"
    assert user["content"].index("def f():") < user["content"].index("return x")


def test_a_stream_asks_for_usage():
    assert as_chat(stream=True)["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("prompt", [["a", "b"], [1, 2], [[1, 2]]])
def test_what_a_chat_cannot_take_is_refused_by_name(prompt):
    with pytest.raises(GatewayError) as refused:
        as_chat(prompt=prompt)
    assert (refused.value.status, refused.value.param) == (400, "prompt")


@pytest.mark.parametrize("prompt", ["a", ["a", "b"], [1, 2], [[1, 2]]])
def test_a_target_with_completions_gets_all_of_it(prompt):
    request = asked(prompt=prompt, echo=True, best_of=3, logprobs=2, suffix="s")
    target = to(flags=NATIVE)
    assert CHAT.upstream_path(request, target) == "/completions"
    assert CHAT.speaks(request, target)
    assert json.loads(CHAT.build_request(request, target)) == {
        "model": "up", "prompt": prompt, "echo": True, "best_of": 3, "logprobs": 2, "suffix": "s"}


def test_other_targets_are_asked_for_a_chat():
    assert CHAT.upstream_path(asked(), to()) == "/chat/completions"
    assert not CHAT.speaks(asked(), to())


def test_targets_of_other_formats_get_a_dialogue():
    talk = CHAT.open(asked(max_tokens=5, stop="x"))
    assert (talk.messages[0].role, talk.messages[0].parts[0].text) == ("user", "Say it")
    assert (talk.sampling.max_tokens, talk.sampling.stop) == (5, ["x"])


# ---------------------------------------------------------------- streams
def test_a_stream_of_text_completions():
    raw = dump(chunk({"content": "a"}))
    out = written(ev.Meta("chatcmpl-up", "m", 5, dump(chunk({"role": "assistant"}))), ev.Text("a", raw), ev.Reasoning("hm"),
                  ev.Text("b"), ev.Finish("length", 0, dump(chunk({}, "length"))), ev.Usage(1, 2), ev.End(), same=True)
    assert out[-1] == DONE
    assert [f["object"] for f in out[:-1]] == ["text_completion"] * 4
    assert [c for f in out[:-1] for c in f["choices"]] == [
        {"text": "a", "index": 0, "logprobs": None, "finish_reason": None},
        {"text": "b", "index": 0, "logprobs": None, "finish_reason": None},
        {"text": "", "index": 0, "logprobs": None, "finish_reason": "length"}]
    assert {f["id"] for f in out[:-1]} == {"cmpl-chatcmpl-up"}
    assert out[-2]["usage"]["total_tokens"] == 3


def test_echo_puts_the_prompt_first_once_a_choice():
    out = written(ev.Text("a"), ev.Text("b"), ev.Text("c", choice=1), echo=True)
    assert [(c["index"], c["text"]) for f in out for c in f["choices"]] == [
        (0, "Say it"), (0, "a"), (0, "b"), (1, "Say it"), (1, "c")]


def test_frames_of_a_target_with_completions_pass_and_are_not_echoed_again():
    frame = dump({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m",
                  "choices": [{"text": "Say it: x", "index": 0, "logprobs": {"tokens": []}, "finish_reason": None}]})
    how = shown(request=asked(echo=True), operation="completions")
    out = CHAT.encoder(how).encode(CHAT.decoder(True, "m", 1000).feed(sse(frame)))
    assert out == sse(frame)


def test_a_failure_is_told():
    assert written(ev.Text("a"), ev.Fault(GatewayError("truncated", "broke")))[1]["error"]["message"] == "broke"


# ---------------------------------------------------------------- whole answers
def whole(events: list[ev.Event], raw: bytes | None = None, same: bool = True, **fields: Any) -> dict[str, Any]:
    return json.loads(CHAT.build_reply(fold(events), shown(request=asked(**fields), same=same, operation="completions"), raw))


def test_a_chats_answer_is_told_as_text():
    raw = dump({"id": "chatcmpl-up", "object": "chat.completion", "created": 5, "model": "x", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "old"}, "finish_reason": "stop"}]})
    assert whole([*CHAT.parse_reply(raw, True), ev.Usage(1, 2)], raw) == {
        "id": "cmpl-chatcmpl-up", "object": "text_completion", "created": 9, "model": "m",
        "choices": [{"text": "old", "index": 0, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
    assert whole(CHAT.parse_reply(raw, True), raw, echo=True)["choices"][0]["text"] == "Say itold"


def test_a_text_completions_answer_is_kept():
    raw = dump({"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "x", "extra": 1.5, "usage": {"prompt_tokens": 1},
                "choices": [{"text": "old", "index": 0, "logprobs": {"tokens": ["old"]}, "finish_reason": "stop"}]})
    assert CHAT.parse_reply(raw, True)[1] == ev.Text("old")
    assert whole(CHAT.parse_reply(raw, True), raw, echo=True) == {**json.loads(raw), "model": "m"}
