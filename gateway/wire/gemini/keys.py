"""How are Google's field names spelled? camelCase and snake_case mean the same at any depth; inside user data a key is a key.

https://protobuf.dev/programming-guides/json/
"""
import re
from typing import Any, Final

from gateway.wire.gemini.schema import Json

_SNAKE: Final = re.compile(r"_([a-z0-9])")
# What is below these is the user's own JSON, or plain JSON Schema.
_USERS: Final = frozenset({"args", "response", "parametersJsonSchema", "responseJsonSchema", "labels", "default", "example",
                           "enum", "required"})


def camel(name: str) -> str:
    return _SNAKE.sub(lambda found: found[1].upper(), name) if "_" in name else name


def camel_keys(value: Any) -> Any:
    """A copy with every field name of the API in camelCase."""
    if isinstance(value, list):
        return [camel_keys(item) for item in value]
    return _object(value) if isinstance(value, dict) else value


def _object(value: Json) -> Json:
    out: Json = {}
    for key, inner in value.items():
        name = camel(key)
        if name == "properties" and isinstance(inner, dict):
            out[name] = {own: camel_keys(schema) for own, schema in inner.items()}
        elif name in _USERS or inner.__class__ in (str, int, bool, float):
            out[name] = inner
        else:
            out[name] = camel_keys(inner)
    return out
