"""How are single fields of a finished body filled in, fixed or left out? By path; everything else stays as it was written."""
import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.wire import splice
from gateway.wire.lenient import dump, load

Path = tuple[str, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """``remove`` comes first, so that a whole object can be replaced; then ``default`` where nothing stands, then ``override``."""
    remove: tuple[Path, ...] = ()
    default: tuple[tuple[Path, Any], ...] = ()
    override: tuple[tuple[Path, Any], ...] = ()


def changed(body: bytes, changes: Sequence[Change]) -> bytes:
    """The body after all changes, in their order."""
    doc = _Opened(body)
    for change in changes:
        for path in change.remove:
            doc.remove(path)
        for path, value in change.default:
            doc.put(path, value, over=False)
        for path, value in change.override:
            doc.put(path, value, over=True)
    return doc.closed()


class _Opened:
    """The top level of a body; only what a path leads into is decoded."""

    def __init__(self, body: bytes) -> None:
        self._top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(body))
        self._decoded: dict[str, Any] = {}

    def remove(self, path: Path) -> None:
        *way, last = path
        if not way:
            self._top.pop(last, None)
            self._decoded.pop(last, None)
        elif (inside := self._inside(way, make=False, over=False)) is not None:
            inside.pop(last, None)

    def put(self, path: Path, value: Any, over: bool) -> None:
        *way, last = path
        if not way:
            if over or self._value(last) is None:
                self._top[last], self._decoded[last] = b"", copy.deepcopy(value)
        elif (inside := self._inside(way, make=True, over=over)) is not None:
            if over or inside.get(last) is None:
                inside[last] = copy.deepcopy(value)

    def closed(self) -> bytes:
        return splice.join(self._top | {name: dump(value) for name, value in self._decoded.items()})

    def _value(self, name: str) -> Any:
        if name in self._decoded:
            return self._decoded[name]
        if name not in self._top:
            return None
        raw = bytes(self._top[name])
        return None if raw == b"null" else raw

    def _inside(self, way: Sequence[str], make: bool, over: bool) -> dict[str, Any] | None:
        """The object at the end of a way; None where something else stands in it that is not to be replaced."""
        first, *rest = way
        found = self._value(first)
        if isinstance(found, bytes):
            found, _ = load(found)
        if not isinstance(found, dict):
            if not make or (found is not None and not over):
                return None
            found = {}
        self._top.setdefault(first, b"")
        self._decoded[first] = found
        for name in rest:
            inner = found.get(name)
            if not isinstance(inner, dict):
                if not make or (inner is not None and not over):
                    return None
                inner = found[name] = {}
            found = inner
        return found
