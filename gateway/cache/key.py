"""Which requests are the same? A digest over everything that can change the answer, whose it is and what the gateway goes by.

The body counts whole: a field that nobody here has heard of changes the key as well. What cannot change an answer does not:
the order of keys, blanks, a top-level ``null``, a field that says what its absence means, ``auto`` for a missing model.
"""
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

# What a wire takes a missing top-level field for. https://platform.openai.com/docs/api-reference/chat/create
DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "openai-chat": {"model": "auto", "stream": False, "n": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0,
                    "logprobs": False, "tools": [], "logit_bias": {}},
    "openai-responses": {"model": "auto", "stream": False, "top_p": 1, "tools": [], "background": False},
    "anthropic": {"model": "auto", "stream": False, "tools": []},
}
# Request headers that go upstream or change what we do on the way.
HEADERS: Final = ("anthropic-version", "anthropic-beta", "openai-beta", "x-freellm-compress")
_TEMPERATURE: Final = ("generationConfig", "generation_config", "options")


# What a request is besides its body: tenant, surface, operation, what the path says, its headers, what the gateway goes by.
Address = tuple[str, ...]


def raw_key(address: Address, body: bytes) -> bytes:
    """For the very same bytes: one digest, and nothing has to be read."""
    digest = hashlib.sha256("\0".join(address).encode("utf-8", "surrogatepass"))
    digest.update(b"\0raw\0")
    digest.update(body)
    return digest.digest()


def read(body: bytes) -> dict[str, Any] | None:
    """The body as plain data; None where it is no object."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return data if isinstance(data, dict) else None


def request_key(address: Address, data: Mapping[str, Any], wire: str) -> bytes:
    """For requests that mean the same. Raises ValueError for data that cannot be written (nested too deep)."""
    defaults = DEFAULTS.get(wire, {})
    said = {name: value for name, value in data.items()
            if value is not None and not (name in defaults and _same(value, defaults[name]))}
    digest = hashlib.sha256("\0".join(address).encode("utf-8", "surrogatepass"))
    digest.update(b"\0said\0")
    digest.update(orjson.dumps(said, option=orjson.OPT_SORT_KEYS))
    return digest.digest()


def temperature(data: Mapping[str, Any]) -> float | None:
    """What the request asks for, in any format; None = nothing."""
    places = [data, *(inner for name in _TEMPERATURE if isinstance(inner := data.get(name), dict))]
    for place in places:
        value = place.get("temperature")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def _same(value: Any, default: Any) -> bool:
    """False is not 0 here: what a provider makes of the other type is its business."""
    return bool(value == default) and isinstance(value, bool) == isinstance(default, bool)
