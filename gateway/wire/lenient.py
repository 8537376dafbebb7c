"""How is almost-JSON read and written? Strict and fast first; what only Python's own ``json`` takes, after that."""
import json
import math
import re
from typing import Any, Final

import orjson

LONE: Final = re.compile("[\ud800-\udfff]")


def load(raw: bytes) -> tuple[Any, bool]:
    """A JSON value, and whether its bytes may be passed on as they came. Raises ValueError.

    Half surrogate pairs, NaN and infinity are no JSON for a strict parser, but upstreams send them: Python's own ``json`` does
    (``-Infinity`` in logprobs). Halves stay halves in the text; numbers that are none become null.
    """
    try:
        return orjson.loads(raw), True
    except orjson.JSONDecodeError:
        pass
    exact = True

    def nothing(_: str) -> None:
        nonlocal exact
        exact = False

    def number(digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        nothing(digits)
        return None

    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text, exact = raw.decode("utf-8", "replace"), False
    try:
        return json.loads(text, parse_constant=nothing, parse_float=number), exact
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dump(value: Any) -> bytes:
    """JSON bytes of anything that ``load`` gives, halves of surrogate pairs included (they stay escapes). Raises ValueError."""
    try:
        return orjson.dumps(value)
    except TypeError:                            # halves, large numbers, more than 254 levels
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None


def whole_text(text: str) -> str:
    """Joins surrogate halves that stand side by side; what has no other half is U+FFFD."""
    if text.isascii() or LONE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_utf8(data: bytes) -> bool:
    """msgspec checks the strings that it decodes only; bytes that leave must be UTF-8 everywhere."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
