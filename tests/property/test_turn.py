"""What holds for every turn, whatever the upstream says and however it is cut."""
import json
import re
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.core.errors import GatewayError
from gateway.core.events import (
    End,
    Event,
    Fault,
    Finish,
    Meta,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolArgs,
    ToolCall,
    ToolDelta,
    ToolStart,
    Usage,
)
from gateway.core.request import Format
from gateway.stream import dialects
from gateway.stream.turn import Rules, Turn

TOOLS: dict[str, dict[str, Any] | None] = {"f": {"type": "object", "properties": {"a": {"type": "array"}}}, "g": None}
CALL = '<tool_call>{"name": "f", "arguments": {"a": [1]}}</tool_call>'
TERMINALS = (Finish, Usage, End, Fault)

# Text that lives on the edge: pieces of markers, tags and JSON beside plain words.
edges = st.sampled_from([" ", "\n", "<", "[", "<t", "<tool", "<tool_call", "<function", "[TOOL", "<think>", "</think>", "think",
                         "{", "}", '"', "a", "word ", "`", "é", "1 < 2"])
starts = st.sampled_from(dialects.MARKERS).flatmap(lambda marker: st.integers(1, len(marker)).map(lambda n: marker[:n]))
edgy = st.lists(edges | starts, max_size=12).map("".join)
prose = edgy.filter(lambda text: dialects.scan(text) < 0 and not text.lstrip().startswith("<think>"))
reasons = st.sampled_from(["", "stop", "length", "tool_calls", "content_filter", "eos"])
small = st.integers(0, 2)

events = st.one_of(
    st.builds(Meta, id=st.sampled_from(["", "c1"])),
    st.builds(Text, text=edgy, choice=small, raw=st.sampled_from([None, b"frame"])),
    st.builds(Text, text=st.just(CALL)),
    st.builds(Reasoning, text=edgy, choice=small),
    st.builds(Refusal, text=st.sampled_from(["", "no"]), choice=small),
    st.builds(ToolDelta, index=st.sampled_from([None, 0, 1, -1]), id=st.sampled_from(["", "c1", "c2"]),
              name=st.sampled_from(["", "f", "g", "h"]), arguments=st.sampled_from(["", "{", "}", '{"a":', "[1]}", "{}", '"', "x"]),
              choice=small, whole=st.booleans()),
    st.builds(Opaque, wire=st.just("w"), kind=st.just("k"), counts=st.booleans()),
    st.builds(Usage, input=small, output=small),
    st.builds(Finish, reason=reasons, choice=small),
)
rules = st.builds(
    Rules, tools=st.sampled_from([{}, TOOLS]), format=st.sampled_from([None, None, Format("json_object")]),
    tool_calls=st.sampled_from(["whole", "live"]), reasoning=st.sampled_from(["hold", "live"]), rescue=st.booleans(),
    hold_max_bytes=st.sampled_from([300, 4_194_304]), think_tags=st.booleans(), stream=st.booleans(), n=st.just(3))


def grouped(story: list[Event], cuts: list[int]) -> list[list[Event]]:
    """The story in reads that end at the cuts."""
    places = sorted({cut for cut in cuts if 0 < cut < len(story)})
    return [story[start:end] for start, end in zip([0, *places], [*places, len(story)], strict=True)]


def told(of: Rules, reads: list[list[Event]]) -> tuple[list[Event], Turn]:
    turn = Turn(of, 0.0)
    out: list[Event] = []
    for read in reads:
        out += turn.feed(list(read), 1.0)
    return out + turn.eof(2.0), turn


def nameless(out: list[Event]) -> list[object]:
    """Events without the ids that we draw; failures by their kind."""
    return [event.error.kind if isinstance(event, Fault) else
            (type(event), event.name, getattr(event, "arguments", ""), event.index)
            if isinstance(event, (ToolCall, ToolStart)) else event for event in out]


def joined(out: list[Event], kind: type[Event]) -> str:
    return "".join([getattr(event, "text", "") for event in out if type(event) is kind])


@given(rules, st.lists(events, max_size=14), st.booleans(), st.lists(st.integers(0, 14), max_size=5))
@settings(max_examples=150, deadline=None)
def test_any_grouping_of_events_into_reads_gives_the_same_turn(
        of: Rules, story: list[Event], ends: bool, cuts: list[int]) -> None:
    story = [*story, End()] if ends else story
    whole, one = told(of, [story])
    pieces, other = told(of, grouped(story, cuts))
    assert nameless(whole) == nameless(pieces)
    assert (one.committed, one.fault and one.fault.kind) == (other.committed, other.fault and other.fault.kind)


