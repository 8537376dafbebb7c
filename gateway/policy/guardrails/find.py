"""How are values found in a text that may still grow? Finders, one a kind; what is found is the same however the text is cut.

A finder gives the first place at or behind ``pos``; it may look one character back, no more. ``Kind.tail`` matches every beginning
of a value up to the end of the text: an end that may still become one waits.
"""
import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

Span = tuple[int, int]
Finder = Callable[[str, int], Span | None]
Fits = Callable[[str], int]                      # of a match, how many characters count; 0 = none


class Kind(msgspec.Struct, frozen=True):
    """``name`` is what placeholders say; ``words`` what people are told."""
    name: str
    words: str
    find: Finder
    tail: str = ""


def matching(pattern: str, fits: Fits = len, flags: int = 0) -> Finder:
    """A finder by an expression and a judge of what it matches."""
    search = re.compile(pattern, flags).search

    def find(text: str, pos: int) -> Span | None:
        while (found := search(text, pos)) is not None:
            if n := fits(found[0]):
                return found.start(), found.start() + n
            pos = found.start() + 1
        return None
    return find


class Scan:
    """Several kinds at once: leftmost first, then in their order; values never overlap."""
    __slots__ = ("kinds", "_tail")

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        tails = [kind.tail for kind in kinds if kind.tail]
        self._tail: Final = re.compile("|".join(f"(?:{tail})" for tail in tails)).search if tails else None

    def spans(self, text: str, pos: int, last: bool) -> tuple[list[tuple[Kind, int, int]], int]:
        """(what was found, up to where the text is settled)."""
        edge = len(text)
        if not last and self._tail is not None and (open_ := self._tail(text, pos)) is not None:
            edge = open_.start()
        found: list[tuple[Kind, int, int]] = []
        nexts = [(kind, kind.find(text, pos)) for kind in self.kinds]
        at = pos
        while True:
            nexts = [(kind, span if span is None or span[0] >= at else kind.find(text, at)) for kind, span in nexts]
            first = min(((span, n) for n, (_, span) in enumerate(nexts) if span is not None), key=lambda each: (each[0][0], each[1]),
                        default=None)
            if first is None or first[0][0] >= edge:
                return found, edge
            (start, end), n = first
            if end > edge:                           # a part of it may still grow
                return found, start
            found.append((nexts[n][0], start, end))
            at = end
