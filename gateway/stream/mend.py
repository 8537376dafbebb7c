"""How are a tool call's arguments repaired while they are still on their way?

A scanner over pieces of JSON text, cut anywhere. All of it leaves at once but for four things:
- a string where the schema declares an array or object, if it begins like one: held until it closes, then it goes out decoded
  if it parses to that type, else as it came;
- a string that is the whole value and holds an object: unwrapped on the way;
- a comma, until it is known that no bracket closes behind it;
- a whole value that is neither object nor string: held to the end, because ``null`` and ``[]`` stand for no arguments.
Raw control characters inside strings are escaped. The text is never decoded and encoded again, so numbers keep their digits.
"""
import re
from collections.abc import Callable
from typing import Final

from gateway.stream.json_text import MAX_DEPTH, decoded, escape_controls, strict, unescaped
from gateway.stream.shape import ANY, Shape

_STOP = re.compile(r'["\\]').search               # ends a run inside a string
_MARK = re.compile(r'["{}\[\],]').search          # ends a run outside of strings
_BLANK: Final = " \t\r\n"
_FIRST = re.compile(r"(?:[ \t\r\n]|\\[nrt])*+(\\?)(.?)", re.DOTALL)

# where the scanner stands; an index into _STEPS
_ROOT, _SCALAR, _BETWEEN, _KEY, _TEXT, _HELD, _WRAPPED, _BLIND = range(8)


class _Frame:
    """An open object or array: what is declared there, whether a key comes next, whether a value just ended."""
    __slots__ = ("shape", "is_object", "at_key", "ended", "index", "key")

    def __init__(self, shape: Shape, is_object: bool) -> None:
        self.shape = shape
        self.is_object = self.at_key = is_object
        self.ended = False
        self.index = 0
        self.key = ""

    def child(self) -> Shape:
        if self.shape is ANY:
            return ANY
        return self.shape.key(self.key) if self.is_object else self.shape.item(self.index)


