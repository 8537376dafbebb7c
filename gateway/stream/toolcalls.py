"""Which tool calls did the upstream make, whatever way it cut and numbered their pieces?

Upstreams number calls by index, by id, by both or not at all; some send index 0 for every parallel call, some start late, some
repeat the id or the whole name on each piece, some send the complete arguments once more at the end. ``Board`` decides which
call a piece belongs to, in constant time a piece; ``Calls`` hands out the finished calls, complete and repaired.
"""
import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final

from gateway.core.events import ToolCall, ToolDelta
from gateway.core.ids import call_id
from gateway.stream.json_text import strict
from gateway.stream.mend import nothing
from gateway.stream.repair import checked

MAX_CALLS: Final = 1024                           # in one choice; more is no turn but an attack
_MAX_COMPARED: Final = 8                          # times per call that complete arguments are compared with a repetition

Schemas = Mapping[str, Mapping[str, Any] | None]

# Kimi's call ids (functions.NAME:0) and gpt-oss's channel tokens end up in names when a server's own parser slips
_SIGNS: Final = re.compile(r"[^0-9A-Za-z]")
_CUT: Final = 60                                  # of the longest names that every API takes (64), less a sign or two
_NAME = re.compile(r"(?:functions[.:])?([^<:\s]+)(?::\d+)?(?:<\|.*)?", re.DOTALL)


class Piled:
    """One call while its pieces come. ``parts`` are its arguments so far, ``order`` its place among the calls."""
    __slots__ = ("order", "index", "id", "name", "parts", "kind", "extra", "whole", "tail", "n_compared", "choice")

    def __init__(self, delta: ToolDelta, order: int) -> None:
        self.order = order
        self.index = delta.index
        self.id = self.name = ""
        self.parts: list[str] = []
        self.kind = "function"
        self.extra: dict[str, Any] | None = None
        self.whole = False                        # the arguments came in one piece, as an object
        self.tail = ""                            # the last character that is not blank
        self.n_compared = 0
        self.choice = delta.choice

    @property
    def arguments(self) -> str:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""

    @property
    def closed(self) -> bool:
        """The arguments may be complete: cheap, for a decision that a full parse confirms where it matters."""
        return self.tail == "}"

    @property
    def announced(self) -> bool:
        """Only an empty object so far: no arguments, or it stands for "arguments follow" as in content_block_start."""
        return len(self.parts) == 1 and self.parts[0].strip() == "{}"


class Board:
    """Pieces -> calls, in order of first appearance."""
    __slots__ = ("calls", "n_bytes", "overfull", "_by_index", "_by_id", "_last")

    def __init__(self) -> None:
        self.calls: list[Piled] = []
        self.n_bytes = 0
        self.overfull = False
        self._by_index: dict[int, Piled] = {}
        self._by_id: dict[str, Piled] = {}
        self._last: Piled | None = None

    def place(self, delta: ToolDelta) -> tuple[Piled | None, str]:
        """The piece's call, and what it adds to the call's arguments. None: there are too many calls already."""
        if not delta.id and not delta.name and not delta.whole and delta.extra is None:
            call = self._last if delta.index is None else self._by_index.get(delta.index)
            if call is not None and not (call.closed or call.whole):
                self._last = call
                return call, self._append(call, delta.arguments)
        call = self._find(delta)
        if call is None:
            call = self._new(delta)
            if call is None:
                return None, ""
        self._merge(call, delta)
        return call, self._argue(call, delta)

    # -- whose piece is it?

    def _find(self, delta: ToolDelta) -> Piled | None:
        known = self._by_id.get(delta.id) if delta.id else None
        if known is not None:
            return self._by_known_id(known, delta)
        call = self._last if delta.index is None else self._by_index.get(delta.index)
        if call is None:
            return None
        return self._by_new_id(call, delta) if delta.id else self._by_position(call, delta)

    def _by_known_id(self, call: Piled, delta: ToolDelta) -> Piled | None:
        """The id is the call, unless one id serves for several: another index or, after complete arguments, another name."""
        if delta.index is not None and delta.index != call.index:
            at_index = self._by_index.get(delta.index)
            if not delta.name:
                return at_index or call
            if at_index is None or at_index.name != delta.name:
                return None
            call = at_index
        return None if delta.name and delta.name != call.name and call.closed else call

    def _by_new_id(self, call: Piled, delta: ToolDelta) -> Piled | None:
        """A new id with a name is a new call; without a name it is an id that came late, or one that changes on each piece."""
        if not delta.name:
            return None if delta.index is None and call.id else call
        if not call.id:
            return call if not call.parts or (delta.name == call.name and not call.closed) else None
        continues = delta.name == call.name and call.tail and not call.closed and delta.index is not None
        return call if continues and not delta.arguments.lstrip().startswith("{") else None

    def _by_position(self, call: Piled, delta: ToolDelta) -> Piled | None:
        """No id: the index or the order decides, and a name after complete arguments begins the next call."""
        if not delta.name:
            return call
        if delta.name == call.name:
            again = call.closed and (delta.whole or delta.arguments.lstrip().startswith("{"))
            return None if again and not self._same(call, delta.arguments) else call
        if call.tail or delta.index is None:
            return None
        return call

    def _new(self, delta: ToolDelta) -> Piled | None:
        if len(self.calls) >= MAX_CALLS:
            self.overfull = True
            return None
        call = Piled(delta, len(self.calls))
        self.calls.append(call)
        return call

    # -- what does it say?

    def _merge(self, call: Piled, delta: ToolDelta) -> None:
        self._last = call
        if delta.index is not None:
            self._by_index[delta.index] = call
        if delta.id:
            call.id = call.id or delta.id
            self._by_id[delta.id] = call
        if delta.name and delta.name != call.name and not call.tail:
            call.name += delta.name
            self.n_bytes += len(delta.name)
        if delta.kind != "function":
            call.kind = delta.kind
        if delta.extra:
            call.extra = {**(call.extra or {}), **delta.extra}

    def _argue(self, call: Piled, delta: ToolDelta) -> str:
        text = delta.arguments
        if not text or call.kind == "custom":
            return self._append(call, text)
        if delta.whole:
            return self._state(call, text)
        if call.closed and text.lstrip().startswith("{"):
            if call.announced:
                call.parts, call.whole = [], False
            elif self._same(call, text):
                return ""
        return self._append(call, text)

    def _state(self, call: Piled, text: str) -> str:
        """Complete arguments: they replace what was only announced, and repeat what was already said."""
        if call.tail and (text.strip() in ("{}", "null") or self._same(call, text)):
            return ""
        call.parts, call.whole = [], True
        return self._append(call, text)

    def _append(self, call: Piled, text: str) -> str:
        if text:
            call.parts.append(text)
            self.n_bytes += len(text)
            call.tail = text.rstrip()[-1:] or call.tail
        return text

    def _same(self, call: Piled, text: str) -> bool:
        """Does ``text`` say what the call's arguments say already?"""
        if not text.rstrip().endswith("}") or call.n_compared >= _MAX_COMPARED:
            return False
        call.n_compared += 1
        if call.arguments == text:
            return True
        try:
            return bool(strict(text) == strict(call.arguments))
        except ValueError:
            return False


