"""What did a chat client say, in neutral form? Its body -> Conversation, for upstreams that speak another format."""
from typing import Any, Final

from gateway.core import request as rq
from gateway.wire.openai_chat.frames import REASONING, reasoning_of
from gateway.wire.openai_chat.outgoing import mended
from gateway.wire.openai_chat.request import parse_chat
from gateway.wire.openai_chat.schema import Json

WIRE: Final = "openai-chat"
AUDIO: Final = {"mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac", "opus": "audio/opus", "aac": "audio/aac",
                "ogg": "audio/ogg", "m4a": "audio/mp4", "pcm16": "audio/pcm", "webm": "audio/webm"}
_MESSAGE: Final = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal",
                             "reasoning_details", *REASONING})
_SAMPLING: Final = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias",
                    "logprobs", "top_logprobs", "n")
_TAKEN: Final = frozenset({"model", "messages", "stream", "stream_options", "tools", "functions", "tool_choice", "function_call",
                           "parallel_tool_calls", "max_tokens", "max_completion_tokens", "stop", "reasoning_effort", "reasoning",
                           "response_format", "user", "metadata", "prompt_cache_key", "service_tier", *_SAMPLING})
# Efforts as people write them; what is not here (auto, default …) is not passed on. xhigh stays: newer models know it.
EFFORTS: Final = {
    "none": "none", "off": "none", "disabled": "none", "disable": "none", "minimal": "minimal", "min": "minimal",
    "minimum": "minimal", "lowest": "minimal", "xlow": "minimal", "x-low": "minimal", "low": "low", "medium": "medium",
    "mid": "medium", "moderate": "medium", "balanced": "medium", "normal": "medium", "standard": "medium", "high": "high",
    "max": "xhigh", "maximum": "xhigh", "highest": "xhigh", "ultra": "xhigh", "xhigh": "xhigh", "x-high": "xhigh",
}


def open_chat(request: rq.Request) -> rq.Conversation:
    """The dialogue of a parsed request."""
    doc = mended(request)
    facts = request if request.tool_choice is not None or request.format is not None else None
    return rq.Conversation(
        messages=_messages(doc["messages"]), tools=_tools(doc), tool_choice=facts.tool_choice if facts else None,
        sampling=_sampling(doc, request), thought=_thought(doc), format=request.format, user=doc.get("user") or "",
        metadata=doc.get("metadata"), cache_key=doc.get("prompt_cache_key") or "", service_tier=doc.get("service_tier") or "",
        extra={WIRE: extra} if (extra := {k: v for k, v in doc.items() if k not in _TAKEN and v is not None}) else {})


def read(raw: bytes) -> rq.Conversation:
    """Bytes to a dialogue in one step."""
    return open_chat(parse_chat(raw))


def _sampling(doc: Json, request: rq.Request) -> rq.Sampling:
    stop = doc.get("stop")
    given: dict[str, Any] = {name: doc.get(name) for name in _SAMPLING}
    return rq.Sampling(max_tokens=request.max_tokens, stop=[stop] if isinstance(stop, str) else stop or None, **given)


def _thought(doc: Json) -> rq.Thought | None:
    """``reasoning_effort``; ``reasoning`` is OpenRouter's: https://openrouter.ai/docs/use-cases/reasoning-tokens"""
    bag = doc.get("reasoning")
    bag = bag if isinstance(bag, dict) else {}
    effort = doc.get("reasoning_effort") or bag.get("effort")
    budget = bag.get("max_tokens")
    known = EFFORTS.get(effort.lower()) if isinstance(effort, str) else None
    if known is None and not isinstance(budget, int):
        return None
    return rq.Thought(effort=known, budget_tokens=budget if isinstance(budget, int) else None)


# ---------------------------------------------------------------- messages
def _messages(messages: list[Json]) -> list[rq.Message]:
    out: list[rq.Message] = []
    names: dict[str, str] = {}                   # call id -> its function's name
    legacy: list[str] = []                       # ids of function_call turns that have no result yet
    for position, message in enumerate(messages):
        role = message["role"]
        if role in ("tool", "function"):
            _result(message, out, names, legacy)
            continue
        parts = _thinking(message) if role == "assistant" else []
        parts += _content(message.get("content"))
        if refusal := message.get("refusal"):
            parts.append(rq.Refusal(refusal))
        for call in message.get("tool_calls") or ():
            made = _call(call)
            names[made.id] = made.name
            parts.append(made)
        if isinstance(function := message.get("function_call"), dict):
            made = rq.Call(f"call_function_{position}", function.get("name") or "", function.get("arguments") or "{}")
            names[made.id] = made.name
            legacy.append(made.id)
            parts.append(made)
        extra = {key: value for key, value in message.items() if key not in _MESSAGE and value is not None}
        out.append(rq.Message(role, parts, message.get("name") or "", extra))
    return out


