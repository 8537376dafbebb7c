"""Where does a JSON value end, is it strictly JSON, and can nearly-JSON be read in only one way? Linear time, no recursion.

Everything here works on the text, not on decoded values: numbers keep their digits and strings their escapes.
"""
import json
import re
from typing import Any, NoReturn

import orjson

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_SPAN = re.compile(rf'{_STRING}|[{{}}\[\]"]', re.DOTALL)
_CONTROL = re.compile(r"\\.|[\x00-\x1f]", re.DOTALL)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

_raw_decode = json.JSONDecoder(strict=False).raw_decode
MAX_DEPTH = 512

_LOOSE_LIMIT = 65_536
_LOOSE = re.compile(
    rf"""(?P<string>{_STRING})|(?P<single>'(?:[^'\\]++|\\.)*+')|(?P<number>-?\d[\w.+\-]*+)|(?P<word>[A-Za-z_$][\w$]*+)"""
    r"""|(?P<mark>[{}\[\]:,])|(?P<space>[ \t\r\n]++)""", re.DOTALL)
_LITERALS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_SINGLE_ESCAPE = re.compile(r"""\\(.)|(")""", re.DOTALL)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def strict(text: str) -> Any:
    """The value of a JSON text; ValueError for anything else, NaN and Infinity too.

    orjson refuses half a surrogate pair, which JSON's grammar allows and models cut emoji into: json has the last word there.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        if "\\u" not in text:
            raise
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as deep:
        raise ValueError("nested too deeply") from deep


def span(text: str, start: int) -> int:
    """The end of the object or array that opens at ``start``, or -1 when it does not close (or is deeper than any real one)."""
    try:
        return _raw_decode(text, start)[1]        # in C where it is JSON
    except (ValueError, RecursionError):
        pass
    depth = 0
    for match in _SPAN.finditer(text, start):
        token = text[match.start()]
        if token in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                return -1
        elif token in "}]":
            depth -= 1
            if depth <= 0:
                return match.end()
        elif match.end() - match.start() == 1:    # a quote that never closes
            return -1
    return -1


def escape_controls(text: str) -> str:
    """Raw control characters inside a string become escapes; the commonest fault in long file contents.

    One behind a lone backslash stays: whether the backslash was meant is not known.
    """
    return text if text.isprintable() else _CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return char if char[0] == "\\" else _SHORT.get(char) or f"\\u{ord(char):04x}"


def loose(text: str) -> str | None:
    """JSON for a text that is JSON but for single quotes, bare keys, Python's literals, raw control characters and commas
    before a closing bracket. None on any doubt, above all when the text stops before its brackets and quotes do: a call that
    was cut must not become another call.

    json-repair is not used on purpose: it closes what was cut, invents missing values, and needs 214 s for 64 KB of ``{'``.
    """
    if len(text) > _LOOSE_LIMIT:
        return None
    out: list[str] = []
    position, comma = 0, -1                       # where in ``out`` a comma waits to be confirmed
    for match in _LOOSE.finditer(text):
        if match.start() != position:
            return None
        position = match.end()
        kind, token = match.lastgroup, match[0]
        if kind == "space":
            continue
        if token in ("}", "]") and 0 < comma == len(out) - 1 and out[comma - 1] not in ("{", "[", ","):
            out.pop()
        elif kind == "mark" and token == ",":
            comma = len(out)
        written = _written(kind, token, text, position)
        if written is None:
            return None
        out.append(written)
    return "".join(out) if position == len(text) else None


def _written(kind: str | None, token: str, text: str, end: int) -> str | None:
    if kind == "string":
        return escape_controls(token)
    if kind == "single":
        return escape_controls(f'"{_SINGLE_ESCAPE.sub(_unsingle, token[1:-1])}"')
    if kind == "word":
        if token in _LITERALS:
            return _LITERALS[token]
        return f'"{token}"' if text[end:end + 8].lstrip().startswith(":") else None
    return token


def _unsingle(match: re.Match[str]) -> str:
    if match[2]:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")
_LOW = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_LOW_START = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?")


def decoded(raw: str) -> str | None:
    """The text that stands between a string's quotes; None if it has a wrong escape or half a surrogate pair."""
    if "\\" not in raw:
        return raw
    try:
        text: str = orjson.loads(f'"{raw}"')
    except ValueError:
        return None
    return text


def unescaped(text: str, at: int) -> tuple[str, int]:
    """The character of the escape that begins at ``at`` and where it ends; 0 when the text ends before the escape does.

    What is no escape, and half a surrogate pair, is returned as it stands.
    """
    kind = text[at + 1:at + 2]
    if kind != "u":
        return (_ESCAPES.get(kind, "\\" + kind), at + 2) if kind else ("", 0)
    digits = text[at + 2:at + 6]
    if len(digits) < 4:
        return ("", 0) if _HEX.fullmatch(digits) and at + 2 + len(digits) == len(text) else ("\\u", at + 2)
    if not _HEX.fullmatch(digits):
        return "\\u", at + 2
    code = int(digits, 16)
    if not 0xD800 <= code <= 0xDFFF:
        return chr(code), at + 6
    low = text[at + 6:at + 12]
    if code <= 0xDBFF and len(low) < 6 and _LOW_START.fullmatch(low):
        return "", 0
    if code <= 0xDBFF and _LOW.fullmatch(low):
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(low[2:], 16) - 0xDC00)), at + 12
    return text[at:at + 6], at + 6
