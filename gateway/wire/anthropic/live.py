"""May this piece of a call go out now? Calls that a turn delivers live may overlap; blocks of a Messages stream may not."""
from gateway.core import events as ev
from gateway.wire.anthropic.schema import load


class LiveCalls:
    """Holds what would interrupt a call whose arguments are not complete yet."""

    __slots__ = ("idle", "_index", "_said", "_held")

    def __init__(self) -> None:
        self.idle = True                         # no live call is open: everything may go
        self._index = -1
        self._said: list[str] = []
        self._held: list[ev.Event] = []

    def holds(self, event: ev.Event) -> bool:
        """Keep the event from going out now? ``rest`` gives back what must not be lost."""
        kind = type(event)
        if self.idle:
            if kind is ev.ToolStart:
                self._open(event.index)  # type: ignore[attr-defined]
            return kind is ev.ToolArgs           # of a call that is closed: blanks after its last brace
        if kind is ev.ToolArgs and event.index == self._index:  # type: ignore[attr-defined]
            self._said.append(event.text)  # type: ignore[attr-defined]
            return False
        if kind in _ANYTIME:
            return False
        if not self._held and self._complete():
            self.idle = True
            return self.holds(event)
        self._held.append(event)
        return True

    def rest(self) -> list[ev.Event]:
        """The turn is over: what was held, each call's pieces together."""
        held, self._held, self.idle = self._held, [], True
        out: list[ev.Event] = []
        for event in held:
            if type(event) is ev.ToolArgs:
                continue
            out.append(event)
            if type(event) is ev.ToolStart:
                out += [piece for piece in held if type(piece) is ev.ToolArgs and piece.index == event.index]
        return out

    def _open(self, index: int) -> None:
        self.idle = False
        self._index = index
        self._said = []

    def _complete(self) -> bool:
        try:
            load("".join(self._said).encode("utf-8", "surrogatepass"))
        except ValueError:
            return False
        return True


_ANYTIME = frozenset({ev.Meta, ev.Usage, ev.Finish, ev.Fault, ev.End})
