"""What of one choice is decided? Text may be thinking, the start of a tool call written as text, or JSON to be checked.

A ``Choice`` takes the events of one alternative answer and gives back those that are decided: they are what they seem
to be and keep their place. What is not decided yet stays in ``hold`` as the events that came, raw frames included.
Whether decided events may already leave is the turn's business (commit point, turn.py), what becomes of the hold at
the end is ending.py's.
"""
import re
from collections.abc import Callable
from typing import Final

from gateway.core.events import Event, Finish, Opaque, Reasoning, Refusal, Text, ToolArgs, ToolDelta, ToolStart
from gateway.stream import dialects
from gateway.stream.live import LiveCalls
from gateway.stream.rules import DIALECT, PASSTHROUGH, STRUCTURED, UNDECIDED, Rules
from gateway.stream.think import Think
from gateway.stream.toolcalls import Calls

# No marker begins without one of these: the test that nearly all text of a turn with tools ends at.
suspect: Final = re.compile("[" + re.escape("".join(sorted({marker[0] for marker in dialects.MARKERS}))) + "]").search

CALL_CHARS: Final = 64                      # of the verdict's work, what a call is beside its characters

# The whole story of a choice: (mode, what happened) -> mode. What is not here does not happen.
MOVES: Final[dict[tuple[str, str], str]] = {
    (UNDECIDED, "prose"): PASSTHROUGH,      # visible text that can be no marker
    (UNDECIDED, "marker"): DIALECT,         # the answer opens with a call written as text
    (PASSTHROUGH, "marker"): DIALECT,       # … or says something first
    (UNDECIDED, "overflow"): PASSTHROUGH,   # more than may be held: text is text from here on
    (PASSTHROUGH, "overflow"): PASSTHROUGH,
    (DIALECT, "overflow"): PASSTHROUGH,
    (STRUCTURED, "overflow"): PASSTHROUGH,
    (STRUCTURED, "call"): PASSTHROUGH,      # a tool turn need not be JSON, and live calls do not wait for text
}


