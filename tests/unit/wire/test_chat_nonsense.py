"""What a client's library would choke on does not pass: counts that are none, calls that are none, events of countless lines."""
import json
from typing import Any

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.wire.sse import MAX_LINES, Splitter
from tests.unit.wire.frames import CHAT, MODEL, chunk, dump, shown, sse

NONSENSE: list[Any] = [None, "5", "abc", -5, 1.5, True, [1], {}, 99999999999999999999999999, 1 << 60]
USED = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def through(*frames: Any) -> list[dict[str, Any]]:
    """The frames that a client of the same format gets."""
    decoder = CHAT.decoder(True, MODEL, 1 << 20)
    events = decoder.feed(sse(*frames, done=True))
    data = CHAT.encoder(shown()).encode(events)
    return [json.loads(line[6:]) for line in data.split(b"\n\n") if line.startswith(b"data: {")]


def counts_are_sound(usage: Any) -> bool:
    return all(type(usage[name]) is int and 0 <= usage[name] < 1 << 54 for name in USED)


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
@pytest.mark.parametrize("name", USED)
def test_counts_that_are_none_do_not_reach_a_client_of_the_same_format(name: str, value: Any) -> None:
    odd = {**USED, name: value}
    for frames in ([chunk(choices=[], usage=odd)], [dump(chunk(choices=[], usage=odd)).replace(b'":', b'": ')]):
        told = [frame["usage"] for frame in through(chunk({"content": "x"}), chunk({}, "stop"), *frames) if frame.get("usage")]
        assert len(told) == 1 and counts_are_sound(told[0])
        assert all(told[0][other] == USED[other] for other in USED if other not in (name, "total_tokens"))


def test_counts_in_details_are_looked_at_and_everything_else_is_kept() -> None:
    odd = {**USED, "cost": 0.5, "prompt_tokens_details": {"cached_tokens": "2", "audio_tokens": 1}, "completion_tokens_details": None}
    [told] = [frame["usage"] for frame in through(chunk({"content": "x"}), chunk(choices=[], usage=odd)) if frame.get("usage")]
    assert told == {**USED, "cost": 0.5, "prompt_tokens_details": {"audio_tokens": 1}, "completion_tokens_details": None}


def test_a_whole_answers_counts_are_mended_too() -> None:
    message = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    raw = dump({"id": "a", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [message],
                "usage": {**USED, "completion_tokens": 1e30}})
    events = CHAT.parse_reply(raw, True)
    assert not (isinstance(events[0], ev.Meta) and events[0].passes)
    assert counts_are_sound(json.loads(CHAT.build_reply(fold(events), shown(), raw))["usage"])


@pytest.mark.parametrize("usage", [[1], "x", 5, True])
def test_a_usage_that_is_none_takes_no_frame_along(usage: Any) -> None:
    frames = through(chunk({"content": "x"}, usage=usage), chunk({}, "stop", usage=usage))
    assert [choice["delta"].get("content") for frame in frames for choice in frame["choices"]][-2] == "x"
    assert not any("usage" in frame for frame in frames)


@pytest.mark.parametrize("calls", [[None, 5], "x", 5, {"a": 1}, ["y"], True], ids=repr)
@pytest.mark.parametrize("name", ["tool_calls", "function_call"])
def test_calls_that_are_none_do_not_reach_a_client_of_the_same_format(name: str, calls: Any) -> None:
    if name == "tool_calls" and isinstance(calls, dict):
        pytest.skip("one call without its list is a call")
    for more in ({}, {"content": "t"}):
        frames = through(chunk({"content": "a"}), chunk({**more, name: calls}), chunk({"content": "b"}), chunk({}, "stop"))
        deltas = [choice["delta"] for frame in frames for choice in frame["choices"]]
        assert not any(name in delta for delta in deltas)
        assert "".join([delta.get("content") or "" for delta in deltas]) == "a" + more.get("content", "") + "b"


def test_an_event_of_countless_lines_is_refused_before_they_are_looked_at() -> None:
    pretty = b"data: {\n" + b"data:\n" * 1_000 + b"data: }\n\n"
    assert len(Splitter(1 << 23).feed(pretty)) == 1
    with pytest.raises(GatewayError, match="lines"):
        Splitter(1 << 23).feed(b"data: {\n" + b"data:\n" * (MAX_LINES + 1) + b"data: }\n\n")
