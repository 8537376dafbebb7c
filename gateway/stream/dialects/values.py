"""What is the JSON of a value that a model wrote between tags? The schema says; where it does not, only what is JSON is not text."""
import json
import re
from typing import Any

from gateway.stream.dialects.reader import Dead, Reader
from gateway.stream.json_text import loose, strict
from gateway.stream.mend import mend
from gateway.stream.shape import Shape, shape

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?")
_NESTED = re.compile(r"</?(?:function|invoke|tool_call)[=>\s]")     # a value that swallowed the end of its block


class Fields:
    """The arguments of one call, value by value."""
    __slots__ = ("_reader", "_shape", "_values")

    def __init__(self, reader: Reader, name: str) -> None:
        self._reader = reader
        self._shape = shape(reader.tools.get(name))
        self._values: dict[str, str] = {}

    def read(self, key: str, end: re.Pattern[str], literal: str | None = None) -> None:
        """A value from the cursor to the end tag that another field or the end of the block follows: file contents may hold
        such tags themselves. ``literal``: DSML says itself whether the value is a string."""
        reader = self._reader
        found = end.search(reader.text, reader.at)
        if found is None:
            raise Dead
        text, reader.at = reader.text[reader.at:found.start()], found.end()
        if _NESTED.search(text):
            raise Dead
        text = text.removeprefix("\n").removesuffix("\n")
        key = key.strip()
        self._values[key] = quoted(text) if literal == "true" else typed(text, self._shape.key(key))

    def json(self) -> str:
        return "{" + ", ".join([f"{quoted(key)}: {value}" for key, value in self._values.items()]) + "}"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def typed(text: str, place: Shape) -> str:
    """JSON of the declared type; a string if it is none, so that nothing is lost and the tool's own check can tell."""
    bare, kinds = text.strip(), place.kinds
    if "null" in kinds and bare in ("null", "None"):
        return "null"
    if "string" in kinds or bare in place.choices:
        return quoted(text)
    if kinds & {"integer", "number", "?"} and _NUMBER.fullmatch(bare):
        return bare
    if kinds & {"boolean", "?"} and bare.lower() in ("true", "false"):
        return bare.lower()
    if "?" in kinds and bare == "null":
        return "null"
    return _container(bare, place) or quoted(text)


def _container(text: str, place: Shape) -> str | None:
    """An array or object where one is declared, or where nothing is."""
    kinds = place.kinds
    if not (text.startswith("[") and kinds & {"array", "?"}) and not (text.startswith("{") and kinds & {"object", "?"}):
        return None
    mended = mend(text, place, root=False)
    for candidate in (mended, loose(mended)):
        if candidate is not None and _parses(candidate):
            return candidate
    return None


def _parses(text: str) -> bool:
    try:
        value: Any = strict(text)
    except ValueError:
        return False
    return isinstance(value, (dict, list))
