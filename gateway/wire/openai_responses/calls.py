"""How does a call look to the client that declared the tool? Functions as functions, freeform tools as freeform calls again."""
from typing import Any

import orjson

from gateway.core import events as ev
from gateway.wire.openai_responses.schema import SHELL, Json, Origin


def head(call: ev.ToolCall | ev.ToolStart, origins: dict[str, Origin], same: bool) -> tuple[str, Json]:
    """The item's type, and all of it but its id, status and arguments."""
    base: Json = dict(call.extra) if same and call.extra else {}
    origin = origins.get(call.name)
    kind = "custom" if call.kind == "custom" else origin.kind if origin is not None else "function"
    if kind == SHELL:
        return "local_shell_call", {**base, "call_id": call.id}
    base |= {"call_id": call.id, "name": origin.name if origin is not None else call.name}
    if origin is not None and origin.namespace:
        base.setdefault("namespace", origin.namespace)
    return ("custom_tool_call" if kind == "custom" else "function_call"), base


def with_arguments(kind: str, base: Json, text: str) -> Json:
    """The item with what is called for."""
    if kind == "local_shell_call":
        return {**base, "action": {"type": "exec", "command": [], "env": {}, **_object(text)}}
    return {**base, "input" if kind == "custom_tool_call" else "arguments": text}


def free_text(arguments: str) -> str:
    """What a freeform tool is given, out of the function's one string."""
    given = _object(arguments)
    if isinstance(given.get("input"), str):
        return str(given["input"])
    values = list(given.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else arguments


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
