"""How are many records of one shape written shorter? The names once, then a row each; ``expand`` gives the JSON back."""
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import orjson

from gateway.compress.segment import Edit, Talk
from gateway.compress.tools import is_read

MIN_ROWS: Final = 8
MIN_CHARS: Final = 200
OPEN: Final = "[[json-table:v1 columns="
TABLE: Final = re.compile(r"\[\[json-table:v1 columns=(\[.*?\]) rows=\d+\]\]\n(.*?)\n\[\[/json-table\]\]", re.DOTALL)

_rows = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_cells = msgspec.json.Decoder(list[msgspec.Raw])


def run(talk: Talk) -> Iterator[Edit]:
    for segment in talk.segments:
        text = segment.text
        if segment.result and not segment.locked and len(text) >= MIN_CHARS and text.lstrip()[:1] in ("[", "{") \
                and OPEN not in text and not is_read(segment):
            made = compact(text)
            if made is not None and len(made) < len(text):
                yield Edit(segment, made, canon=canon)


def compact(text: str) -> str | None:
    """None where there is nothing of that shape."""
    raw = text.strip().encode("utf-8", "surrogatepass")
    try:
        if raw[:1] == b"[":
            return _table(raw)
        made = None
        for value in _members.decode(raw).values():
            whole = bytes(value)
            if whole[:1] == b"[" and raw.count(whole) == 1 and (table := _table(whole)) is not None:
                raw, made = raw.replace(whole, f"\n{table}\n".encode(), 1), True
        return raw.decode() if made else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _table(raw: bytes) -> str | None:
    try:
        rows = _rows.decode(raw)
    except msgspec.DecodeError:
        return None
    columns = tuple(rows[0]) if rows else ()
    if len(rows) < MIN_ROWS or not columns or any(tuple(row) != columns for row in rows):
        return None
    lines = [b"[" + b",".join(map(_squeezed, row.values())) + b"]" for row in rows]
    names, cells = msgspec.json.encode(columns).decode(), b"\n".join(lines).decode()
    return f"{OPEN}{names} rows={len(rows)}]]\n{cells}\n[[/json-table]]"


def _squeezed(value: msgspec.Raw) -> bytes:
    raw = bytes(value)
    return raw if b"\n" not in raw else msgspec.json.format(raw, indent=-1)


def expand(text: str) -> str:
    """The JSON that a text with tables was made of."""
    return TABLE.sub(_expanded, text)


def _expanded(found: re.Match[str]) -> str:
    names = [msgspec.json.encode(name) for name in msgspec.json.decode(found[1])]
    rows = (b"{" + b",".join(name + b":" + bytes(cell) for name, cell in zip(names, _cells.decode(line), strict=True)) + b"}"
            for line in found[2].split("\n"))
    return (b"[" + b",".join(rows) + b"]").decode()


def canon(text: str) -> Any:
    return orjson.loads(expand(text))
