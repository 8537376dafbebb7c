"""THE state machine: what of an upstream's turn may leave, and how does the turn end?

A stream is judged as a turn. The decoder says what the upstream sent, event by event; the turn answers each read with
the events that may leave now. It knows no socket, no clock (times come in as numbers) and no wire format, so every
story it can live through is a list of events, and the tests tell them.

Three questions are asked of every event, each in a place of its own:

1. *Is it decided?* (choices.py, one ``Choice`` per alternative.) Text may turn out to be thinking, or a tool call
   written as text, or JSON that must be checked. A choice is in one of four modes, and ``choices.MOVES`` is the
   complete table:

   =========== ================================================= ==================================================
   mode        text is                                           leaves for
   =========== ================================================= ==================================================
   undecided   blank, or may yet become ``<think>`` or a marker  passthrough at the first prose, dialect at a marker
   passthrough decided; a possible marker is held back           dialect at a marker after prose
   dialect     held to the end: calls written as text            passthrough, unchecked, above ``hold_max_bytes``
   structured  held to the end: it must be JSON                  passthrough above ``hold_max_bytes``, or live calls
   =========== ================================================= ==================================================

   Without declared tools nothing is ever a marker. Only the opening ``<think>`` is a tag. A reply that is no stream
   stays undecided until it is complete if tools were declared. Held is the event as it came: what turns out to be
   plain text leaves as the upstream's own frame.

2. *May it leave?* (``_leave``.) Before the commit point decided events wait in the preamble, in order. The commit
   point is the first of them that is payload: visible text that is not blank, a refusal, media, a live call, or the
   completed calls at the end (``choices.pays``). Role frames, blank text, annotations and usage never commit. Thinking
   commits only when ``reasoning`` is live or ``hold_max_s`` has passed: a failure behind long thinking is then told
   instead of hidden, which is better than a client that gives up in silence. More than ``hold_max_bytes`` held
   commits too. A reply that is no stream commits at its end.

3. *How does it end?* (ending.py for a choice, ``_decide`` for the turn.) With the upstream's End, or its EOF when a
   finish was seen; an EOF without either is a truncation. Then, and only then, the edges that are still held are
   flushed and every choice is settled: calls completed, text rescued, JSON checked, emptiness noticed. What leaves
   last is always

       rest of the text, tool calls, one Finish per choice, one Usage, one End

   so a finish that came early waits for text behind it, usage is the last that was said (or an estimate) and comes
   once, and whatever follows the End is not read: ``done`` tells the pipeline to stop, a silent connection cannot
   delay the end.

Failures have two lives. Before the commit point ``fault`` is set and nothing leaves: the pipeline goes on to another target.
After it the list ends with ``Fault``: the client is told. ``fault`` is set then too, for the records. When no other target is
left the pipeline may ask the last turn to ``salvage`` what can be delivered honestly: text whose calls could not be parsed as
text, an answer that ``length`` left empty or cut, thinking without an answer. An invented call never.

The pipeline's side of it: ``feed`` every read until ``done``, then ``eof`` exactly once (in a thread if ``heavy``:
then the verdict waits for it, else feed has given it and eof adds nothing). While ``fast``, reads of plain text
frames need no events at all: ``run`` counts them. ``feed`` may return the very list that it got.
"""
from collections.abc import Callable
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.events import Event, Text
from gateway.stream import usage as tokens
from gateway.stream.choices import Choice, n_bytes, pays, plain_run
from gateway.stream.ending import Ending, emptiness, finish, second_chance, settle
from gateway.stream.plain import at_once
from gateway.stream.rules import DIALECT, PASSTHROUGH, STRUCTURED, UNDECIDED, Rules

__all__ = ["DIALECT", "PASSTHROUGH", "STRUCTURED", "UNDECIDED", "Rules", "Turn"]

MAX_CHOICES: Final = 128        # OpenAI's own limit for n
HEAVY_CHARS: Final = 8192       # more repair and schema work than the event loop should wait for