class Mender:
    """One value on its way. ``feed`` and ``close`` return what may leave; together they make the repaired text."""
    __slots__ = ("_shape", "_at", "_root", "_stack", "_out", "_comma", "_escaped", "_kept", "_wanted", "_n_kept", "_n_look",
                 "_inner", "_pending")

    def __init__(self, shape: Shape, root: bool = True) -> None:
        self._shape = self._wanted = shape
        self._root = root
        self._at = _ROOT if root else _BETWEEN
        self._stack: list[_Frame] = []
        self._out: list[str] = []
        self._comma = ""                          # a comma that waits, and the blanks behind it
        self._escaped = False                     # the string's next character follows a backslash
        self._kept: list[str] = []                # of a key, a held string, a scalar
        self._n_kept = self._n_look = 0           # characters held, and from how many on to look how the string begins
        self._inner: Mender | None = None
        self._pending = ""                        # half an escape of a wrapped string

    def feed(self, text: str) -> str:
        at, n = 0, len(text)
        while at < n:
            at = _STEPS[self._at](self, text, at)
        if self._at == _HELD and self._n_kept >= self._n_look:
            self._look()
        out, self._out = "".join(self._out), []
        return out

    def close(self) -> str:
        """The end of the text: whatever is still held leaves as it came."""
        if self._at == _ROOT:
            self._out.append("{}")
        elif self._at == _SCALAR:
            whole = "".join(self._kept)
            self._out.append("{}" if nothing(whole) else whole)
        elif self._at == _HELD:
            self._out += ('"', *self._kept)
        elif self._inner is not None:
            self._out += (self._inner.feed(self._pending), self._inner.close())
        self._out.append(self._comma)
        out, self._out, self._comma = "".join(self._out), [], ""
        return out

    # -- outside of strings

    def _open(self, text: str, at: int) -> int:
        char = text[at]
        if char in _BLANK:
            return at + 1
        if char == '"':
            self._hold(self._shape)
            return at + 1
        self._at = _BETWEEN if char == "{" else _SCALAR
        return at

    def _scalar(self, text: str, at: int) -> int:
        self._kept.append(text[at:])
        return len(text)

    def _blind(self, text: str, at: int) -> int:
        self._out.append(text[at:])
        return len(text)

    def _between(self, text: str, at: int) -> int:
        mark = _MARK(text, at)
        end = mark.start() if mark else len(text)
        if end > at:
            run = text[at:end]
            if self._comma and not run.strip(_BLANK):
                self._comma += run
            else:
                self._out += (self._comma, run)
                self._comma = ""
        if mark is None:
            return end
        self._mark(text[end])
        return end + 1

    def _mark(self, char: str) -> None:
        top = self._stack[-1] if self._stack else None
        if char in "}]":
            self._out += (self._comma[1:], char)
            self._comma = ""
            if top is not None:
                self._stack.pop()
                self._end_value()
            return
        self._out.append(self._comma)
        self._comma = ""
        if char == ",":
            self._comma = ","
            if top is not None:
                top.index += 1
                top.at_key, top.ended = top.is_object, False
        elif top is not None and (top.ended or (top.at_key and char != '"')):
            self._out.append(char)
            self._at = _BLIND                     # no JSON any more: nothing can be repaired
        elif char == '"':
            self._string(top)
        else:
            self._out.append(char)
            self._stack.append(_Frame(top.child() if top is not None else self._shape, char == "{"))
            if len(self._stack) > MAX_DEPTH:
                self._at = _BLIND                 # no schema declares anything that deep

    def _end_value(self) -> None:
        if self._stack:
            self._stack[-1].ended = True
        else:
            self._at = _BLIND                     # the whole value is over

    # -- strings

    def _string(self, top: _Frame | None) -> None:
        self._escaped = False
        at_key = top is not None and top.at_key
        wanted = ANY if top is None or at_key else top.child()
        if wanted.array or wanted.object:
            self._hold(wanted)
            return
        self._at = _KEY if at_key else _TEXT
        self._kept = []
        self._out.append('"')

    def _hold(self, wanted: Shape) -> None:
        self._at, self._wanted = _HELD, wanted
        self._kept, self._n_kept, self._n_look = [], 0, 1

    def _characters(self, text: str, at: int) -> int:
        """A string's characters: they leave, are kept, or both, by what the string is."""
        start, n = at, len(text)
        if self._escaped:
            self._escaped = False
            self._pass(text[at])
            start = at = at + 1
        while (stop := _STOP(text, at)) is not None and text[stop.start()] == "\\":
            at = stop.start() + 2
            if at > n:
                self._escaped, at = True, n
                break
        end = stop.start() if stop is not None and not self._escaped else n
        if end > start:
            self._pass(escape_controls(text[start:end]))
        if stop is None or self._escaped:
            return n
        self._closed()
        return end + 1

    def _pass(self, run: str) -> None:
        if self._at != _HELD:
            self._out.append(run)
        if self._at != _TEXT:
            self._kept.append(run)
            self._n_kept += len(run)

    def _closed(self) -> None:
        where, self._at = self._at, _BETWEEN
        raw = "".join(self._kept)
        if where == _HELD:
            mended = _contained(raw, self._wanted) if self._stack else _unwrapped(raw, self._shape)
            self._out.append(f'"{raw}"' if mended is None else mended)
        else:
            self._out.append('"')
        if where == _KEY:
            top = self._stack[-1]
            top.at_key, top.key = False, decoded(raw) or ""
        else:
            self._end_value()

    def _look(self) -> None:
        """A held string that does not begin like the container it would have to be passes like any other.

        Looked at each time it has doubled, so that many small pieces cost no more than one large one.
        """
        start = "".join(self._kept)
        found = _FIRST.match(start)
        assert found is not None                  # it matches the empty text
        escape, first = found[1], found[2]
        if not first:
            self._n_look = 2 * self._n_kept + 1
        elif (escape and first == "u") or (self._stack and not escape and self._wanted.wants(first)):
            self._n_look = 1 << 62
        elif not self._stack and first == "{" and not escape:
            self._at, self._inner = _WRAPPED, Mender(self._shape)
            self._wrapped(start, 0)
        else:
            self._at = _TEXT
            self._out += ('"', start)

    def _wrapped(self, text: str, at: int) -> int:
        """Characters of a string that holds the whole object: decoded, and looked at like arguments that came plain."""
        assert self._inner is not None
        n_before = len(self._pending)
        text, self._pending = self._pending + text[at:], ""
        pieces: list[str] = []
        end, n = 0, len(text)
        while (stop := _STOP(text, end)) is not None:
            pieces.append(text[end:stop.start()])
            end = stop.start()
            if text[end] == '"':
                break
            plain, after = unescaped(text, end)
            if not after:
                self._pending, end = text[end:], n
                break
            pieces.append(plain)
            end = after
        else:
            pieces.append(text[end:])
            end = n
        self._out.append(self._inner.feed("".join(pieces)))
        if end < n:
            self._out.append(self._inner.close())
            self._inner, self._at = None, _BLIND
        return at - n_before + min(end + 1, n)


_STEPS: Final[tuple[Callable[[Mender, str, int], int], ...]] = (
    Mender._open, Mender._scalar, Mender._between, Mender._characters, Mender._characters, Mender._characters, Mender._wrapped,
    Mender._blind,
)


def nothing(text: str) -> bool:
    """No arguments at all: nothing, null, or the empty list that PHP writes for an empty map."""
    return "".join(text.split()) in ("", "null", "[]")


def mend(text: str, shape: Shape, root: bool = True) -> str:
    """The whole text at once."""
    mender = Mender(shape, root)
    return mender.feed(text) + mender.close()


def _contained(raw: str, wanted: Shape) -> str | None:
    """The array or object that a string's characters stand for; None if it is not what is declared."""
    text = decoded(raw)
    try:
        value = strict(text) if text is not None else None
    except ValueError:
        return None
    if text is None or not wanted.wants("{" if isinstance(value, dict) else "[" if isinstance(value, list) else ""):
        return None
    return mend(text, wanted, root=False)


def _unwrapped(raw: str, shape: Shape) -> str | None:
    """The object that the whole value, a string, holds."""
    text = decoded(raw)
    if text is None or not text.lstrip(_BLANK).startswith("{"):
        return None
    mended = mend(text, shape)
    try:
        return mended if isinstance(strict(mended), dict) else None
    except ValueError:
        return None