def _result(message: Json, out: list[rq.Message], names: dict[str, str], legacy: list[str]) -> None:
    """A result; the ones that follow each other are one turn."""
    name = message.get("name") or ""
    if message["role"] == "function":
        call_id = next((i for i in legacy if names[i] == name), legacy[0] if legacy else f"call_function_{name}")
        if call_id in legacy:
            legacy.remove(call_id)
    else:
        call_id = message["tool_call_id"]
    result = rq.Result(call_id, _content(message.get("content")), name or names.get(call_id, ""))
    if out and out[-1].role == "tool":
        out[-1].parts.append(result)
    else:
        out.append(rq.Message("tool", [result]))


def _thinking(message: Json) -> list[rq.Part]:
    text = reasoning_of(message)
    details = message.get("reasoning_details")
    if not text and not details:
        return []
    return [rq.Thinking(text, owner=WIRE, extra={"reasoning_details": details} if details else {})]


def _call(call: Json) -> rq.Call:
    kind = "custom" if call.get("type") == "custom" else "function"
    named = call.get(kind) or {}
    arguments = named.get("input" if kind == "custom" else "arguments") or ("" if kind == "custom" else "{}")
    google = (call.get("extra_content") or {}).get("google") or {}
    return rq.Call(call.get("id") or "", named.get("name") or "", arguments, kind,
                   signature=google.get("thought_signature") or call.get("thought_signature") or "")


def _content(content: Any) -> list[rq.Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [rq.Text(content)]
    return [_part(part) for part in content]


def _part(part: Json) -> rq.Part:
    kind = part.get("type")
    cached = part.get("cache_control")
    if kind == "text":
        return rq.Text(part["text"], cached)
    if kind == "image_url":
        return _image(part["image_url"], cached)
    if kind == "input_audio":
        audio = part["input_audio"]
        form = str(audio.get("format") or "wav")
        return rq.Document(media_type=AUDIO.get(form, "audio/" + form), data=audio["data"], cache_control=cached)
    if kind == "file":
        return _file(part["file"], cached)
    if kind == "refusal":
        return rq.Refusal(str(part.get("refusal") or ""))
    return rq.Opaque(WIRE, str(kind), part)


def _image(image: Json, cached: Json | None) -> rq.Image:
    media, data = data_url(image["url"])
    if data:
        return rq.Image(data=data, media_type=media, detail=image.get("detail"), cache_control=cached)
    return rq.Image(url=image["url"], detail=image.get("detail"), cache_control=cached)


def _file(file: Json, cached: Json | None) -> rq.Document:
    given = str(file.get("file_data") or "")
    media, data = data_url(given)
    url = given if given.startswith(("http://", "https://")) else ""
    return rq.Document(media_type=media, data=data or ("" if url else given), url=url,
                       file_id=str(file.get("file_id") or ""), title=str(file.get("filename") or ""), cache_control=cached)


def data_url(url: str) -> tuple[str, str]:
    """(media type, base64) of a ``data:`` URL; empty for any other."""
    if not url.startswith("data:"):
        return "", ""
    head, _, data = url[5:].partition(",")
    media = head.partition(";")[0]
    return (media or "text/plain", data) if head.endswith("base64") else ("", "")


# ---------------------------------------------------------------- tools
def _tools(doc: Json) -> list[rq.Tool]:
    out = [_function(function, {}) for function in doc.get("functions") or ()]
    for tool in doc.get("tools") or ():
        kind = tool.get("type")
        if kind == "function":
            extra = {key: value for key, value in tool.items() if key not in ("type", "function", "cache_control")}
            made = _function(tool["function"], extra)
            made.cache_control = tool.get("cache_control")
            out.append(made)
        elif kind == "custom":
            custom = tool["custom"]
            out.append(rq.Tool(custom["name"], custom.get("description") or "", kind="custom", payload=tool))
        else:
            out.append(rq.Tool(str(kind), kind="server", payload=tool))
    return out


def _function(function: Json, extra: Json) -> rq.Tool:
    parameters = function.get("parameters")
    return rq.Tool(function["name"], function.get("description") or "", parameters if isinstance(parameters, dict) else None,
                   function.get("strict"), extra=extra)
