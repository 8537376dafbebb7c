"""Which text is thinking."""
import pytest

from gateway.core.events import Event, Reasoning, Text
from gateway.stream.think import MAX_LEADING, Think


def split(*pieces: str) -> tuple[str, str, list[Event]]:
    """(thinking, text, events) of an answer that came in these pieces."""
    think = Think()
    events: list[Event] = []
    for piece in pieces:
        events += think.feed(Text(piece, raw=piece.encode()))
    events += think.close()
    thinking = "".join([event.text for event in events if isinstance(event, Reasoning)])
    text = "".join([event.text for event in events if isinstance(event, Text)])
    return thinking, text, events


def test_a_tag_that_opens_the_answer_is_thinking_however_it_is_cut() -> None:
    answer = "\n <think>so </thi that</think>\n\nHello </think> <think>"
    for cut in range(1, len(answer)):
        assert split(answer[:cut], answer[cut:])[:2] == ("so </thi that", "Hello </think> <think>")
    assert split(*answer)[:2] == ("so </thi that", "Hello </think> <think>")


@pytest.mark.parametrize("answer", ["Hello", "Use <think> so", " <thinking>", "<thing>", "<Think>x</Think>", "  ", "<thi"])
def test_anything_else_is_text_and_keeps_its_frames(answer: str) -> None:
    thinking, text, events = split(*answer)
    assert (thinking, text) == ("", answer)
    assert [event.raw for event in events if isinstance(event, Text)] == [char.encode() for char in answer]


def test_text_that_can_be_no_tag_is_not_delayed() -> None:
    think = Think()
    assert think.feed(Text(" <t")) == []
    assert think.feed(Text("a")) == [Text(" <t"), Text("a")]
    assert think.over


def test_only_a_possible_closing_tag_is_held_back() -> None:
    think = Think()
    assert think.feed(Text("<think>abc</th")) == [Reasoning("abc")]
    assert think.n_held == 4
    assert think.feed(Text("a")) == [Reasoning("</tha")]


def test_a_tag_that_never_closes_is_thinking() -> None:
    assert split("<think>abc</thi")[:2] == ("abc</thi", "")


def test_blank_text_after_the_close_is_dropped_and_the_next_frame_passes_untouched() -> None:
    assert split("<think>a</think>", " \n", "Hi")[2] == [Reasoning("a"), Text("Hi", raw=b"Hi")]
    assert split("<think>a</think>\n\nHi")[2] == [Reasoning("a"), Text("Hi")]


def test_more_blanks_than_anyone_opens_a_tag_with_end_the_wait() -> None:
    blanks = " " * (MAX_LEADING + 1)
    assert split(blanks, "<think>a</think>")[:2] == ("", blanks + "<think>a</think>")


def test_an_empty_thought_leaves_nothing() -> None:
    assert split("<think></think>Hi")[2] == [Text("Hi")]