class Turn:
    """One attempt's stream, judged. See the module's text; everything not starting with ``_`` is for the pipeline."""

    __slots__ = ("committed", "done", "fault", "fast", "touched", "spoke", "usage", "finish", "first_token_at", "upstream_id",
                 "upstream_model", "text_chars", "reasoning_chars", "_rules", "_started", "_now", "_choices", "_preamble",
                 "call_chars", "_out", "_n_held", "_settled", "_judged", "_closing", "_flow", "_thinking_pays", "_end")

    def __init__(self, rules: Rules, started: float) -> None:
        self.committed = self.done = self.fast = self.touched = self.spoke = False
        self.fault: GatewayError | None = None
        self.usage: ev.Usage | None = None
        self.finish = ""                    # the reason of the first choice, once the turn has ended
        self.first_token_at: float | None = None
        self.upstream_id = self.upstream_model = ""
        self.text_chars = self.reasoning_chars = 0
        self._rules = rules
        self._started = self._now = started
        self._choices: dict[int, Choice] = {}
        self._preamble: list[Event] = []
        self._out: list[Event] = []
        self._n_held = self.call_chars = 0
        self._settled = self._judged = self._closing = False
        self._flow: Choice | None = None    # the choice whose text goes straight through
        self._thinking_pays = rules.stream and rules.reasoning == "live"
        self._end: ev.End | None = None

    # -- what the pipeline calls

    def feed(self, events: list[Event], now: float) -> list[Event]:
        """What may leave after these events; [] before the commit point."""
        if self.done:
            return []
        flow = self._flow
        if flow is not None:
            stop, n_chars = plain_run(events, 0, flow.scan)
            if stop == len(events):
                self.text_chars += n_chars
                return events
        elif not (self._choices or self._preamble or self.usage) and not self._rules.held and at_once(self, events, now):
            self._settled = self._judged = True
            return events
        self._now = now
        out = self._out = []
        try:
            self._ripen()
            self._each(events, out)
        except GatewayError as error:
            self._fail(error)
        flow = self._flow = self._flowing()
        self.fast = flow is not None and not flow.scan and flow.finish is None and self._rules.n == 1
        return out

    def _each(self, events: list[Event], out: list[Event]) -> None:
        """One event after the other, but text in full flow a run at a time."""
        at, n_events = 0, len(events)
        while at < n_events and not self.done:
            handler = _ON.get(type(events[at]))
            if handler is not None:
                handler(self, events[at])
            at += 1
            if self.committed and at < n_events and type(events[at]) is Text and (flow := self._flowing()) is not None:
                stop, n_chars = plain_run(events, at, flow.scan)
                self.text_chars += n_chars
                out += events[at:stop]
                at = stop

    def _flowing(self) -> Choice | None:
        """The only choice, when its text goes straight through."""
        only = self._choices.get(0) if self.committed and not self.done and len(self._choices) == 1 else None
        return only if only is not None and only.flowing else None

    def eof(self, now: float) -> list[Event]:
        """The upstream is over, or was left after ``done``: the verdict, unless feed has given it."""
        if self._settled:
            return []
        self._now = now
        out = self._out = []
        self.done, self.fast = True, False
        if self._end is None and not any(choice.finish is not None for choice in self._choices.values()):
            self._fail(GatewayError("truncated", "stream ended unexpectedly: no finish reason and no end was sent"))
        else:
            self._decide()
        return out

    def tick(self, now: float) -> list[Event]:
        """Time passed in silence: thinking that was held long enough commits."""
        if self.done or self.committed:
            return []
        self._now = now
        out = self._out = []
        self._ripen()
        return out

    def run(self, said: str) -> None:
        """Frames of plain text that took the fast lane, and what they said."""
        self.text_chars += len(said)

    def salvage(self, now: float) -> list[Event]:
        """No other target is left: the answer that can be delivered all the same, or []."""
        if self.committed or not self._judged or self.fault is None:
            return []
        if self.fault.kind not in _SALVAGE and not (self.fault.kind == "empty" and self.reasoning_chars):
            return []
        fault, self.fault = self.fault, None
        self._now = now
        out = self._out = []
        self._decide(lenient=True)
        self.fault = self.fault or (None if self.committed else fault)
        return out

    @property
    def heavy(self) -> bool:
        """Is the verdict too much work for the event loop? Then call eof in a thread."""
        if self._settled:
            return False
        return self.call_chars + sum([choice.n_work for choice in self._choices.values()]) > HEAVY_CHARS

    @property
    def over(self) -> bool:
        """Every choice has said why it ended, only the upstream's End is missing: silence, or a lost connection, is an EOF now."""
        flowing = self._flow is not None and self._flow.finish is None
        return not (flowing or self.done) and bool(self._choices) and all(c.finish is not None for c in self._choices.values())

    @property
    def mode(self) -> str:
        """Of the first choice."""
        first = next(iter(self._choices.values()), None)
        if first is not None:
            return first.mode
        return STRUCTURED if self._rules.format is not None else PASSTHROUGH if self.committed else UNDECIDED

    # -- events

    def _on_meta(self, event: ev.Meta) -> None:
        self.upstream_id = self.upstream_id or event.id
        self.upstream_model = self.upstream_model or event.model
        self._leave(event)

    def _on_text(self, event: Text) -> None:
        choice = self._choices.get(event.choice) or self._choice(event.choice)
        if event.text:
            self._token(event.text)
        for decided in choice.text(event):
            self._leave(decided)
        self._bound(choice)

    def _on_reasoning(self, event: ev.Reasoning) -> None:
        choice = self._choice(event.choice)
        if event.text:
            self._token(event.text)
        for decided in choice.reasoning(event):
            self._leave(decided)
        self._bound(choice)

    def _on_other(self, event: ev.Refusal | ev.Opaque) -> None:
        choice = self._choices.get(event.choice) or self._choice(event.choice)
        if not choice.hold and type(event) is ev.Opaque and not event.counts:
            self._leave(event)                          # what stands around text keeps its place
            if not self.committed:
                self._bound(choice)
            return
        for decided in choice.other(event):
            self._leave(decided)
        if choice.counted:
            self._token()
        self._bound(choice)

    def _on_tool(self, event: ev.ToolDelta) -> None:
        choice = self._choice(event.choice)
        self._token()
        for decided in choice.tool(event):
            self._leave(decided)
        self.call_chars += len(event.name) + len(event.arguments)
        if self.call_chars > self._rules.hold_max_bytes:
            raise GatewayError("bad_reply", "tool calls of the upstream exceed hold_max_bytes")

    def _on_usage(self, event: ev.Usage) -> None:
        self.usage = tokens.merge(self.usage, event)

    def _on_finish(self, event: ev.Finish) -> None:
        if event.reason:
            choice = self._choice(event.choice)
            if choice.finish is None:
                choice.finish = event

    def _on_fault(self, event: ev.Fault) -> None:
        chance = second_chance(event.error, self._rules, self.committed)
        if not chance:
            self._fail(event.error)
        for instead in chance:
            _ON[type(instead)](self, instead)

    def _on_end(self, event: ev.End) -> None:
        self.done = True
        self._end = event
        if not self.heavy:
            self._decide()

    # -- the commit point

    def _leave(self, event: Event) -> None:
        """A decided event goes out, or waits in the preamble; the first payload is the commit point."""
        kind = type(event)
        if kind is Text:
            self.text_chars += len(event.text)          # type: ignore[attr-defined]
        elif kind is ev.Reasoning:
            self.reasoning_chars += len(event.text)     # type: ignore[attr-defined]
        if self.committed:
            self._out.append(event)
            return
        self._preamble.append(event)
        self._n_held += n_bytes(event)
        if self._rules.stream and not self._closing and pays(event, self._thinking_pays):
            self._commit()

    def _commit(self) -> None:
        self.committed = True
        self._out += self._preamble
        self._preamble, self._n_held = [], 0

    def _ripen(self) -> None:
        """Thinking that waited ``hold_max_s`` is payload from now on."""
        if self.committed or not self._rules.stream or self._now - self._started < self._rules.hold_max_s:
            return
        self._thinking_pays = True
        if self.reasoning_chars:
            self._commit()

    def _bound(self, choice: Choice) -> None:
        """Nothing is held without limit: above it what is held commits, unchecked."""
        if self._n_held + choice.n_held <= self._rules.hold_max_bytes // len(self._choices):
            return
        for held in self._choices.values():
            if held.hold:
                for event in held.give_up("overflow"):
                    self._leave(event)
        if not self.committed:
            self._commit()

    # -- the end

    def _decide(self, lenient: bool = False) -> None:
        """The verdict over the whole turn: it leaves with one terminal, or fails."""
        self._judged = True
        if not self._choices:
            self._choice(0)
        try:
            self._flush()
            lenient = lenient or self.committed
            choices = [self._choices[index] for index in sorted(self._choices)]
            endings = [settle(choice, self._rules, lenient) for choice in choices]
        except GatewayError as unusable:
            self._fail(unusable)
            return
        error = next((ending.error for ending in endings if ending.error is not None), None)
        if error is None and not lenient:
            error = emptiness(choices, endings)
        if error is None:
            self._finish(choices, endings)
        else:
            self._fail(error)

    def _finish(self, choices: list[Choice], endings: list[Ending]) -> None:
        """A whole turn: all that is left of it, in the order that every format can write."""
        if not self.committed:
            self._commit()
        finishes: list[ev.Finish] = []
        n_rescued = 0
        for choice, ending in zip(choices, endings, strict=True):
            for event in ending.events:
                self._leave(event)
            self._out += ending.calls
            n_rescued += sum([len(call.name) + len(call.arguments) for call in ending.calls])
            finishes.append(finish(choice, ending))
            self.touched = self.touched or ending.touched or finishes[-1] is not choice.finish
        self.finish = finishes[0].reason
        said, n_chars = self.usage, self.text_chars + (self.call_chars or n_rescued)
        self.usage = tokens.settle(said, self._rules.prompt_tokens, n_chars, self.reasoning_chars)
        self.touched = self.touched or self.usage is not said
        self._out += [*finishes, self.usage, self._end or ev.End()]
        self._settled = self.done = True

    def _fail(self, error: GatewayError) -> None:
        """The turn is lost: silently before the commit point, told after it."""
        self.fault = error
        self._settled = self.done = True
        if self.committed:
            self._flush()
            self._out.append(ev.Fault(error))

    def _flush(self) -> None:
        self._closing = True
        for choice in self._choices.values():
            for event in choice.flush():
                self._leave(event)

    def _choice(self, index: int) -> Choice:
        choice = self._choices.get(index)
        if choice is None:
            if not 0 <= index < MAX_CHOICES:
                raise GatewayError("bad_reply", f"the upstream sent a choice with the index {index}")
            choice = self._choices[index] = Choice(index, self._rules)
        return choice

    def _token(self, text: str = "…") -> None:
        if self.first_token_at is None:
            self.first_token_at = self._now
        self.spoke = self.spoke or not text.isspace()


_ON: Final[dict[type[Event], Callable[[Turn, Any], None]]] = {
    ev.Meta: Turn._on_meta,
    Text: Turn._on_text,
    ev.Reasoning: Turn._on_reasoning,
    ev.Refusal: Turn._on_other,
    ev.Opaque: Turn._on_other,
    ev.ToolDelta: Turn._on_tool,
    ev.Usage: Turn._on_usage,
    ev.Finish: Turn._on_finish,
    ev.Fault: Turn._on_fault,
    ev.End: Turn._on_end,
}

# Failures of the verdict that leave something to deliver when no target is left (contract 7); so does "empty" with thinking.
_SALVAGE: Final = frozenset({"unparseable_dialect", "truncated_json", "format_ignored", "empty_length"})
