"""An answer comes out the same however it is cut: nothing that is hidden gets through, nothing that is put back is broken."""
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.events import End, Finish, Opaque, Reasoning, Text, ToolArgs, ToolCall, ToolStart
from gateway.policy.guardrails import pii
from gateway.policy.guardrails.masks import Masks
from gateway.stream.blind import Blind

KINDS = tuple(pii.KINDS.values())
NAMES = [kind.name for kind in KINDS]
VALUES = ["jo.doe@mail.example.com", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "219-09-9999", "+49 30 12345678",
          "(555) 123-4567", "203.0.113.7", "2001:db8::7", "06 12 34 56 78", "GB82WEST12345698765432"]
TEXT = ("Write to jo.doe@mail.example.com, pay 4111 1111 1111 1111 12 or DE89 3704 0044 0532 0130 00; 219-09-9999 is his. Call "
        "+49 30 12345678 or (555) 123-4567! From 203.0.113.7: and 2001:db8::7. [EMAIL_1] is mine, [EMAIL_9] is not, [x] neither.")


def masks():
    made = Masks(KINDS, KINDS, NAMES)
    made.mask("own@x.io")
    return made


def whole(text, thought=False):
    return masks().leaving(text, 0, True, thought)[0]


def play(*reads):
    blind = Blind(masks())
    out = []
    for events in [*reads, [Finish("stop"), End()]]:
        out += blind.cover(list(events))
    return out


def told(events, kind=Text):
    return "".join(event.text for event in events if isinstance(event, kind))


@pytest.mark.parametrize("at", range(1, len(TEXT)))
def test_cut_at_any_place_nothing_leaks_and_everything_comes_back(at):
    blind = Blind(masks())
    first = told(blind.cover([Text(TEXT[:at])]))
    rest = told(blind.cover([Text(TEXT[at:]), Finish("stop"), End()]))
    assert first + rest == whole(TEXT)
    assert not any(value in first + rest for value in VALUES)
    assert "own@x.io" in first + rest


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 40])
def test_pieces_of_any_size(size):
    assert told(play(*[[Text(TEXT[at:at + size])] for at in range(0, len(TEXT), size)])) == whole(TEXT)


piece = st.one_of(st.sampled_from(VALUES), st.sampled_from(["[EMAIL_1]", "[EMAIL", "_1]", "@", "own@x.io", " ", ". ", "-", "+", "4111", ":", "["]),
                  st.text(max_size=6))


@settings(max_examples=150, deadline=None)
@given(text=st.lists(piece, max_size=14).map("".join), cuts=st.lists(st.integers(0, 200), max_size=8), thought=st.booleans())
def test_the_cut_never_matters(text, cuts, thought):
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    kind = Reasoning if thought else Text
    out = play(*[[kind(text[a:b])] for a, b in zip(places, places[1:], strict=False)])
    assert told(out, kind) == whole(text, thought)


def test_text_that_has_nothing_to_hide_leaves_as_it_came_but_for_its_last_word():
    blind = Blind(masks())
    event = Text("plain words, ", raw=b"{}")
    assert blind.cover([event]) == [event] and not blind.touched
    assert told(blind.cover([Text("and more")])) == "and "


def test_what_waits_leaves_before_a_call_and_before_the_end():
    out = play([Text("look at jo")], [ToolCall(0, "c", "f", "{}")], [Text("so")])
    assert [type(event).__name__ for event in out] == ["Text", "Text", "ToolCall", "Text", "Finish", "End"]
    assert told(out) == "look at joso"
    out = play([Reasoning("hm a@b")], [Text("x")])
    assert [type(event).__name__ for event in out][:2] == ["Reasoning", "Reasoning"]
    out = play([Text("a")], [Opaque("w", "done")])
    assert [type(event).__name__ for event in out][:2] == ["Text", "Opaque"]


def test_arguments_come_back_whole_and_valid():
    call = ToolCall(0, "c", "f", '{"to":"[EMAIL_1]","cc":"jo@x.com","n":4111111111111111}')
    made = next(event for event in play([call]) if isinstance(event, ToolCall))
    assert json.loads(made.arguments) == {"to": "own@x.io", "cc": "[EMAIL_2]", "n": "[CREDIT_CARD_1]"}
    live = [[ToolStart(0, "c", "f")], *[[ToolArgs(0, sign)] for sign in call.arguments], [ToolStart(1, "d", "g")], [ToolArgs(1, "{}")]]
    out = play(*live)
    kinds = [(type(event).__name__, event.index) for event in out if isinstance(event, (ToolStart, ToolArgs))]
    assert kinds == [("ToolStart", 0), ("ToolArgs", 0), ("ToolStart", 1), ("ToolArgs", 1)]
    assert json.loads("".join(event.text for event in out if isinstance(event, ToolArgs) and event.index == 0)) == json.loads(made.arguments)


def test_free_text_of_a_custom_tool_is_a_text():
    out = play([ToolCall(0, "c", "f", "mail [EMAIL_1] 4111111111111111", kind="custom")])
    assert out[0].arguments == "mail own@x.io [CREDIT_CARD_1]"
    out = play([ToolStart(0, "c", "f", kind="custom")], [ToolArgs(0, "mail [EMA")], [ToolArgs(0, "IL_1]")])
    assert told(out, ToolArgs) == "mail own@x.io"


def test_a_thought_that_was_changed_is_sealed_no_more():
    out = play([Reasoning("for jo@x.com", choice=0)], [Reasoning("", signature="s")])
    assert told(out, Reasoning) == "for [EMAIL_2]" and not any(getattr(event, "signature", None) for event in out)
    out = play([Reasoning("for me")], [Reasoning("", signature="s")])
    assert told(out, Reasoning) == "for me" and [event.signature for event in out if isinstance(event, Reasoning)][-1] == "s"


def test_choices_are_told_apart():
    out = play([Text("jo@"), Text("own@", choice=1)], [Text("x.com"), Text("y.com", choice=1)])
    assert [e.text for e in out if isinstance(e, Text) and e.choice == 0] == ["[EMAIL_2]"]