class Calls:
    """The calls of one choice, handed out when the turn is over."""
    __slots__ = ("invalid", "_board")

    def __init__(self) -> None:
        self.invalid: list[str] = []
        self._board = Board()

    def __bool__(self) -> bool:
        return bool(self._board.calls)

    def __len__(self) -> int:
        return len(self._board.calls)

    @property
    def n_bytes(self) -> int:
        return self._board.n_bytes

    def add(self, delta: ToolDelta) -> None:
        self._board.place(delta)

    def finished(self, schemas: Schemas, cut: bool = False) -> list[ToolCall]:
        """The calls that may leave; those that may not are named in ``invalid``. ``cut``: the output limit ended the turn,
        so nothing is invalid and the last call passes as it is."""
        self.invalid = ["too many tool calls"] if self._board.overfull else []
        ids, names = Ids(), Names(schemas)
        found: list[ToolCall] = []
        for call in self._board.calls:
            name = names.meant(call.name)
            arguments, reason = self._judged(call, name, schemas, cut)
            if reason and not cut:
                self.invalid.append(reason)
            elif call.name:
                found.append(ToolCall(len(found), ids.unique(call.id), name, arguments, call.choice, call.kind, call.extra))
        return found

    def _judged(self, call: Piled, name: str, schemas: Schemas, cut: bool) -> tuple[str, str]:
        arguments = call.arguments
        if call.kind == "custom":
            return arguments, "" if name else NAMELESS
        if cut and call is self._board.calls[-1] and nothing(arguments):
            return arguments, ""
        mended, good = checked(arguments, schemas.get(name), guess=not cut)
        return mended, broken(name) if name and not good else "" if name else NAMELESS


NAMELESS: Final = "a call without a name"


def broken(name: str) -> str:
    return f"{name[:64]}: arguments are not a JSON object"


def declared(name: str, schemas: Schemas) -> str:
    """The declared name that a slightly wrong one means; the name itself if there is none."""
    return Names(schemas).meant(name)


class Names:
    """The declared names, for the calls of one turn: spelled out at most once, whatever an upstream calls and how often."""
    __slots__ = ("_schemas", "_sorted", "_spelled", "_starts")

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._sorted: list[str] | None = None
        self._spelled: dict[str, str] | None = None
        self._starts: list[str] = []              # the spellings in order, to find the one that a cut one begins

    def meant(self, name: str) -> str:
        """The declared name that a slightly wrong one means; the name itself if there is none."""
        schemas = self._schemas
        if name in schemas or not schemas:
            return name
        found = _NAME.fullmatch(name.strip())
        if found and found[1] in schemas:
            return found[1]
        # A wire has to respell a name where its API takes fewer signs or a shorter one; models mix up signs as well.
        return self._by_spelling(name)

    def _by_spelling(self, name: str) -> str:
        if self._spelled is None:
            self._spelled = {_spelled(one): one for one in reversed(list(self._schemas))}
            self._starts = sorted(self._spelled)
        told = _spelled(name)
        if told in self._spelled:
            return self._spelled[told]
        at = bisect_left(self._starts, told)
        longer = self._starts[at] if len(told) >= _CUT and at < len(self._starts) else ""
        return self._spelled[longer] if longer.startswith(told) and longer else name

    def sure(self, name: str) -> bool:
        """Is this a declared name with which no other begins?"""
        if name not in self._schemas:
            return False
        if self._sorted is None:
            self._sorted = sorted(self._schemas)
        at = bisect_left(self._sorted, name) + 1
        return at == len(self._sorted) or not self._sorted[at].startswith(name)


def _spelled(name: str) -> str:
    return _SIGNS.sub("_", name).lstrip("_")


class Ids:
    """Ids that are unique in a choice: the upstream's own where it can be."""
    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, wanted: str) -> str:
        chosen = wanted if wanted and wanted not in self._taken else call_id()
        self._taken.add(chosen)
        return chosen
