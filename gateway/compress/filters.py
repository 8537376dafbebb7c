"""What is noise in the output of which command? Rule packs: data with their own tests, ours and the operator's in the same form.

A filter says which commands or outputs it is for, which lines are noise, and how long a text may become. It cannot drop an error or
a demand, nor a line beyond its limits that holds a value: the engine and the gate see to that.
"""
import re
import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Annotated, Final

import msgspec
from msgspec import Meta

MAX_FILTERS: Final = 100
MAX_FILE_BYTES: Final = 65_536
MAX_LINE: Final = 2_000                          # characters of a line that a pattern is tried on
Pattern = Annotated[str, Meta(min_length=1, max_length=300)]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=60)]
# A repetition of a group that repeats itself: such patterns can take for ever on a line that almost matches.
_NESTED: Final = re.compile(r"\((?:[^()\\]|\\.)*(?:[*+]|\{\d*,\d*\})(?:[^()\\]|\\.)*\)(?:[*+]|\{\d+,\d*\})")


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes in must come out so."""
    input: Annotated[str, Meta(max_length=20_000)]
    output: Annotated[str, Meta(max_length=20_000)]
    command: str = ""


class Pack(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter as it is written."""
    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,59}$")]
    about: Annotated[str, Meta(max_length=300)] = ""
    priority: int = 50                           # lower ones are tried first
    commands: Patterns = ()                      # found in the command
    outputs: Patterns = ()                       # found at the start of a line of the output
    shell: bool = False                          # for every output of a shell that nobody else knows
    drop: Patterns = ()                          # found in a line: noise …
    keep: Patterns = ()                          # … unless this is found too
    json: bool = False                           # the output is JSON: without its white space
    collapse: bool = True                        # rows of the same line are told once
    max_lines: Annotated[int, Meta(ge=10, le=100_000)] = 120
    max_chars: Annotated[int, Meta(ge=500, le=10_000_000)] = 12_000
    head: Annotated[int, Meta(ge=0, le=10_000)] = 40
    tail: Annotated[int, Meta(ge=0, le=10_000)] = 60
    tests: Annotated[tuple[Example, ...], Meta(min_length=1, max_length=50)]


class Filter(msgspec.Struct, frozen=True):
    """A pack, compiled."""
    pack: Pack
    commands: re.Pattern[str] | None
    outputs: re.Pattern[str] | None
    drop: re.Pattern[str] | None
    keep: re.Pattern[str] | None

    @property
    def name(self) -> str:
        return self.pack.name


def parse(text: str, kind: str = "toml") -> Filter:
    """Raises ValueError saying what is wrong."""
    try:
        given = tomllib.loads(text) if kind == "toml" else msgspec.json.decode(text)
        return compiled(msgspec.convert(given, Pack))
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error) or "nested too deeply") from None


def compiled(pack: Pack) -> Filter:
    if not (pack.commands or pack.outputs or pack.shell):
        raise ValueError("names neither commands nor outputs that it is for")
    return Filter(pack, _any("commands", pack.commands), _any("outputs", tuple(f"^(?:{p})" for p in pack.outputs), re.MULTILINE),
                  _any("drop", pack.drop), _any("keep", pack.keep))


def _any(field: str, patterns: tuple[str, ...], flags: int = 0) -> re.Pattern[str] | None:
    for pattern in patterns:
        if _NESTED.search(pattern):
            raise ValueError(f"{field}: {pattern[:60]!r} repeats a repetition, which may take for ever")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{field}: {pattern[:60]!r} is no pattern: {error}") from None
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags) if patterns else None


def ordered(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    return tuple(sorted(filters, key=lambda f: (f.pack.priority, f.name)))


def builtin() -> tuple[Filter, ...]:
    """Ours, read from their files. A broken one is a broken installation."""
    folder = resources.files("gateway.compress") / "packs"
    return ordered(parse(file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".toml"))
