"""How do tool calls leave while they are still being written? Started once their name is sure, their arguments repaired on the way.

The same board as for whole delivery decides whose a piece is, and the same scanner repairs. What has left cannot be taken back:
a call that turns out broken is named in ``invalid`` and the turn ends it.
"""
from gateway.core.events import ToolArgs, ToolDelta, ToolStart
from gateway.stream.json_text import strict
from gateway.stream.mend import Mender
from gateway.stream.shape import shape
from gateway.stream.toolcalls import NAMELESS, Board, Ids, Names, Piled, Schemas, broken

Leaving = list[ToolStart | ToolArgs]


class _Sent:
    """What of a call has left. ``mender`` is None for free text."""
    __slots__ = ("index", "name", "mender", "fed", "pieces")

    def __init__(self, index: int, name: str, mender: Mender | None) -> None:
        self.index = index
        self.name = name
        self.mender = mender
        self.fed = False
        self.pieces: list[str] = []


class LiveCalls:
    """The calls of one choice, leaving as they come."""
    __slots__ = ("invalid", "_board", "_schemas", "_names", "_ids", "_sent", "_n_started", "_n_settled")

    def __init__(self, schemas: Schemas) -> None:
        self.invalid: list[str] = []
        self._board = Board()
        self._schemas = schemas
        self._names = Names(schemas)
        self._ids = Ids()
        self._sent: dict[int, _Sent] = {}         # by the call's order
        self._n_started = 0
        self._n_settled = 0                       # calls that began before the newest one

    def __bool__(self) -> bool:
        return bool(self._board.calls)

    def __len__(self) -> int:
        return len(self._board.calls)

    @property
    def n_bytes(self) -> int:
        return self._board.n_bytes

    def add(self, delta: ToolDelta) -> Leaving:
        call, piece = self._board.place(delta)
        if call is None:
            return []
        sent = self._sent.get(call.order)
        if sent is not None:
            return self._feed(call, sent, piece)
        out: Leaving = []
        for earlier in self._board.calls[self._n_settled:call.order]:     # their names are complete: another call has begun
            if earlier.name and earlier.order not in self._sent:
                out += self._start(earlier)
        self._n_settled = max(self._n_settled, call.order)
        # before any argument a name may only leave if it cannot go on
        if call.name and (call.tail or (call.id and self._names.sure(call.name))):
            out += self._start(call)
        return out

    def close(self, cut: bool = False) -> Leaving:
        """The turn is over. ``cut``: the output limit ended it, so nothing is invalid and nothing is completed."""
        out: Leaving = []
        if self._board.overfull:
            self.invalid.append("too many tool calls")
        for call in self._board.calls:
            if not call.name:
                self.invalid += [] if cut else [NAMELESS]
                continue
            if call.order not in self._sent:
                out += self._start(call)
            sent = self._sent[call.order]
            if sent.mender is None or (cut and not call.tail):
                continue
            out += self._piece(call, sent, sent.mender.close())
            if not cut and not _is_object("".join(sent.pieces)):
                self.invalid.append(broken(sent.name))
        return out

    def _start(self, call: Piled) -> Leaving:
        name = self._names.meant(call.name)
        mender = Mender(shape(self._schemas.get(name))) if call.kind == "function" else None
        sent = self._sent[call.order] = _Sent(self._n_started, name, mender)
        self._n_started += 1
        start = ToolStart(sent.index, self._ids.unique(call.id), name, call.choice, call.kind, call.extra)
        return [start, *self._feed(call, sent, call.arguments)]

    def _feed(self, call: Piled, sent: _Sent, piece: str) -> Leaving:
        if sent.mender is None or not piece:
            return self._piece(call, sent, piece)
        if call.announced:                        # perhaps no arguments at all, perhaps they follow: close() tells
            return []
        if not sent.fed:
            sent.fed, piece = True, call.arguments
        return self._piece(call, sent, sent.mender.feed(piece))

    def _piece(self, call: Piled, sent: _Sent, text: str) -> Leaving:
        if not text:
            return []
        sent.pieces.append(text)
        return [ToolArgs(sent.index, text, call.choice)]


def _is_object(text: str) -> bool:
    try:
        return isinstance(strict(text), dict)
    except ValueError:
        return False
