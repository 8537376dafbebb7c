"""Is this text a tool call that a model wrote out by hand, and which one?

One file per family; each lists its ``MARKERS`` and reads one block that stands at one of them. The first marker in a text decides
the family. Nothing is ever half: a block that does not parse, names an undeclared tool or does not close makes the whole text
unparseable (``None``), and so does a marker of another family in what is left over.
"""
import re
from collections.abc import Callable
from types import ModuleType
from typing import Final

from gateway.stream.dialects import deepseek, function_tag, invoke, kimi, mistral, python_tag, tool_call_tag
from gateway.stream.dialects.bare import failed_generation, whole_json
from gateway.stream.dialects.reader import Dead, Parsed, Reader, RescuedCall, Tools

__all__ = ["DIALECTS", "MARKERS", "Parsed", "RescuedCall", "failed_generation", "held", "parse", "scan", "whole_json"]

DIALECTS: Final[dict[str, ModuleType]] = {
    "kimi": kimi,
    "function_tag": function_tag,
    "tool_call_tag": tool_call_tag,
    "invoke": invoke,
    "mistral": mistral,
    "python_tag": python_tag,
    "deepseek": deepseek,
}
MARKERS: Final[tuple[str, ...]] = tuple(marker for family in DIALECTS.values() for marker in family.MARKERS)

_FAMILY: Final = {marker: family for family in DIALECTS.values() for marker in family.MARKERS}
_ANY: Final = re.compile("|".join(re.escape(marker) for marker in MARKERS))
_OF: Final[dict[ModuleType, Callable[..., re.Match[str] | None]]] = {
    family: re.compile("|".join(re.escape(marker) for marker in family.MARKERS)).search for family in DIALECTS.values()}
# "<" and "[" only ever stand at the first place of a marker, so the last of them in a text decides what may still become one
_STARTS: Final = frozenset(marker[:length] for marker in MARKERS for length in range(1, len(marker)))
_LONGEST: Final = max(len(marker) for marker in MARKERS)


def scan(text: str, start: int = 0) -> int:
    """Where the first complete marker stands, or -1."""
    if "<" not in text and "[" not in text:
        return -1
    found = _ANY.search(text, start)
    return found.start() if found else -1


def held(text: str) -> int:
    """How many characters at the end may still become a marker."""
    if "<" not in text and "[" not in text:
        return 0
    at = max(text.rfind("<"), text.rfind("["))
    return len(text) - at if text[at:at + _LONGEST] in _STARTS else 0


def parse(text: str, tools: Tools) -> Parsed | None:
    """The calls of a text that has a marker, and its prose. None: unparseable, or it calls what was not declared."""
    first = _ANY.search(text)
    if first is None or not tools:
        return None
    family = _FAMILY[first[0]]
    search = _OF[family]
    reader = Reader(text, tools)
    try:
        while (mark := search(text, reader.at)) is not None:
            reader.prose(mark.start())
            reader.marker = mark[0]
            reader.at = mark.end()
            family.block(reader)
    except Dead:
        return None
    reader.prose(len(text))
    rest = "".join(reader.rest)
    if not reader.calls or scan(rest) >= 0 or any(token in rest for token in getattr(family, "STRAY", ())):
        return None
    return Parsed(reader.calls, rest.strip(), rest)