@given(rules, st.lists(events, max_size=14), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_turn_ends_once_in_one_order_or_fails_without_a_word(of: Rules, story: list[Event], ends: bool) -> None:
    out, turn = told(of, [[event] for event in ([*story, End()] if ends else story)])
    assert turn.done
    if not turn.committed:
        assert out == [] and turn.fault is not None
        out = turn.salvage(3.0)
        assert bool(out) == turn.committed == (turn.fault is None)
        if not out:
            return
    tail = [type(event) for event in out if isinstance(event, TERMINALS)]
    assert tail == [type(event) for event in out[-len(tail):]]
    if turn.fault is not None:
        assert tail == [Fault]
        return
    n_choices = len({event.choice for event in out if isinstance(event, Finish)})
    assert tail == [Finish] * n_choices + [Usage, End]
    for call in [event for event in out if isinstance(event, ToolCall)]:
        assert call.id and call.name
        reason = next(event.reason for event in out if isinstance(event, Finish) and event.choice == call.choice)
        assert reason in ("tool_calls", "length", "content_filter")
        if reason == "tool_calls":
            json.loads(call.arguments)


@given(prose, st.lists(st.integers(0, 60), max_size=8), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_text_in_is_text_out_whatever_it_resembles(text: str, cuts: list[int], tools: bool, stream: bool) -> None:
    places = sorted({cut for cut in cuts if 0 < cut < len(text)})
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    story: list[Event] = [Text(piece, raw=piece.encode()) for piece in pieces]
    of = Rules(tools=TOOLS if tools else {}, stream=stream)
    out, turn = told(of, [[event] for event in [*story, Finish("stop")]])
    if not text.strip():
        assert out == [] and turn.fault is not None
        return
    assert joined(out, Text) == text
    assert [event.raw for event in out if type(event) is Text] == [piece.encode() for piece in pieces]


@given(st.sampled_from(["", "Hi. ", "\n ", "<think>hm <tool_call></think>", "<think>a</think>b ", "1 < 2 [x] <tool "]),
       st.lists(st.integers(0, 100), max_size=8), st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_split_of_text_gives_the_same_text_thinking_and_calls(before: str, cuts: list[int], stream: bool) -> None:
    text = before + CALL
    places = sorted({cut for cut in cuts if 0 < cut < len(text)})
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    of = Rules(tools=TOOLS, stream=stream)
    whole, _ = told(of, [[Text(text), Finish("stop"), End()]])
    split, _ = told(of, [[Text(piece)] for piece in pieces] + [[Finish("stop"), End()]])
    for kind in (Text, Reasoning):
        assert joined(whole, kind) == joined(split, kind)
    assert [event for event in nameless(split) if isinstance(event, tuple)] == \
        [event for event in nameless(whole) if isinstance(event, tuple)] != []


class Pipeline(RuleBasedStateMachine):
    """A pipeline that does anything it may, in any order, with an upstream that says anything."""

    @initialize(of=rules)
    def begin(self, of: Rules) -> None:
        self.now = 0.0
        self.turn = Turn(of, self.now)
        self.out: list[Event] = []
        self.over = False

    def take(self, out: list[Event]) -> None:
        assert not out or self.turn.committed       # nothing leaves before the commit point
        assert not (out and self.over)              # nothing leaves after the terminal
        self.out += out
        self.over = self.over or any(isinstance(event, (End, Fault)) for event in out)

    @rule(read=st.lists(events, max_size=4))
    def feed(self, read: list[Event]) -> None:
        self.take(self.turn.feed(read, self.now))

    @rule(s=st.sampled_from([0.1, 31.0]))
    def wait(self, s: float) -> None:
        self.now += s
        self.take(self.turn.tick(self.now))

    @rule()
    def end(self) -> None:
        self.take(self.turn.feed([End()], self.now))
        assert self.turn.done

    @rule()
    def fail(self) -> None:
        self.take(self.turn.feed([Fault(GatewayError("in_band", "boom"))], self.now))
        assert self.turn.done

    @precondition(lambda self: self.turn.fast)
    @rule()
    def run_frames(self) -> None:
        assert self.turn.committed and not self.turn.done
        self.turn.run("three frames more")

    @rule()
    def eof(self) -> None:
        self.take(self.turn.eof(self.now))
        assert self.turn.done and not self.turn.heavy and not self.turn.fast

    @precondition(lambda self: self.turn.done)
    @rule()
    def salvage(self) -> None:
        self.take(self.turn.eof(self.now))
        self.take(self.turn.salvage(self.now))

    @invariant()
    def the_books_agree(self) -> None:
        turn = self.turn
        assert sum(isinstance(event, Usage) for event in self.out) <= 1
        assert sum(isinstance(event, (End, Fault)) for event in self.out) <= 1
        assert turn.done or turn.fault is None
        if self.over:
            assert turn.done and (turn.fault is not None) == isinstance(self.out[-1], Fault)
        assert all(isinstance(event, (Meta, Text, Reasoning, Refusal, Opaque, ToolCall, ToolStart, ToolArgs, *TERMINALS))
                   for event in self.out)


TestPipeline = Pipeline.TestCase
TestPipeline.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


@given(rules, st.lists(st.builds(Text, text=edgy | st.just("word"), choice=st.sampled_from([0, 0, 0, 1])), min_size=1, max_size=4),
       reasons, st.builds(Usage, input=small, output=small), st.lists(events, max_size=1))
@settings(max_examples=200, deadline=None)
def test_a_turn_that_came_at_once_ends_as_if_it_had_been_judged(of, texts, reason, counts, odd):
    read = [Meta(id="c1", model="m"), *texts, *odd, Finish(reason), counts, End()]

    def told() -> tuple[Any, ...]:
        turn = Turn(of, 0.0)
        out = list(turn.feed(list(read), 1.0))
        out += turn.eof(1.0)
        return ([re.sub(r"call_\w{24}", "call_", repr(event)) for event in out], turn.mode, turn.over, turn.fast, *[getattr(turn, name) for name in (
            "committed", "done", "touched", "usage", "finish", "first_token_at", "spoke", "upstream_id", "upstream_model", "text_chars",
            "reasoning_chars")], repr(turn.fault))

    at_once = told()
    with patch("gateway.stream.turn.at_once", lambda *_: False):
        assert at_once == told()
