"""A key that no frame says and all of them together do is not seen by the client."""
import json
from typing import Any

import pytest

from gateway.core.events import End, Event, Finish, Meta, Reasoning, Text, ToolArgs, ToolCall, ToolStart
from gateway.stream.veil import Veil

KEY = "sk-prov-0123456789abcdefgh"
STOP: list[Event] = [Finish("stop"), End()]


def told(events: list[Event], kind: Any = Text, choice: int = 0) -> str:
    return "".join([event.text for event in events if isinstance(event, kind) and event.choice == choice])


def play(*reads: list[Event]) -> list[Event]:
    veil = Veil(KEY)
    out: list[Event] = []
    for events in [*reads, STOP]:
        out += veil.cover(events)
    return out


def pieces(text: str, size: int) -> list[Event]:
    return [Text(text[at:at + size], raw=b"{}") for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 13, 100])
@pytest.mark.parametrize("together", [False, True], ids=["a read each", "one read"])
def test_a_key_cut_in_any_way_is_blotted_out(size: int, together: bool) -> None:
    events = pieces(f"It is {KEY}, I say {KEY}.", size)
    text = told(play(events) if together else play(*[[event] for event in events]))
    assert KEY[6:] not in text and text.startswith("It is ") and text.endswith("[redacted].") and ", I say " in text


def test_text_without_a_key_passes_as_the_very_same_list() -> None:
    veil = Veil(KEY)
    for events in (pieces("nothing to hide here", 3), [Text("sk-"), Text("sk-p")], [Text("")], []):
        assert veil.cover(events) is events
    assert not veil.holding and not veil.touched


def test_what_only_begins_like_a_key_waits_and_then_leaves() -> None:
    veil = Veil(KEY)
    assert told(veil.cover([Text("see sk-prov")])) == "see " and veil.holding
    assert told(veil.cover([Text("ider")])) == "sk-provider" and not veil.holding
    assert told(play([Text("sk-prov-")])) == "sk-prov-"


def test_an_answer_that_ends_within_a_key_does_not_tell_most_of_it() -> None:
    assert told(play([Text("k " + KEY[:15])])) == "k [redacted]"


def test_texts_of_two_kinds_and_choices_are_told_apart() -> None:
    out = play([Text(KEY[:9]), Reasoning(KEY[:12]), Text("b", choice=1), Text(KEY[9:]), Reasoning(KEY[12:] + "!")])
    assert (told(out), told(out, Reasoning), told(out, choice=1)) == ("[redacted]", "[redacted]!", "b")


def test_arguments_are_looked_at_whole_live_and_with_escapes() -> None:
    escaped = "".join([f"\\u{ord(sign):04x}" for sign in KEY])
    calls = [ToolCall(0, "c", "f", f'{{"a":"{KEY}"}}'), ToolCall(1, "d", "f", f'{{"a":"{escaped}"}}'),
             ToolCall(2, "e", "f", '{"a":"\\u0041"}')]
    assert [event.arguments for event in play(list(calls)) if isinstance(event, ToolCall)] == [
        '{"a":"[redacted]"}', '{"a":"[redacted]"}', '{"a":"\\u0041"}']
    live: list[Event] = [ToolArgs(0, '{"a":"' + KEY[:10]), ToolArgs(1, "{"), ToolArgs(0, KEY[10:] + '"}'), ToolArgs(1, "}")]
    out = play(live)
    assert "".join([e.text for e in out if isinstance(e, ToolArgs) and e.index == 0]) == '{"a":"[redacted]"}'
    assert "".join([e.text for e in out if isinstance(e, ToolArgs) and e.index == 1]) == "{}"


@pytest.mark.parametrize("size", range(1, 9))
def test_a_key_of_escapes_that_are_cut_anywhere_is_blotted_out(size: int) -> None:
    """Live arguments: each piece by itself says nothing but half an escape."""
    escaped = "".join([f"\\u{ord(sign):04x}" if n % 3 else sign for n, sign in enumerate(KEY)])
    text = '{"path":"C:\\\\u0041","é":"\\u00e9\\n","a":"' + escaped + '"}'
    live: list[Event] = [ToolStart(0, "c", "f"), *[ToolArgs(0, text[at:at + size]) for at in range(0, len(text), size)]]
    said = "".join([event.text for event in play(*[[event] for event in live]) if isinstance(event, ToolArgs)])
    assert KEY[6:] not in json.loads(said)["a"] and json.loads(said) == json.loads(text) | {"a": json.loads(said)["a"]}
    assert json.loads(said)["a"].endswith("[redacted]")


def test_free_text_for_a_tool_is_no_json() -> None:
    live: list[Event] = [ToolStart(0, "c", "patch", kind="custom"), ToolArgs(0, "say \\u00"), ToolArgs(0, "41 and \\")]
    assert [event.text for event in play(live) if isinstance(event, ToolArgs)] == ["say \\u00", "41 and \\"]


def test_half_an_escape_at_the_very_end_is_told_as_it_came() -> None:
    live: list[Event] = [ToolStart(0, "c", "f"), ToolArgs(0, '{"a":"\\u00')]
    assert "".join([event.text for event in play(live) if isinstance(event, ToolArgs)]) == '{"a":"\\u00'


def test_frames_that_pass_unread_are_suspected_in_time() -> None:
    veil = Veil(KEY)
    veil.cover([Meta(), Text("a sk")])
    assert not veil.suspects("-pr")
    assert veil.suspects("ov-01")
    assert told(veil.cover([Text("ov-01")])) == "" and veil.suspects("anything")
    assert told(veil.cover([Text(KEY[10:])])) == "[redacted]"
