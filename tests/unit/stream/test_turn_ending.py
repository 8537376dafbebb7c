"""How a turn ends: one reason, one usage, one end; truncation and emptiness noticed."""
import pytest

from gateway.core.events import End, Event, Finish, Opaque, Reasoning, Refusal, Text, Usage
from tests.unit.stream.turns import DONE, META, STOP, USAGE, framed, kind, kinds, play, reasons, text, thinking, turn


def test_the_last_events_are_finish_usage_and_end() -> None:
    assert play(turn(), META, framed("Hi"), STOP, USAGE, DONE) == [META, framed("Hi"), STOP, USAGE, DONE]


def test_an_untouched_turn_says_so() -> None:
    t = turn()
    play(t, META, framed("Hi"), STOP, USAGE, DONE)
    assert not t.touched
    assert (t.finish, t.usage) == ("stop", USAGE)


def test_the_end_ends_at_once_and_nothing_after_it_counts() -> None:
    t = turn()
    out = t.feed([Text("Hi"), STOP, DONE, Text("late"), USAGE, DONE], 1.0)
    assert t.done and kinds(out) == ["Text", "Finish", "Usage", "End"]
    assert t.feed([Text("later")], 1.0) == t.eof(1.0) == t.tick(99.0) == []


def test_a_finish_without_an_end_is_a_whole_turn() -> None:
    t = turn()
    assert kinds(play(t, Text("Hi"), STOP)) == ["Text", "Finish", "Usage", "End"]


def test_an_end_without_a_finish_gets_one() -> None:
    t = turn()
    assert reasons(play(t, Text("Hi"), DONE)) == ["stop"]
    assert t.touched


def test_text_behind_the_finish_leaves_before_it() -> None:
    out = play(turn(), Text("Hi"), STOP, Text(" there"), Finish("length"), DONE)
    assert text(out) == "Hi there"
    assert (reasons(out), kinds(out)[-3:]) == (["stop"], ["Finish", "Usage", "End"])


def test_an_empty_word_is_no_reason() -> None:
    assert reasons(play(turn(), Text("a"), Finish(""), Text("b"), STOP)) == ["stop"]
    t = turn()
    play(t, Text("a"), Finish(""))
    assert kind(t) == "truncated"


def test_a_foreign_word_passes() -> None:
    assert reasons(play(turn(), Text("a"), Finish("eos"))) == ["eos"]


def test_eof_without_end_or_finish_is_a_truncation() -> None:
    t = turn()
    assert play(t, META, Reasoning("hm")) == []
    assert kind(t) == "truncated" and t.done

    t = turn()
    assert kinds(play(t, META, Text("Hi"))) == ["Meta", "Text", "Fault"]
    assert kind(t) == "truncated"

    t = turn()
    assert t.eof(1.0) == [] and kind(t) == "truncated"


@pytest.mark.parametrize(("reason", "fault"), [
    ("stop", "empty"), ("tool_calls", "empty"), ("eos", "empty"), ("length", "empty_length"),
])
@pytest.mark.parametrize("events", [[], [META], [Text("")], [Text(" \n")], [Reasoning("hm")], [Opaque("w", "x")],
                                    [Text("<think>hm</think>\n")]])
def test_no_answer_moves_on(reason: str, fault: str, events: list[Event]) -> None:
    t = turn()
    assert play(t, *events, Finish(reason), USAGE, DONE) == []
    assert kind(t) == fault
    assert not t.committed


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "pause"])
def test_a_filter_is_an_answer(reason: str) -> None:
    assert kinds(play(turn(), META, Finish(reason), DONE)) == ["Meta", "Finish", "Usage", "End"]


@pytest.mark.parametrize("event", [Refusal("no"), Opaque("w", "image", counts=True)])
def test_a_refusal_or_media_is_an_answer(event: Event) -> None:
    assert kinds(play(turn(), event, STOP)) == [type(event).__name__, "Finish", "Usage", "End"]


def test_reasoning_that_already_left_ends_cleanly() -> None:
    t = turn(reasoning="live")
    assert kinds(play(t, Reasoning("hm"), STOP)) == ["Reasoning", "Finish", "Usage", "End"]
    assert t.fault is None


def test_reasoning_alone_is_salvaged_when_nobody_is_left() -> None:
    t = turn()
    play(t, META, Reasoning("hm"), STOP, USAGE, DONE)
    out = t.salvage(3.0)
    assert out == [META, Reasoning("hm"), STOP, USAGE, DONE]
    assert (t.fault, t.committed, t.salvage(4.0)) == (None, True, [])


def test_an_answer_that_length_left_empty_is_salvaged() -> None:
    t = turn()
    play(t, META, Finish("length"), USAGE, DONE)
    assert t.salvage(3.0) == [META, Finish("length"), USAGE, DONE]


def test_nothing_at_all_cannot_be_salvaged() -> None:
    for events in ([STOP], [META, Text(" "), STOP], [Text("Hi")], []):
        t = turn(stream=False)
        play(t, *events)
        fault = t.fault
        assert fault is not None
        assert t.salvage(3.0) == []
        assert t.fault is fault


def test_thinking_without_an_answer_in_a_whole_reply_is_salvaged_as_thinking() -> None:
    t = turn(stream=False)
    play(t, Text("<think>so it is</think>"), STOP)
    out = t.salvage(3.0)
    assert (thinking(out), text(out), reasons(out)) == ("so it is", "", ["stop"])


def test_a_turn_without_usage_gets_an_estimate_once() -> None:
    t = turn(prompt_tokens=7)
    out = play(t, Reasoning("12345"), Text("12345678"), STOP)
    assert [event for event in out if isinstance(event, Usage)] == [
        Usage(input=7, output=4, reasoning=2, total=11, estimated=True)]
    assert t.touched


def test_every_choice_has_its_own_reason() -> None:
    out = play(turn(n=3), Text("a", choice=1), Text("b"), Finish("length", choice=1), Text("c", choice=2), DONE)
    assert [(event.choice, event.reason) for event in out if isinstance(event, Finish)] == [
        (0, "stop"), (1, "length"), (2, "stop")]
    assert kinds(out)[-2:] == ["Usage", "End"]


def test_a_choice_that_nobody_saw_has_none() -> None:
    out = play(turn(), Text("a", choice=1), Finish("stop", choice=1))
    assert [event.choice for event in out if isinstance(event, Finish)] == [1]


def test_one_choice_that_answers_is_enough() -> None:
    out = play(turn(n=2), Text("a"), Finish("stop"), Finish("stop", choice=1), DONE)
    assert reasons(out) == ["stop", "stop"]


def test_events_of_no_known_kind_are_not_passed_on() -> None:
    assert kinds(play(turn(), Event(), Text("Hi"), Event(), STOP, End())) == ["Text", "Finish", "Usage", "End"]
