"""What do all dialects share: a cursor over the text, declared names only, arguments that are JSON objects."""
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.stream.json_text import span
from gateway.stream.repair import checked

MAX_CALLS: Final = 128
Tools = Mapping[str, dict[str, Any] | None]
_SPACE = re.compile(r"\s*+")


class RescuedCall(msgspec.Struct, frozen=True):
    """A call read from text; ``arguments`` is the JSON of an object."""
    name: str
    arguments: str


class Parsed(msgspec.Struct, frozen=True):
    """All calls of a text. ``text`` is the prose outside of them, trimmed; ``rest`` the same untrimmed, for who streams on."""
    calls: list[RescuedCall]
    text: str
    rest: str = ""


class Dead(Exception):
    """The text is no call that may be made."""


class Reader:
    """A cursor: ``at`` only moves forward, so that reading is linear."""
    __slots__ = ("text", "at", "tools", "calls", "rest", "marker")

    def __init__(self, text: str, tools: Tools) -> None:
        self.text = text
        self.at = 0
        self.tools = tools
        self.calls: list[RescuedCall] = []
        self.rest: list[str] = []
        self.marker = ""

    def prose(self, end: int) -> None:
        """What stands before ``end`` belongs to no block."""
        self.rest.append(self.text[self.at:end])
        self.at = end

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def sees(self, literal: str) -> bool:
        return self.text.startswith(literal, self.at)

    def takes(self, *literals: str) -> bool:
        """Blanks and one of the literals, if it stands here."""
        before = self.at
        self.space()
        for literal in literals:
            if self.sees(literal):
                self.at += len(literal)
                return True
        self.at = before
        return False

    def needs(self, *literals: str) -> None:
        if not self.takes(*literals):
            raise Dead

    def match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise Dead
        self.at = found.end()
        return found

    def until(self, literal: str) -> str:
        """The text before the next ``literal``; the cursor moves behind it."""
        end = self.text.find(literal, self.at)
        if end < 0:
            raise Dead
        before, self.at = self.text[self.at:end], end + len(literal)
        return before

    def container(self, opening: str = "{") -> str:
        """The text of the object (or array) that stands here."""
        self.space()
        end = span(self.text, self.at) if self.text[self.at:self.at + 1] in tuple(opening) else -1
        if end < 0:
            raise Dead
        before, self.at = self.text[self.at:end], end
        return before

    def call(self, name: str, arguments: str) -> None:
        """One call with the JSON text of its arguments."""
        name = name.strip()
        if name not in self.tools or len(self.calls) >= MAX_CALLS:
            raise Dead
        mended, good = checked(arguments, self.tools[name])
        if not good:
            raise Dead
        self.calls.append(RescuedCall(name, mended))

    def calls_of(self, text: str) -> None:
        """One call object, or an array of them, as JSON."""
        self.values(value_of(text))

    def values(self, value: Any) -> None:
        """The same, decoded."""
        for one in value if isinstance(value, list) else [value]:
            self.call(*name_and_arguments(one))


def value_of(text: str) -> Any:
    """Decoded by json, which keeps whole numbers of any size; what is nearly JSON is repaired first."""
    mended, good = checked(text, None)
    try:
        return json.loads(mended if good else text)
    except (ValueError, RecursionError) as error:
        raise Dead from error


def name_and_arguments(value: Any) -> tuple[str, str]:
    """A call written as an object: name beside arguments or parameters (object, JSON text or nothing), or OpenAI's nesting."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise Dead
    arguments = value.get("arguments", value.get("parameters"))
    if arguments is None:
        return value["name"], "{}"
    if isinstance(arguments, str):
        return value["name"], arguments
    if isinstance(arguments, dict):
        return value["name"], json.dumps(arguments, ensure_ascii=False)
    raise Dead
