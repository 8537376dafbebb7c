"""Does an answer spell out its account's key, piece by piece? What no frame says and all of them together do is blotted out here.

A key in one piece never comes so far (``core.redact.Scrubber`` looks at the bytes). Cut over frames, or escaped inside of
arguments, it is only seen in what leaves. The end of a text that may become the key waits for what follows; a first look at the
beginning of the key keeps everything else from waiting, and costs some hundred nanoseconds a read.
"""
import re
from typing import Any, Final

from msgspec.structs import replace

from gateway.core import events as ev
from gateway.core.events import Event, Text
from gateway.core.redact import MASK, spelled_out

HEAD: Final = 6                              # so much of a key is worth waiting for
_PIECES: Final = frozenset({Text, ev.Reasoning, ev.Refusal, ev.ToolArgs})
_SAYING: Final = _PIECES | {ev.ToolCall, ev.ToolStart}
# What an escape leaves open at the end of a piece of JSON text; an even number of backslashes is none.
_BEGUN_ESCAPE: Final = re.compile(r"(\\+)(u[0-9a-fA-F]{0,3})?\Z").search
_ENDS: Final = frozenset({ev.Finish, ev.End, ev.Fault})


class _Flow:
    """One text on its way: the last that left, too short to matter, and what waits; ``n_cut`` of it because an escape is cut."""
    __slots__ = ("tail", "held", "last", "json", "n_cut")

    def __init__(self, json: bool = False) -> None:
        self.tail = self.held = ""
        self.last: Any = None
        self.json = json                         # a call's arguments: a key may be written with escapes
        self.n_cut = 0


class Veil:
    """Of one attempt. ``holding``: something waits, so nothing may pass by."""
    __slots__ = ("holding", "touched", "_secret", "_head", "_flows", "_main")

    def __init__(self, secret: str) -> None:
        self.holding = self.touched = False
        self._secret = secret
        self._head = secret[:HEAD]
        self._main = _Flow()                     # visible text of the first choice
        self._flows: dict[tuple[type[Event], int, int], _Flow] = {(Text, 0, 0): self._main}

    def suspects(self, said: str) -> bool:
        """May this text of the first choice, which nobody took apart, be part of a key? Then it must be."""
        joined = self._main.tail + said
        if self.holding or self._head in joined:
            return True
        self._main.tail = joined[1 - HEAD:]
        return False

    def cover(self, events: list[Event]) -> list[Event]:
        """What may leave of these; the very list where nothing is to be hidden."""
        if not self.holding and self._plain(events):
            return events
        out: list[Event] = []
        for event in events:
            kind = type(event)
            if kind in _PIECES:
                self._piece(event, out)
            elif kind is ev.ToolCall:
                out.append(self._call(event))    # type: ignore[arg-type]
            else:
                if kind is ev.ToolStart:
                    key = (ev.ToolArgs, event.choice, event.index)                  # type: ignore[attr-defined]
                    self._flows[key] = _Flow(json=event.kind != "custom")           # type: ignore[attr-defined]
                if kind in _ENDS and self.holding:
                    self._release(out)
                out.append(event)
        self.holding = any(flow.held for flow in self._flows.values())
        return out

    def _plain(self, events: list[Event]) -> bool:
        """Is all that these say visible text of the first choice, and none of it suspect?"""
        if len(events) == 1 and type(only := events[0]) is Text and not only.choice:
            return not self.suspects(only.text)      # nearly every read of a stream
        said: list[str] = []
        for event in events:
            kind = type(event)
            if kind is Text and not event.choice:    # type: ignore[attr-defined]
                said.append(event.text)              # type: ignore[attr-defined]
            elif kind in _SAYING:
                return False
        return not said or not self.suspects("".join(said))

    def _piece(self, event: Any, out: list[Event]) -> None:
        key = (type(event), event.choice, getattr(event, "index", 0))
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = _Flow()
        fresh, flow.n_cut = flow.held + event.text, 0
        if flow.json and "\\" in fresh:
            fresh, flow.n_cut = _readable(fresh), _n_cut(fresh)
        text, n_sent = self._blotted(flow.tail + fresh, len(flow.tail))
        n_open = self._n_open(text[:len(text) - flow.n_cut]) + flow.n_cut
        leaving, waiting = text[n_sent:max(n_sent, len(text) - n_open)], text[max(n_sent, len(text) - n_open):]
        if leaving == event.text:
            out.append(event)
        elif leaving or getattr(event, "signature", None) or getattr(event, "redacted", None):
            out.append(_retold(event, leaving))
        flow.held, flow.last = waiting, event
        flow.tail = (text[:n_sent] + leaving)[1 - HEAD:]
        self.holding = self.holding or bool(waiting)

    def _blotted(self, text: str, n_sent: int) -> tuple[str, int]:
        """The text without the key; of what has left already, at most the first letters are part of one."""
        at = text.find(self._secret)
        if at < 0:
            return text, n_sent
        self.touched = True
        n_sent = min(n_sent, at)
        return text[:at] + text[at:].replace(self._secret, MASK), n_sent

    def _n_open(self, text: str) -> int:
        """Length of the end that begins the key, if it is worth waiting for."""
        end = text[1 - len(self._secret):]
        at = end.find(self._head)
        while at >= 0:
            if self._secret.startswith(end[at:]):
                return len(end) - at
            at = end.find(self._head, at + 1)
        return 0

    def _release(self, out: list[Event]) -> None:
        """Nothing follows. Half a key and more is as good as one."""
        for flow in self._flows.values():
            if flow.held:
                known = len(flow.tail) + len(flow.held) if len(flow.held) > flow.n_cut else 0
                self.touched = True
                out.append(_retold(flow.last, MASK if 2 * known >= len(self._secret) else flow.held))
                flow.held = flow.tail = ""
        self.holding = False

    def _call(self, event: ev.ToolCall) -> ev.ToolCall:
        arguments = _readable(event.arguments)
        if self._secret not in arguments and self._secret not in event.name:
            return event
        self.touched = True
        return replace(event, arguments=arguments.replace(self._secret, MASK), name=event.name.replace(self._secret, MASK))


def _readable(arguments: str) -> str:
    """JSON text without escapes that could hide a key."""
    if "\\u00" not in arguments:
        return arguments
    return spelled_out(arguments.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _n_cut(text: str) -> int:
    """Length of the escape that is cut at the end of a piece."""
    found = _BEGUN_ESCAPE(text)
    return 1 + len(found[2] or "") if found is not None and len(found[1]) % 2 else 0


def _retold(event: Any, text: str) -> Event:
    made: Event = replace(event, text=text) if type(event) is ev.ToolArgs else replace(event, text=text, raw=None)
    return made
