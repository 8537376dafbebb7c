"""What goes up to a chat upstream when a chat client asked? The caller's own bytes, with as little changed as possible.

Clean bodies are spliced: the model's name, ``stream_options`` and nothing else. Bodies with habits that some upstream refuses are
decoded, mended and written anew; unknown fields stay in both cases.
"""
from typing import Any, Final

import msgspec
import orjson

from gateway.core.request import Request
from gateway.wire import splice
from gateway.wire.base import Outbound
from gateway.wire.lenient import dump
from gateway.wire.openai_chat.schema import NO_TOOLS, Body, Json, Options
from gateway.wire.openai_chat.strict import EITHER, STRICT, choose, comply

_TRUE: Final = b"true"
_ASK_USAGE: Final = b',"stream_options":{"include_usage":true}'
_CHOICES: Final = ("tool_choice", "parallel_tool_calls")


def same_format(request: Request, to: Outbound) -> bytes:
    """The body for an upstream of the format in which the client asked."""
    raw = request.raw
    body: Options = request.body
    developer = "developer_role" not in to.flags and isinstance(body, Body) \
        and any(message.role == "developer" for message in body.messages or ())
    if not request.clean or developer or (isinstance(body, Body) and STRICT & to.flags):
        return _rewritten(request, to, developer)
    if to.stream == request.stream and not (to.drop_params or to.rename_params or EITHER & to.flags) \
            and (len(raw) <= splice.SMALL or raw.rfind(b"null") < 0):
        fast = _spliced(raw, body, to)
        if fast is not None:
            return fast
    top: dict[str, Any] = {key: value for key, value in splice.fields(raw).items() if len(value) != 4 or bytes(value) != b"null"}
    adapt(top, body, to)
    return splice.join(top)


def _spliced(raw: bytes, body: Options, to: Outbound) -> bytes | None:
    asks, options = to.stream and "no_stream_options" not in to.flags, body.stream_options
    if options is not None and not (asks and options.include_usage):
        return None
    return splice.set_model(raw, body.model or "", to.model, _ASK_USAGE if asks and options is None else b"")


def adapt(top: dict[str, Any], body: Options, to: Outbound) -> None:
    """The target's needs, on raw top-level values."""
    top["model"] = msgspec.json.encode(to.model)
    if to.stream:
        top["stream"] = _TRUE
    elif "stream" in top:
        top["stream"] = b"false"
    if not to.stream or "no_stream_options" in to.flags:
        top.pop("stream_options", None)
    else:
        options = splice.fields(bytes(top["stream_options"])) if body.stream_options is not None and "stream_options" in top else {}
        top["stream_options"] = splice.join({**options, "include_usage": msgspec.Raw(_TRUE)})
    for old, new in to.rename_params.items():
        if old in top:
            value = top.pop(old)
            top.setdefault(new, value)
    for name in to.drop_params:
        top.pop(name, None)
    if EITHER & to.flags:
        choose(top, to.flags)


def _rewritten(request: Request, to: Outbound, developer: bool) -> bytes:
    doc = mended(request)
    if developer:
        for message in doc.get("messages") or ():
            if message.get("role") == "developer":
                message["role"] = "system"
    comply(doc.get("messages") or [], to.flags)
    top: dict[str, Any] = {key: dump(value) for key, value in doc.items()}
    adapt(top, request.body, to)
    return splice.join(top)


def mended(request: Request) -> Json:
    """The body as a dict, in the form that every upstream takes: what ``request.py`` let pass is put right here."""
    doc: Json = orjson.loads(request.raw)
    doc = {key: value for key, value in doc.items() if value is not None}
    if request.clean:
        return doc
    if isinstance(doc.get("messages"), list):
        _messages(doc["messages"])
    if isinstance(request.body, Body):
        _tools(doc, request.body)
    for name in ("max_tokens", "max_completion_tokens"):
        if doc.get(name, 1) <= 0:
            del doc[name]
    if not request.stream:
        doc.pop("stream_options", None)
    return doc


def _messages(messages: list[Json]) -> None:
    waiting: list[str] = []                      # ids of calls without a result yet, oldest first
    made = 0
    for message in messages:
        role = message.get("role")
        if isinstance(message.get("content"), list):
            message["content"] = [_part(part) for part in message["content"]]
        if role == "assistant":
            made = _assistant(message, waiting, made)
        elif role == "tool":
            message["content"] = "" if message.get("content") is None else message["content"]
            if not message.get("tool_call_id"):
                made += not waiting
                message["tool_call_id"] = waiting[0] if waiting else f"call_auto_{made}"
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
        elif role == "function" and message.get("content") is None:
            message["content"] = ""


def _assistant(message: Json, waiting: list[str], made: int) -> int:
    """Calls get ids, a type and arguments as text. Gives the number of ids made so far."""
    calls = message.get("tool_calls")
    if not calls:
        message.pop("tool_calls", None)
        if message.get("content") is None and not any(message.get(k) for k in ("function_call", "refusal", "audio")):
            message["content"] = ""
        return made
    for call in calls:
        if not call.get("id"):
            made += 1
            call["id"] = f"call_auto_{made}"
        call["type"] = call.get("type") or ("custom" if "custom" in call else "function")
        function = call.get("function")
        if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
            function["arguments"] = dump(function.get("arguments") or {}).decode()
        waiting.append(call["id"])
    return made


def _part(part: str | Json) -> Json:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not part.get("type"):
        part["type"] = "text" if "text" in part else "image_url"
    if isinstance(part.get("image_url"), str):
        part["image_url"] = {"url": part["image_url"]}
    return part


def _tools(doc: Json, body: Body) -> None:
    if bytes(body.tools) in NO_TOOLS:
        doc.pop("tools", None)
        if not body.functions:
            for name in (*_CHOICES, "function_call"):
                doc.pop(name, None)
    for tool in doc.get("tools") or ():
        if tool.get("function") is None and tool.get("custom") is None and tool.get("name") \
                and tool.get("type") in (None, "function", "custom"):
            function = {key: tool.pop(key) for key in ("name", "description", "parameters", "strict") if key in tool}
            function.setdefault("parameters", tool.pop("input_schema", None) or {"type": "object", "properties": {}})
            tool.update(type="function", function=function)
        elif not tool.get("type"):
            tool["type"] = "custom" if tool.get("custom") is not None else "function"
    choice = doc.get("tool_choice")
    if choice == "any":
        doc["tool_choice"] = "required"
    elif isinstance(choice, dict) and choice.get("type", "function") == "function" and "function" not in choice:
        doc["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif isinstance(choice, dict):
        choice.setdefault("type", "function")
