"""Which of several patterns means a name? ``*`` is any run of characters, ``?`` one; the most specific pattern wins."""
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
Ranked = tuple[tuple[re.Pattern[str], str, T], ...]


def is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def specificity(pattern: str) -> int:
    """Letters speak for a pattern, wildcards against it; a long pattern beats a short one of as many letters."""
    stars, marks = pattern.count("*"), pattern.count("?")
    return 10 * (len(pattern) - stars - marks) + len(pattern) - 50 * stars - 5 * marks


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Whole-name match, in any case."""
    pieces = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in re.sub(r"\*+", "*", pattern))
    return re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)


def ranked(rows: Iterable[tuple[str, T]]) -> Ranked[T]:
    """Most specific first; equals stay in the order in which they were written."""
    return tuple((compiled(pattern), pattern, value) for pattern, value in sorted(rows, key=lambda row: -specificity(row[0])))


def first(name: str, rows: Ranked[T]) -> T | None:
    """What the most specific pattern that fits stands for."""
    for pattern, _, value in rows:
        if pattern.fullmatch(name):
            return value
    return None
