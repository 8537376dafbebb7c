"""How is a field of a JSON object changed without re-encoding the rest? Bytes that nobody had to touch stay as they came.

``model`` alone is the common case and is done on the bytes alone; everything else takes the top level apart into raw values
(views, not copies) and puts it together again. Nested values are never decoded, so numbers, escapes and key order of what a
caller wrote survive.
"""
from collections.abc import Mapping
from typing import Final

import msgspec

SMALL: Final = 4_096                             # bytes up to which a body is searched for whatever may be in it

_top = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.encode


def set_model(raw: bytes, old: str, new: str, more: bytes = b"") -> bytes | None:
    """``raw`` with the top-level ``model`` replaced; None where the bytes alone cannot tell which value that is.

    ``more`` (``,"key":value``) is put at the end; the caller knows that these keys are not there yet.
    ``old`` is the decoded top-level value. The key may stand once only, unescaped: any escaped spelling of it contains
    ``\\u006`` (all its letters do), so without that sequence a single occurrence is the top-level one.
    """
    # Backwards: in a long text that is the quicker way, and most clients write the model behind the messages.
    if not old or (b"\\" in raw and raw.rfind(b"\\u006") >= 0):
        return None
    at = raw.rfind(b'"model"')
    if at < 0 or raw.rfind(b'"model"', 0, at) >= 0:
        return None
    try:
        value, start = _encode(old), at + 8
    except UnicodeEncodeError:                       # half a surrogate pair
        return None
    if raw[at + 7:start] != b":" or not raw.startswith(value, start):
        start = _skip_blank(raw, at + 7)
        if raw[start:start + 1] != b":":
            return None
        start = _skip_blank(raw, start + 1)
        if not raw.startswith(value, start):
            return None
    if old == new and not more:
        return raw
    view, end = memoryview(raw), raw.rindex(b"}")
    return b"".join((view[:start], _encode(new), view[start + len(value):end], more, view[end:]))


def fields(raw: bytes) -> dict[str, msgspec.Raw]:
    """The top level of an object, values still raw; of a repeated key the last value counts, as for every parser."""
    return _top.decode(raw)


def join(top: Mapping[str, bytes | msgspec.Raw]) -> bytes:
    """An object of raw values, written in one copy."""
    pieces: list[bytes | msgspec.Raw] = []
    for key, value in top.items():
        pieces += (b",", _encode(key), b":", value)
    return b"".join((b"{", *pieces[1:], b"}"))


def _skip_blank(raw: bytes, at: int) -> int:
    while raw[at:at + 1] in (b" ", b"\n", b"\r", b"\t"):
        at += 1
    return at
