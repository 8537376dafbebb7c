"""What of a Messages client's body has to change for an upstream that speaks the format too? The model's name, seldom more."""
from typing import Final

import msgspec

from gateway.core.request import Request
from gateway.wire import splice
from gateway.wire.anthropic.mend import mend
from gateway.wire.anthropic.request import own
from gateway.wire.anthropic.schema import Json, dump
from gateway.wire.anthropic.thinking import LEAST
from gateway.wire.base import Outbound

_encode = msgspec.json.encode
_ROLES: Final = {"developer": "system"}


def rebuild(request: Request, to: Outbound) -> bytes:
    """The body: the caller's own bytes wherever nothing has to be mended."""
    body: Json = request.body
    changes = {} if request.clean else mended(body, "unsigned_thinking" in to.flags)
    changes |= _fitted(body, to)
    if to.stream != (body.get("stream") is True) and request.operation != "count_tokens":
        changes["stream"] = to.stream
    gone = [name for name in to.drop_params if name in body]
    renamed = {old: new for old, new in to.rename_params.items() if old in body}
    model = body.get("model") or ""
    if not changes and not gone and not renamed:
        if model == to.model:
            return request.raw
        head = b'{"model":%b,' % _encode(model)
        if request.raw.startswith(head):         # where nearly all clients write it; tools may have a parameter of that name
            return b'{"model":%b,%b' % (_encode(to.model), request.raw[len(head):])
        if (raw := splice.set_model(request.raw, model, to.model)) is not None:
            return raw
    top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(request.raw))
    top["model"] = _encode(to.model)
    for name, value in changes.items():
        if value is None:
            top.pop(name, None)
        else:
            top[name] = dump(value)
    for name in gone:
        top.pop(name, None)
    return splice.join({renamed.get(name, name): value for name, value in top.items()})


def _fitted(body: Json, to: Outbound) -> Json:
    """A caller's limit above what the model can say is an error to the API."""
    asked, cap = body.get("max_tokens"), to.max_output
    if asked is None or cap is None or asked <= cap:
        return {}
    thinking = body.get("thinking") or {}
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < cap or cap <= LEAST:
        return {"max_tokens": cap}
    return {"max_tokens": cap, "thinking": {**thinking, "budget_tokens": max(cap - LEAST, LEAST)}}


def mended(body: Json, unsigned: bool) -> Json:
    """The fields that the API would refuse as they are; None for one that must go."""
    out: Json = {}
    turns = [{**turn, "role": _ROLES.get(turn["role"], turn["role"])} for turn in body["messages"]]
    messages = mend(turns, merge=False, unsigned=unsigned)
    if messages and messages != body["messages"]:
        out["messages"] = messages
    system = body.get("system")
    if isinstance(system, list):
        kept = [block for block in system if block["type"] != "text" or str(block.get("text") or "").strip()]
        if kept != system:
            out["system"] = kept or None
    words = body.get("stop_sequences")
    if words and any(not word.strip() for word in words):
        out["stop_sequences"] = [word for word in words if word.strip()] or None
    if body.get("tool_choice") and not body.get("tools"):
        out["tool_choice"] = None
    tools = [_schema(tool) if own(tool) else tool for tool in body.get("tools") or ()]
    if tools and tools != body["tools"]:
        out["tools"] = tools
    return out


def _schema(tool: Json) -> Json:
    schema = tool.get("input_schema") or {}
    if schema.get("type") == "object":
        return tool
    return {**tool, "input_schema": {**schema, "type": "object", "properties": schema.get("properties") or {}}}
