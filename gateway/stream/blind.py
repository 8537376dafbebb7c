"""How is an answer told otherwise while it streams? Each of its texts goes through a rewriter; an end that may still change waits.

What waits of a text leaves before anything of another kind does, so the order stays. Arguments of a call are rewritten whole: what
is no text in them (a number) may have to become one. With it nothing passes unread.
"""
from typing import Any, Final, Protocol

from msgspec.structs import replace

from gateway.core import events as ev
from gateway.core.events import Event
from gateway.stream.veil import Veil

KEPT: Final = 8                                  # characters that have left and may still be looked back at
MAX_HELD: Final = 4 << 20                        # of arguments that are kept together
_TEXTS: Final = frozenset({ev.Text, ev.Reasoning, ev.Refusal})
_ENDS: Final = frozenset({ev.End, ev.Fault})
_BREAKS: Final = frozenset({ev.ToolCall, ev.ToolStart, ev.Opaque, ev.Finish})


class Rewriter(Protocol):
    """Texts out of any pieces come out the same."""

    def leaving(self, text: str, pos: int, last: bool, thought: bool) -> tuple[str, int]:
        """(what is told of it from ``pos`` on, up to where it is settled)."""
        ...

    def arguments(self, text: str) -> str: ...


class _Flow:
    """One text: what was seen of it last, from where on it waits, and what must be known of the calls it belongs to."""
    __slots__ = ("text", "pos", "last", "whole", "plain", "changed")

    def __init__(self, whole: bool = False, plain: bool = False) -> None:
        self.text = ""
        self.pos = 0
        self.last: Any = None
        self.whole = whole                       # waits for its end
        self.plain = plain                       # arguments that are no JSON
        self.changed = False


Key = tuple[type[Event], int, int]


class Blind:
    """Of one attempt."""
    __slots__ = ("touched", "_rewriter", "_flows", "_customs")
    holding = True

    def __init__(self, rewriter: Rewriter) -> None:
        self.touched = False
        self._rewriter = rewriter
        self._flows: dict[Key, _Flow] = {}
        self._customs: set[tuple[int, int]] = set()      # calls whose arguments are free text

    def suspects(self, said: str) -> bool:
        return True

    def cover(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            kind = type(event)
            if kind in _TEXTS:
                self._text(event, out)
            elif kind is ev.ToolArgs:
                self._arguments(event, out)              # type: ignore[arg-type]
            else:
                if kind in _BREAKS:
                    self._release(out, event.choice)     # type: ignore[attr-defined]
                elif kind in _ENDS:
                    self._release(out, None)
                if kind is ev.ToolStart and event.kind == "custom":      # type: ignore[attr-defined]
                    self._customs.add((event.choice, event.index))       # type: ignore[attr-defined]
                out.append(self._call(event) if kind is ev.ToolCall else event)
        return out

    def _text(self, event: Any, out: list[Event]) -> None:
        key: Key = (type(event), event.choice, 0)
        self._release(out, event.choice, key)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = _Flow()
        thought = type(event) is ev.Reasoning
        sealed = thought and bool(event.signature or event.redacted)
        flow.last = event
        flow.text += event.text
        told = self._settled(flow, last=sealed)          # a seal is the end of what it is about
        if sealed and flow.changed and event.signature:
            event = replace(event, signature=None, raw=None)             # of other words than these
        if told == event.text:
            out.append(event)
        elif told or sealed:
            out.append(replace(event, text=told, raw=None))

    def _settled(self, flow: _Flow, last: bool) -> str:
        thought = type(flow.last) is ev.Reasoning
        told, pos = self._rewriter.leaving(flow.text, flow.pos, last, thought)
        if told != flow.text[flow.pos:pos]:
            self.touched = flow.changed = True
        kept = max(pos - KEPT, 0)
        flow.text, flow.pos = flow.text[kept:], pos - kept
        return told

    def _arguments(self, event: ev.ToolArgs, out: list[Event]) -> None:
        key: Key = (ev.ToolArgs, event.choice, event.index)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = _Flow(whole=True, plain=(event.choice, event.index) in self._customs)
        flow.last = event
        flow.text += event.text
        if len(flow.text) > MAX_HELD:
            self._let_go(key, flow, out)

    def _release(self, out: list[Event], choice: int | None, but: Key | None = None) -> None:
        """Nothing follows in these texts for now: all of a choice (None = of all), but for one."""
        flows = self._flows
        if not flows or (len(flows) == 1 and but in flows):
            return
        for key, flow in list(flows.items()):
            if key != but and choice in (None, key[1]):
                self._let_go(key, flow, out)

    def _let_go(self, key: Key, flow: _Flow, out: list[Event]) -> None:
        del self._flows[key]
        if flow.whole and not flow.plain:
            told = self._rewriter.arguments(flow.text)
            self.touched = self.touched or told != flow.text
        else:
            told = self._settled(flow, last=True)
        if told and flow.last is not None:
            out.append(_retold(flow.last, told))

    def _call(self, event: Any) -> Event:
        plain = event.kind == "custom"
        told = self._rewriter.leaving(event.arguments, 0, True, False)[0] if plain else self._rewriter.arguments(event.arguments)
        if told == event.arguments:
            return event                                 # type: ignore[no-any-return]
        self.touched = True
        made: Event = replace(event, arguments=told)
        return made


class Veiled:
    """Behind a veil over the account's key."""
    __slots__ = ("_veil", "_blind")
    holding = True

    def __init__(self, veil: Veil, blind: "Veil | Blind | Veiled") -> None:
        self._veil = veil
        self._blind = blind

    @property
    def touched(self) -> bool:
        return self._veil.touched or self._blind.touched

    def suspects(self, said: str) -> bool:
        return True

    def cover(self, events: list[Event]) -> list[Event]:
        return self._blind.cover(self._veil.cover(events))


def _retold(event: Any, text: str) -> Event:
    if type(event) is ev.ToolArgs:
        return replace(event, text=text)
    if type(event) is ev.Reasoning:
        return ev.Reasoning(text, choice=event.choice)   # what was sealed has left already
    made: Event = replace(event, text=text, raw=None)
    return made
