"""How much is in this JSON, before anything is made of it?

A parser holds the interpreter from the first byte to the last: a million small values in one body stop every other request for as
long, and a thread does not help. So large bodies are walked first, in steps that others can get between, and what holds more than
any conversation does is refused with the name of the place.
"""
import re
from typing import Final

LARGE_BYTES: Final = 1 << 20                 # smaller ones cannot hold enough to matter
MAX_KEYS: Final = 1_000                      # at the top
MAX_ITEMS: Final = 20_000                    # objects in a list at the top: messages, contents, input, tools
MAX_PARTS: Final = 20_000                    # in the lists of its objects, together: messages[].content[], contents[].parts[]
MAX_VALUES: Final = 500_000
_MAX_DEPTH: Final = 2_000                    # no parser goes there
_ITEM_DEPTH: Final = 2                       # {messages: [
_PART_DEPTH: Final = 4                       # {messages: [{content: [

_MARK: Final = re.compile(rb'["\[\]{},]').search


def crowded(raw: bytes) -> tuple[str, str] | None:
    """(path, what is wrong) of the first place that holds too much; None where all is fine, or no JSON (the parser will tell)."""
    return _Walk(raw).to_the_end() if len(raw) > LARGE_BYTES else None


def spelled(raw: bytes) -> bool:
    """Is it UTF-8, as JSON has to be (RFC 8259 8.1)? Parsers look at what they want only, and upstreams would get the rest."""
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Walk:
    """One look at the marks of a text, strings skipped."""

    __slots__ = ("raw", "open", "names", "at_item", "n_keys", "n_items", "n_parts", "n_values")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.open = bytearray()                  # the brackets around the place
        self.names: dict[int, tuple[int, int]] = {}      # depth -> where its last string stands: the key, in an object
        self.at_item = 0                         # which object of the list at the top
        self.n_keys = 1
        self.n_items = self.n_parts = self.n_values = 0

    def to_the_end(self) -> tuple[str, str] | None:
        raw, at = self.raw, 0
        while (mark := _MARK(raw, at)) is not None:
            at = mark.end()
            char = raw[at - 1]
            if char == 34:                       # "
                start = at
                at = self._string(at)
                if not at:
                    return None
                self.names[len(self.open)] = (start, at - 1)
            elif char in b"}]":
                if not self.open:
                    return None
                self.open.pop()
            elif wrong := self._more(char):
                return wrong
            if len(self.open) > _MAX_DEPTH:
                return None
        return None

    def _string(self, at: int) -> int:
        """Behind the string that begins here; 0 where it does not end."""
        raw, start = self.raw, at
        while (end := raw.find(b'"', at)) >= 0:
            if raw[end - 1] != 92 or _n_slashes(raw, start, end) % 2 == 0:
                return end + 1
            at = end + 1
        return 0

    def _more(self, char: int) -> tuple[str, str] | None:
        """A comma or an opening bracket: one value more."""
        depth = len(self.open)
        self.n_values += 1
        if self.n_values > MAX_VALUES:
            return self._place(1), f"holds more than {MAX_VALUES} values"
        if char == 44:                           # ,
            self.n_keys += depth == 1
            self.at_item += depth == _ITEM_DEPTH
            self.n_parts += depth == _PART_DEPTH and self.open[-1] == 91
        else:
            self.open.append(char)
            if depth + 1 == _ITEM_DEPTH:
                self.at_item = self.n_items = 0
            self.n_items += depth == _ITEM_DEPTH and self.open[1] == 91
            self.n_parts += depth + 1 == _PART_DEPTH and char == 91
        if self.n_keys > MAX_KEYS:
            return "", f"the body holds more than {MAX_KEYS} fields"
        if self.n_items > MAX_ITEMS:
            return self._place(1), f"holds more than {MAX_ITEMS} items"
        if self.n_parts > MAX_PARTS:
            return f"{self._place(1)}.{self.at_item}.{self._place(3)}", f"more than {MAX_PARTS} parts in one body"
        return None

    def _place(self, depth: int) -> str:
        start, end = self.names.get(depth, (0, 0))
        return self.raw[start:min(end, start + 60)].decode("utf-8", "replace")


def _n_slashes(raw: bytes, start: int, end: int) -> int:
    """How many backslashes stand before ``end``."""
    n_slashes, step = 0, 16
    while end > start:
        piece = raw[max(start, end - step):end]
        n_here = len(piece) - len(piece.rstrip(b"\\"))
        n_slashes += n_here
        if n_here < len(piece):
            break
        end, step = end - len(piece), 65_536
    return n_slashes
