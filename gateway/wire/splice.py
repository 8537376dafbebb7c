"""How is a field of a JSON object changed without re-encoding the rest? Bytes that nobody had to touch stay as they came.

``model`` is the common case and is done on the bytes alone; everything else takes the top level apart into raw values and puts
it together again. Nested values are never decoded, so numbers, escapes and key order of what a caller wrote survive.
"""
from collections.abc import Mapping

import msgspec

_top = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.encode


def set_model(raw: bytes, old: str, new: str) -> bytes | None:
    """``raw`` with the top-level ``model`` replaced; None where the bytes alone cannot tell which value that is.

    ``old`` is the decoded top-level value. The key may stand once only, unescaped: any escaped spelling of it contains
    ``\\u006`` (all its letters do), so without that sequence a single occurrence is the top-level one.
    """
    if not old or b"\\u006" in raw:
        return None
    at = raw.find(b'"model"')
    if at < 0 or raw.find(b'"model"', at + 7) >= 0:
        return None
    start = _skip_blank(raw, at + 7)
    if raw[start:start + 1] != b":":
        return None
    start = _skip_blank(raw, start + 1)
    value = _encode(old)
    if not raw.startswith(value, start):
        return None
    return b"%b%b%b" % (raw[:start], _encode(new), raw[start + len(value):])


def fields(raw: bytes) -> dict[str, msgspec.Raw]:
    """The top level of an object, values still raw; of a repeated key the last value counts, as for every parser."""
    return _top.decode(raw)


def join(top: Mapping[str, bytes | msgspec.Raw]) -> bytes:
    """An object of raw values, written."""
    return b"{" + b",".join([b"%b:%b" % (_encode(key), bytes(value)) for key, value in top.items()]) + b"}"


def append(raw: bytes, members: bytes) -> bytes:
    """``raw`` (an object with at least one member) with ``members`` (``"key":value``) at its end; the caller knows that these
    keys are not there yet."""
    end = raw.rindex(b"}")
    return b"%b,%b%b" % (raw[:end], members, raw[end:])


def _skip_blank(raw: bytes, at: int) -> int:
    while raw[at:at + 1] in (b" ", b"\n", b"\r", b"\t"):
        at += 1
    return at
