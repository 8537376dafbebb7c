"""Are a complete tool call's arguments fit to leave, and can they be made so without a doubt?

First what the schema demands (an array or object written as a string, the whole object written as a string), done by the scanner
of ``mend``, so that whole and live delivery agree. Only if the result is not JSON, what reads in one way only (``json_text.loose``).
"""
import re
from collections.abc import Mapping
from typing import Any

from gateway.stream.json_text import MAX_DEPTH, loose, strict
from gateway.stream.mend import mend, nothing
from gateway.stream.shape import ANY, Shape, shape

# a string that may stand for a container: nothing else in valid JSON is ever changed
_LOOKED_AT = (str, dict, list)
_SUSPECT = re.compile(r'"[ \t\r\n]*+(?:[\[{]|\\[nrtu])').search


def repair(arguments: str, schema: Mapping[str, Any] | None) -> str:
    """The arguments repaired; as they came on any doubt."""
    return checked(arguments, schema)[0]


def checked(arguments: str, schema: Mapping[str, Any] | None, guess: bool = True) -> tuple[str, bool]:
    """The arguments repaired, and whether they are a JSON object now. ``guess`` False: only what the schema demands."""
    try:
        value = strict(arguments)
    except ValueError:
        return ("{}", True) if nothing(arguments) else _broken(arguments, schema, guess)
    if isinstance(value, dict):
        if schema is None or _SUSPECT(arguments) is None or not _misses(value, shape(schema)):
            return arguments, True
        return _fit(mend(arguments, shape(schema)), arguments), True
    if nothing(arguments):
        return "{}", True
    if isinstance(value, str):
        mended = mend(arguments, shape(schema))
        return (mended, True) if _is_object(mended) else (arguments, False)
    return arguments, False


def _broken(arguments: str, schema: Mapping[str, Any] | None, guess: bool) -> tuple[str, bool]:
    mended = mend(arguments, shape(schema))
    if _is_object(mended):
        return mended, True
    read = loose(mended) if guess else None
    if read is None or not _is_object(read):
        return arguments, False
    return _fit(mend(read, shape(schema)), read), True


def _misses(value: Any, place: Shape, depth: int = 0) -> bool:
    """Is there a string that begins like the container that is declared in its place? Only what the schema knows is walked."""
    if place is ANY or depth > MAX_DEPTH:
        return False
    if isinstance(value, str):
        return place.wants(value.lstrip(" \t\r\n")[:1])
    if isinstance(value, dict):
        return any(_misses(below, place.key(key), depth + 1) for key, below in value.items() if isinstance(below, _LOOKED_AT))
    if isinstance(value, list):
        return any(_misses(below, place.item(index), depth + 1) for index, below in enumerate(value)
                   if isinstance(below, _LOOKED_AT))
    return False


def _fit(mended: str, before: str) -> str:
    return mended if _is_object(mended) else before


def _is_object(text: str) -> bool:
    try:
        return isinstance(strict(text), dict)
    except ValueError:
        return False
