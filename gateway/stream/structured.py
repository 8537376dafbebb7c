"""Is this text the JSON that was asked for, and if it only stands in a fence or among prose, which part of it?"""
import hashlib
import re
from typing import Any, Final

import msgspec
import orjson

from gateway.core.bounded import LruMap
from gateway.core.request import Format
from gateway.stream.json_text import span, strict

_JSON_BLANK: Final = " \t\r\n"
_NO_TEXT: Final = "\ufeff\u200b\xa0 \t\r\n"
_FENCE = re.compile(r"```[^\n`]*\n")
_OPEN = re.compile(r"[\[{]").search
_LIKE_JSON = re.compile(r'\{\s*+"|\[\s*+["{\[\d-]').match
_MAX_FENCES: Final = 8
_MAX_PARTS: Final = 32
_MAX_UNCLOSED: Final = 2                          # brackets of prose that never close; each costs a look at the whole rest
_BACKTRACKS: Final = 100_000                      # for the patterns of a client's schema
MAX_CHECKED: Final = 1_000_000                    # characters that are held against a schema; of more, only that it is JSON

_validators: LruMap[bytes, Any] = LruMap(256)


class Healed(msgspec.Struct, frozen=True):
    """Text that is the JSON that was asked for; ``changed`` when more than JSON's own blanks was cut away."""
    text: str
    changed: bool


def enforce(text: str, format: Format) -> Healed | None:
    """The text, or the part of it that fits. None: there is no such part, or it was cut."""
    validator = _validator(format.schema) if format.kind == "json_schema" else None
    fallback: Healed | None = None
    for candidates in (_whole, _excerpts):        # nearly always the whole text is the answer
        for candidate, changed in candidates(text):
            try:
                value = strict(candidate)
            except ValueError:
                continue
            if format.kind == "json_object" and not isinstance(value, dict):
                continue
            if validator is None or len(candidate) > MAX_CHECKED or not _first(validator, value):
                return Healed(candidate, changed)
            fallback = fallback or Healed(candidate, changed)
        if fallback is not None:
            break
    return None if format.strict else fallback


def violation(value: Any, schema: dict[str, Any] | None) -> str:
    """Why a value breaks a schema, in the validator's words; "" if it does not, or if the schema itself is broken."""
    validator = _validator(schema)
    return "" if validator is None else _first(validator, value)


def _whole(text: str) -> list[tuple[str, bool]]:
    bare = text.strip(_NO_TEXT)
    return [(text, False)] if bare == text.strip(_JSON_BLANK) else [(text, False), (bare, True)]


def _excerpts(text: str) -> list[tuple[str, bool]]:
    bare = text.strip(_NO_TEXT)
    if bare[:1] in ("{", "["):
        end = span(bare, 0)
        if end == len(bare) or (end < 0 and _LIKE_JSON(bare)):
            return []                             # nothing inside a whole value, or one that was cut, is the answer instead
    return [(part, True) for part in _fenced(bare) + _parts(bare)]


def _fenced(text: str) -> list[str]:
    """What stands in code fences: to the next closing one or, since strings may hold fences too, to the last."""
    found: list[str] = []
    at = 0
    last = text.rfind("```")
    for _ in range(_MAX_FENCES):
        opening = _FENCE.search(text, at)
        if opening is None:
            break
        start = opening.end()
        end = text.find("```", start)
        found += [text[start:stop].strip() for stop in dict.fromkeys((end, last)) if stop >= start]
        if end < 0:
            break
        at = end + 3
    return found


def _parts(text: str) -> list[str]:
    """Complete objects and arrays that stand in prose, longest first; none at all if one begins like JSON and does not close:
    then the answer was cut, and what is complete inside or before it is not the answer."""
    found: list[str] = []
    at = n_unclosed = 0
    while len(found) < _MAX_PARTS and (opening := _OPEN(text, at)) is not None:
        start = opening.start()
        end = span(text, start)
        if end >= 0:
            found.append(text[start:end])
            at = end
            continue
        n_unclosed += 1
        if _LIKE_JSON(text, start) or n_unclosed > _MAX_UNCLOSED:
            return []
        at = start + 1
    return sorted(found, key=len, reverse=True)


def _validator(schema: dict[str, Any] | None) -> Any:
    """A compiled schema; None for one that cannot be used: the client's mistake must not cost it the answer."""
    if not schema:
        return None
    try:
        key = hashlib.blake2b(orjson.dumps(schema), digest_size=16).digest()
    except TypeError:
        return None
    if key in _validators:
        return _validators[key]
    import jsonschema_rs
    try:
        made: Any = jsonschema_rs.validator_for(
            schema, offline=True, pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS))
    except Exception:   # ValidationError, ReferencingError, ValueError: all say that the schema is broken
        made = None
    _validators.put(key, made)
    return made


def _first(validator: Any, value: Any) -> str:
    """The first thing that is wrong, "" for nothing. Never all of them: ``iter_errors`` makes each before it gives one, which is
    2 GB and a minute for a list of four million numbers that were to be strings."""
    if validator.is_valid(value):
        return ""
    import jsonschema_rs
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        # The validator ran out of steps in a pattern: nobody knows, so it is not held against the answer.
        gave_up = type(error.kind).__name__.endswith("BacktrackLimitExceeded")
        return "" if gave_up else str(error.message) or "it does not fit the schema"
    return ""
