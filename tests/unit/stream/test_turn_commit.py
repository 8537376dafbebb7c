"""The commit point: what commits, what waits for it, and what leaves with it."""
import pytest

from gateway.core.errors import GatewayError
from gateway.core.events import Event, Fault, Meta, Opaque, Reasoning, Refusal, Text, ToolDelta, Usage
from gateway.stream.turn import PASSTHROUGH, UNDECIDED
from tests.unit.stream.turns import DONE, META, STOP, TOOLS, USAGE, framed, kind, kinds, play, turn

PAYLOAD: list[Event] = [Text("Hi"), Refusal("no"), Opaque("w", "image", counts=True)]
NO_PAYLOAD: list[Event] = [
    META, Text(""), Text(" \n"), Reasoning("hm"), Refusal(""), Opaque("w", "annotation"), USAGE, STOP,
    ToolDelta(index=0, id="c", name="get_weather", arguments="{}"), Text("<thi"), Text("<think>so"),
]


@pytest.mark.parametrize("event", PAYLOAD)
def test_payload_commits_and_takes_everything_before_it_along(event: Event) -> None:
    t = turn()
    assert t.feed([META, Reasoning("hm", raw=b"r"), Text("\n", raw=b"n")], 1.0) == []
    assert t.feed([event], 1.0) == [META, Reasoning("hm", raw=b"r"), Text("\n", raw=b"n"), event]
    assert t.committed and not t.done


@pytest.mark.parametrize("event", NO_PAYLOAD)
def test_nothing_else_commits(event: Event) -> None:
    t = turn()
    assert t.feed([event], 1.0) == []
    assert not t.committed


def test_after_it_everything_leaves_as_it_comes() -> None:
    t = turn()
    t.feed([Text("Hi")], 1.0)
    events: list[Event] = [Reasoning("hm"), framed("\n"), Opaque("w", "annotation"), Meta()]
    assert t.feed(events, 1.0) == events


def test_live_reasoning_commits() -> None:
    t = turn(reasoning="live")
    assert t.feed([META, Reasoning("")], 1.0) == []
    assert t.feed([Reasoning("hm")], 1.0) == [META, Reasoning(""), Reasoning("hm")]


def test_reasoning_that_was_held_long_enough_commits_in_silence() -> None:
    t = turn(hold_max_s=30)
    t.feed([META, Reasoning("hm")], 1.0)
    assert t.tick(29.0) == []
    assert t.tick(30.0) == [META, Reasoning("hm")]
    assert t.committed
    assert t.tick(31.0) == []


def test_reasoning_that_starts_late_commits_as_it_comes() -> None:
    t = turn(hold_max_s=30)
    assert t.tick(31.0) == []
    assert t.feed([META], 32.0) == []
    assert t.feed([Reasoning("hm")], 33.0) == [META, Reasoning("hm")]


def test_without_reasoning_silence_commits_nothing() -> None:
    t = turn(hold_max_s=30)
    t.feed([META, Text(" ")], 1.0)
    assert t.tick(100.0) == []
    assert not t.committed


def test_what_is_too_much_to_hold_commits() -> None:
    t = turn(hold_max_bytes=1000)
    out: list[Event] = []
    for _ in range(20):
        out += t.feed([Reasoning("x" * 100)], 1.0)
    assert t.committed and len(out) == 20


def test_a_reply_that_is_no_stream_commits_at_its_end() -> None:
    t = turn(stream=False)
    assert t.feed([META, Text("Hi"), STOP], 1.0) == []
    assert not t.committed
    assert kinds(t.feed([DONE], 1.0)) == ["Meta", "Text", "Finish", "Usage", "End"]


def test_a_failure_before_it_is_silent_and_after_it_is_told() -> None:
    error = GatewayError("in_band", "boom")
    t = turn()
    assert t.feed([META, Reasoning("hm"), Fault(error), Text("late")], 1.0) == []
    assert (t.fault, t.done, t.committed) == (error, True, False)
    assert t.feed([Text("later")], 1.0) == t.eof(1.0) == t.salvage(1.0) == []

    t = turn()
    t.feed([Text("Hi")], 1.0)
    assert t.feed([Fault(error), Text("late")], 1.0) == [Fault(error)]
    assert t.done and t.eof(1.0) == []


def test_text_held_back_at_a_failure_still_leaves_before_it() -> None:
    t = turn(tools=TOOLS)
    t.feed([Text("Hi"), framed(" a <tool")], 1.0)
    assert kinds(t.feed([Fault(GatewayError("in_band", "boom"))], 1.0)) == ["Text", "Fault"]


def test_the_first_token_is_content_or_reasoning() -> None:
    for event in (Text("Hi"), Reasoning("hm"), Refusal("no"), ToolDelta(index=0)):
        t = turn()
        t.feed([META, Text(""), Reasoning("")], 1.0)
        assert t.first_token_at is None
        t.feed([event], 2.0)
        t.feed([Text("x")], 3.0)
        assert t.first_token_at == 2.0


def test_a_turn_speaks_when_something_can_be_seen() -> None:
    for event in (Text("Hi"), Reasoning("hm"), Refusal("no"), ToolDelta(index=0)):
        t = turn()
        t.feed([META, Text(" "), Reasoning("\n"), Text("\t")], 1.0)
        assert t.first_token_at == 1.0 and not t.spoke
        t.feed([event], 2.0)
        assert t.spoke


def test_the_upstreams_own_names_are_kept_for_the_record() -> None:
    t = turn()
    t.feed([Meta(), META, Meta(id="c2", model="other")], 1.0)
    assert (t.upstream_id, t.upstream_model) == ("c1", "m-up")


def test_the_fast_lane_is_open_only_in_full_flow() -> None:
    def fast(*events: Event, **rules: object) -> bool:
        t = turn(**rules)
        t.feed(list(events), 1.0)
        return t.fast

    assert fast(Text("Hi"))
    assert fast(Text("Hi"), tools=TOOLS, rescue=False)
    assert not fast(META)
    assert not fast(Text("Hi"), tools=TOOLS)
    assert not fast(Text("Hi"), n=2)
    assert not fast(Text("Hi"), Text("Ho", choice=1))
    assert not fast(Text("Hi"), STOP)
    assert not fast(Text("Hi"), DONE)
    assert not fast(Reasoning("hm"), reasoning="live")
    assert not fast(Text("Hi"), stream=False)


def test_what_frames_of_the_fast_lane_say_is_counted() -> None:
    t = turn()
    t.feed([Text("Hello", raw=b'{"c":"Hello"}')], 1.0)
    t.run(", and what else there is to be said about it all: nothing")
    assert t.text_chars == 62
    assert t.mode == PASSTHROUGH


def test_text_in_full_flow_is_handed_back_as_the_same_list() -> None:
    t = turn()
    assert t.mode == UNDECIDED
    t.feed([Text("Hi")], 1.0)
    events: list[Event] = [framed(" there"), framed(" <you>")]
    assert t.feed(events, 1.0) is events
    assert t.text_chars == 14


def test_a_choice_nobody_asked_for_in_that_number_is_refused() -> None:
    for index in (-1, 128, 10 ** 9):
        t = turn()
        assert t.feed([Text("Hi", choice=index)], 1.0) == []
        assert kind(t) == "bad_reply"


def test_usage_that_comes_early_is_held() -> None:
    out = play(turn(), Usage(1, 1), Text("Hi"), USAGE, STOP)
    assert out == [Text("Hi"), STOP, USAGE, out[-1]]