class Choice:
    """State of one choice. ``said``: it has visible text; ``counted``: it has another answer (refusal, media)."""

    __slots__ = ("index", "mode", "scan", "whole", "hold", "n_held", "said", "counted", "touched", "finish", "calls",
                 "live", "started", "deltas", "_rules", "_think", "_tail")

    def __init__(self, index: int, rules: Rules) -> None:
        self.index = index
        self.scan = rules.rescue and bool(rules.tools)
        self.whole = self.scan and not rules.stream     # the complete text is here anyway: nothing to decide on the way
        self.mode = STRUCTURED if rules.format is not None else UNDECIDED
        self.hold: list[Event] = []
        self.n_held = 0
        self.said = self.counted = self.touched = False
        self.started = False                            # a live call has begun to leave
        self.finish: Finish | None = None
        self.calls: Calls | None = None
        self.live: LiveCalls | None = None
        self.deltas: list[ToolDelta] = []
        self._rules = rules
        self._think = Think(index) if rules.think_tags else None
        self._tail = ""                                 # the held text, while a marker may be in the making

    @property
    def reason(self) -> str:
        return self.finish.reason if self.finish is not None else ""

    @property
    def flowing(self) -> bool:
        """Text goes straight through unless it is suspect."""
        return self.mode is PASSTHROUGH and self._think is None and not self.hold and not self.whole

    @property
    def n_work(self) -> int:
        """What the verdict has to work through here, in characters."""
        n_chars = CALL_CHARS * len(self.calls or self.live or ())
        if self.hold and (self.mode is DIALECT or self.mode is STRUCTURED or self.whole):
            n_chars += len(self.held_text())
        return n_chars

    def held_text(self) -> str:
        return "".join([event.text for event in self.hold if type(event) is Text])

    # -- events

    def text(self, event: Text) -> list[Event]:
        if self._think is None:
            return _ON_TEXT[self.mode](self, event)
        if not self.scan and self.mode is UNDECIDED and self._think.unasked(event.text):
            self._think, self.said, self.mode = None, True, MOVES[UNDECIDED, "prose"]
            return [event]                              # what nearly all turns without tools open with
        return self._split(self._think, self._think.feed(event))

    def reasoning(self, event: Reasoning) -> list[Event]:
        """Thinking never waits. Prose before it keeps its place: nobody thinks in the middle of a marker."""
        if self.whole and any(type(held) is not Text or not blank(held.text) for held in self.hold):
            return self._keep(event)
        if self.hold and self.said and self.mode is PASSTHROUGH and event.text:
            return [*self._release(), event]
        return [event]

    def other(self, event: Refusal | Opaque) -> list[Event]:
        """An answer of another kind ends the text before it; what is none keeps its place in it."""
        answers = event.counts if type(event) is Opaque else bool(event.text)  # type: ignore[union-attr]
        self.counted = self.counted or answers
        out = self.close_think() if answers else []
        if self.hold:
            if not answers or self.whole or self.mode in (DIALECT, STRUCTURED):
                return out + self._keep(event)
            out += self._release()
        out.append(event)
        return out

    def tool(self, event: ToolDelta) -> list[Event]:
        if self._rules.tool_calls == "live" and self._rules.stream:
            if self.live is None:
                self.live = LiveCalls(self._rules.tools)
            moved = self.give_up("call") if self.mode is STRUCTURED else self.flush()
            leaving = self.live.add(event)
            self.started = self.started or bool(leaving)
            return moved + list(leaving)
        if self.calls is None:
            self.calls = Calls()
        if not self._rules.stream:
            self.deltas.append(event)
        self.calls.add(event)
        return []

    # -- the end of holding

    def flush(self) -> list[Event]:
        """No more text will decide what is held at its edges: half a tag, half a marker. Whole holds stay."""
        out = self.close_think()
        if self.mode in (UNDECIDED, PASSTHROUGH) and not self.whole:
            out += self._release()
        return out

    def give_up(self, why: str) -> list[Event]:
        """Held no longer, checked no longer: everything is delivered as the text that it is."""
        self.mode = MOVES[self.mode, why]
        self.scan = self.whole = False
        return self.close_think() + self._release()

    def close_think(self) -> list[Event]:
        return [] if self._think is None else self._split(self._think, self._think.close())

    def _split(self, think: Think, pieces: list[Event]) -> list[Event]:
        out: list[Event] = []
        for piece in pieces:
            out += _ON_TEXT[self.mode](self, piece) if type(piece) is Text else [piece]
        self.touched = self.touched or think.found
        if think.over:
            self._think = None
        return out

    # -- text, by mode

    def _keep(self, event: Event) -> list[Event]:
        self.hold.append(event)
        self.n_held += n_bytes(event)
        return []

    def _watch(self, event: Text) -> list[Event]:
        """Undecided or passing: only what may become a marker is held, as whole events."""
        if not self.scan:
            self._say(event.text)
            return [event]
        if self.whole:
            return self._keep(event)
        text = self._tail + event.text if self.hold else event.text
        if not self.hold and suspect(text) is None and (self.said or not blank(text)):
            self._say(text)
            return [event]
        at = dialects.scan(text)
        n_open = self._n_open(text) if at < 0 else 0
        if not self.hold and at < 0 and not n_open:
            self._say(text)
            return [event]
        self._keep(event)
        self._tail = text
        return self._marked(at) if at >= 0 else self._before(len(text) - n_open)

    def _n_open(self, text: str) -> int:
        """How many trailing characters are not decided: a possible marker, with the blanks that open the answer."""
        n_open = dialects.held(text)
        if not self.said and blank(text[:len(text) - n_open]):
            n_open = len(text)
        return n_open if n_open <= self._rules.rescue_scan else 0

    def _marked(self, at: int) -> list[Event]:
        """A marker stands at ``at``: prose before it is decided, the rest is held to the end."""
        if not self.said and blank(self._tail[:at]):
            at = 0
        out = self._before(at)
        cut = at - sum([len(event.text) for event in out if type(event) is Text])
        if cut:
            first = self.hold[0]
            assert type(first) is Text
            self.hold[:1] = [Text(first.text[cut:], choice=self.index)]
            out.append(Text(first.text[:cut], choice=self.index))
            self._say(first.text[:cut])
            self.touched = True
        self.mode = MOVES[self.mode, "marker"]
        self._tail = ""
        return out

    def _before(self, end: int) -> list[Event]:
        """Held events that lie wholly before position ``end`` of the held text, released as they came."""
        at = n = 0
        for event in self.hold:
            after = at + (len(event.text) if type(event) is Text else 0)
            if after > end:
                break
            at, n = after, n + 1
        out, rest, tail = self.hold[:n], self.hold[n:], self._tail[at:]
        self.hold = out
        self._release()
        self.hold, self._tail = rest, tail
        self.n_held = sum([n_bytes(event) for event in rest])
        return out

    def _release(self) -> list[Event]:
        out, self.hold, self.n_held, self._tail = self.hold, [], 0, ""
        for event in out:
            if type(event) is Text:
                self._say(event.text)
        return out

    def _say(self, text: str) -> None:
        if not self.said and not blank(text):
            self.said = True
            if self.mode is UNDECIDED:
                self.mode = MOVES[self.mode, "prose"]


def plain_run(events: list[Event], at: int, scan: bool) -> tuple[int, int]:
    """(end, characters) of the run from ``at`` on that is nothing but text of choice 0 with no marker in sight."""
    n_chars = 0
    for i in range(at, len(events)):
        event = events[i]
        if type(event) is not Text or event.choice or scan and suspect(event.text) is not None:
            return i, n_chars
        n_chars += len(event.text)
    return len(events), n_chars


def pays(event: Event, thinking: bool) -> bool:
    """Is this decided event the commit point (contract 6.2)? All others wait for one of these."""
    kind = type(event)
    if kind is Text:
        return not blank(event.text)                    # type: ignore[attr-defined]
    if kind is Reasoning:
        return thinking and bool(event.text)            # type: ignore[attr-defined]
    if kind is Refusal:
        return bool(event.text)                         # type: ignore[attr-defined]
    return event.counts if kind is Opaque else kind in (ToolStart, ToolArgs)    # type: ignore[attr-defined]


def n_bytes(event: Event) -> int:
    """What holding an event costs, near enough."""
    raw = getattr(event, "raw", None)
    return len(raw) if raw is not None else 64 + len(getattr(event, "text", ""))


def blank(text: str) -> bool:
    return not text or text.isspace()


_ON_TEXT: Final[dict[str, Callable[[Choice, Text], list[Event]]]] = {
    UNDECIDED: Choice._watch,
    PASSTHROUGH: Choice._watch,
    DIALECT: Choice._keep,
    STRUCTURED: Choice._keep,
}
