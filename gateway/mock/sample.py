"""What is the smallest document that fits a JSON schema? (For demo answers and tests; formats and patterns are not honoured.)"""
from typing import Any, Final

MAX_DEPTH: Final = 12
_FORMATS: Final = {"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z", "email": "demo@example.com",
                   "uri": "https://example.com/", "uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1"}


def sample(schema: Any, text: str = "", root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """``text`` is used where any string will do."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None if schema is not True else {}
    root = schema if root is None else root
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if isinstance(schema.get("$ref"), str):
        return sample(_referenced(root, schema["$ref"]), text, root, depth + 1)
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return sample(schema[key][0], text, root, depth + 1)
    if schema.get("allOf"):
        return _merged([sample(part, text, root, depth + 1) for part in schema["allOf"]])
    return _by_type(schema, text, root, depth)


def _by_type(schema: dict[str, Any], text: str, root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind == "string":
        value = _FORMATS.get(schema.get("format", ""), text or "demo")
        return value[:schema.get("maxLength", len(value))].ljust(schema.get("minLength", 0), "x")
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return True
    if kind == "array":
        return [sample(schema.get("items", {}), text, root, depth + 1) for _ in range(min(max(1, schema.get("minItems", 1)), 16))]
    if kind == "null":
        return None
    properties = schema.get("properties") or {}
    wanted = schema.get("required") or list(properties)
    return {name: sample(properties.get(name, {}), text, root, depth + 1) for name in wanted}


def _number(schema: dict[str, Any]) -> Any:
    low, step = schema.get("minimum"), schema.get("multipleOf")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + (step or 1)
    if low is None:
        low = min(1, schema.get("maximum", 1))
    return low if step is None else -(-low // step) * step


def _merged(parts: list[Any]) -> Any:
    objects = [part for part in parts if isinstance(part, dict)]
    if not objects:
        return parts[0]
    return {name: value for part in objects for name, value in part.items()}


def _referenced(root: dict[str, Any], ref: str) -> Any:
    found: Any = root
    for name in ref.removeprefix("#").strip("/").split("/") if ref != "#" else ():
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
