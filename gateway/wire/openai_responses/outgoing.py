"""What goes up to a Responses upstream when a Responses client asked? The caller's own bytes, with as little changed as possible."""
from typing import Any, Final

import msgspec

from gateway.core.request import Request
from gateway.wire import splice
from gateway.wire.base import Outbound
from gateway.wire.lenient import dump
from gateway.wire.openai_responses.items import mended, paired, readable
from gateway.wire.openai_responses.schema import Asked, Json

_encode = msgspec.json.encode
_UNSTORED: Final = b',"store":false'
_CHAT_TOOL: Final = ("name", "description", "parameters", "strict")


def same_format(request: Request, to: Outbound) -> bytes:
    """The body: spliced where only the model's name changes."""
    asked: Asked = request.body
    doc = asked.doc
    changes: Json = {} if request.clean else _mended(asked, to.provider)
    # What is stored is stored by us: the dialogue comes whole each time.
    unstored = doc.get("store") is not False and "store" not in to.drop_params
    if unstored and "store" in doc:
        changes["store"] = False
    if to.stream != request.stream or "stream" in doc and doc["stream"] is None:
        changes["stream"] = to.stream
    gone = [name for name in to.drop_params if name in doc]
    renamed = {old: new for old, new in to.rename_params.items() if old in doc}
    if not changes and not gone and not renamed:
        if request.model == to.model and not unstored:
            return request.raw
        if (raw := splice.set_model(request.raw, request.model, to.model, _UNSTORED if unstored else b"")) is not None:
            return raw
    top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(request.raw))
    top["model"] = _encode(to.model)
    if unstored:
        top["store"] = b"false"
    for name, value in changes.items():
        if value is None:
            top.pop(name, None)
        else:
            top[name] = dump(value)
    for name in gone:
        top.pop(name, None)
    return splice.join({renamed.get(name, name): value for name, value in top.items()})


def _mended(asked: Asked, provider: str) -> Json:
    """The fields that an upstream would refuse as they are; None for one that must go."""
    doc = asked.doc
    out: Json = {}
    given = doc.get("input")
    if isinstance(given, list):
        items = [item for item in given if readable(item, asked.makers, provider)] if asked.replayed else given
        known_elsewhere = any(item.get("type") == "item_reference" for item in items) or doc.get("previous_response_id") \
            or doc.get("conversation")
        items = mended(items)
        out["input"] = items if known_elsewhere else paired(items)
    tools = doc.get("tools")
    if isinstance(tools, list):
        out["tools"] = [_tool(tool) for tool in tools]
    if doc.get("tool_choice") is not None:
        out["tool_choice"] = _choice(doc["tool_choice"]) if asked.tools else None
    if doc.get("response_format") is not None:
        out["response_format"] = None
    form = (doc.get("text") or {}).get("format") or doc.get("response_format")
    if isinstance(form, dict):
        out["text"] = {**(doc.get("text") or {}), "format": _format(form)}
    return out


def _tool(tool: Json) -> Json:
    nested = tool.get("function")
    if isinstance(nested, dict) and "name" not in tool:
        return {"type": "function", **{name: nested[name] for name in _CHAT_TOOL if name in nested}}
    return tool if tool.get("type") else {**tool, "type": "function"}


def _choice(choice: Any) -> Any:
    if choice == "any":
        return "required"
    if isinstance(choice, dict):
        nested = choice.get("function")
        if isinstance(nested, dict):
            return {"type": "function", "name": nested.get("name")}
        return {"type": "function", **choice}
    return choice


def _format(form: Json) -> Json:
    nested = form.get("json_schema")
    if not isinstance(nested, dict):
        return form
    return {"type": "json_schema", **nested, "name": nested.get("name") or "answer"}
