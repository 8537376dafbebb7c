"""How is a dialogue said to a chat upstream? Conversation -> body, for requests that came in another format."""
from typing import Any, Final

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire.base import Outbound
from gateway.wire.lenient import dump
from gateway.wire.names import respelled
from gateway.wire.openai_chat.conversation import AUDIO, WIRE
from gateway.wire.openai_chat.schema import Json
from gateway.wire.openai_chat.strict import EITHER, choose, comply
from gateway.wire.results import spoken

_AUDIO_FORMATS: Final = {media: form for form, media in AUDIO.items()} | {"audio/mp3": "mp3", "audio/x-wav": "wav"}
_SAMPLING: Final = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias",
                    "logprobs", "top_logprobs", "n")
_EMPTY_SCHEMA: Final[Json] = {"type": "object", "properties": {}}


def other_format(request: rq.Request, to: Outbound) -> bytes:
    """The body for a chat upstream of a request in any other format."""
    if request.conversation is None:
        raise GatewayError("internal", "The request was not opened before it was built.")
    doc = body_of(respelled(request.conversation, WIRE), to)
    for old, new in to.rename_params.items():
        if old in doc:
            doc.setdefault(new, doc.pop(old))
    if EITHER & to.flags:
        choose(doc, to.flags)
    return dump({key: value for key, value in doc.items() if key not in to.drop_params})


def body_of(talk: rq.Conversation, to: Outbound) -> Json:
    doc: Json = {"model": to.model, "messages": _messages(talk.messages, to)}
    if to.stream:
        doc["stream"] = True
        if "no_stream_options" not in to.flags:
            doc["stream_options"] = {"include_usage": True}
    sampling = talk.sampling
    if sampling.max_tokens is not None:
        doc["max_tokens"] = min(sampling.max_tokens, to.max_output) if to.max_output else sampling.max_tokens
    if sampling.stop:
        doc["stop"] = sampling.stop[:4]                      # more than four are refused
    for name in _SAMPLING:
        if (value := getattr(sampling, name)) is not None:
            doc[name] = value
    _tools(talk, doc)
    comply(doc["messages"], to.flags)
    if "cache_control" not in to.flags:
        _uncached(doc)
    if talk.thought is not None and (effort := _effort(talk.thought)) is not None:
        doc["reasoning_effort"] = effort
    if talk.format is not None:
        doc["response_format"] = _format(talk.format)
    for name, value in (("user", talk.user), ("metadata", talk.metadata), ("prompt_cache_key", talk.cache_key),
                        ("service_tier", talk.service_tier)):
        if value:
            doc[name] = value
    for name, value in talk.extra.get(WIRE, {}).items():
        doc.setdefault(name, value)
    return doc


def _uncached(doc: Json) -> None:
    """Marks for Anthropic's cache are a field that OpenAI's own format does not know."""
    for tool in doc.get("tools") or ():
        tool.pop("cache_control", None)
    for message in doc["messages"]:
        content = message["content"]
        if isinstance(content, list):
            for part in content:
                part.pop("cache_control", None)
            if len(content) == 1 and content[0].keys() == {"type", "text"}:
                message["content"] = content[0]["text"]


def _effort(thought: rq.Thought) -> str | None:
    """An effort; a token budget as the nearest one."""
    if thought.effort is not None:
        return thought.effort
    budget = thought.budget_tokens
    if budget is None or budget < 0:
        return None
    return "none" if budget == 0 else "low" if budget <= 1024 else "medium" if budget <= 10_240 else "high"


def _format(wanted: rq.Format) -> Json:
    if wanted.kind == "json_object":
        return {"type": "json_object"}
    inner: Json = {"name": wanted.name or "answer"}
    if wanted.schema is not None:
        inner["schema"] = wanted.schema
    if wanted.strict:
        inner["strict"] = True
    return {"type": "json_schema", "json_schema": inner}


# ---------------------------------------------------------------- tools
def _tools(talk: rq.Conversation, doc: Json) -> None:
    tools = [made for tool in talk.tools if (made := _tool(tool)) is not None]
    if not tools:
        return                                               # a choice without tools is refused
    doc["tools"] = tools
    choice = talk.tool_choice
    if choice is None:
        return
    if choice.mode == "named" and any(tool.name == choice.name and tool.kind != "server" for tool in talk.tools):
        custom = any(tool.name == choice.name and tool.kind == "custom" for tool in talk.tools)
        kind = "custom" if custom else "function"
        doc["tool_choice"] = {"type": kind, kind: {"name": choice.name}}
    else:
        doc["tool_choice"] = "auto" if choice.mode == "named" else choice.mode
    if choice.parallel is not None:
        doc["parallel_tool_calls"] = choice.parallel


def _tool(tool: rq.Tool) -> Json | None:
    """A tool's declaration; None for what another format's provider runs itself."""
    if tool.kind == "server":
        return None
    if tool.kind == "custom":
        if tool.payload is not None and isinstance(tool.payload.get("custom"), dict):
            return tool.payload
        return {"type": "custom", "custom": {"name": tool.name, "description": tool.description}}
    function: Json = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = _EMPTY_SCHEMA if tool.parameters is None else tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    out: Json = {"type": "function", "function": function}
    if tool.cache_control is not None:
        out["cache_control"] = tool.cache_control
    return out


# ---------------------------------------------------------------- messages
def _messages(messages: list[rq.Message], to: Outbound) -> list[Json]:
    out: list[Json] = []
    for message in messages:
        if message.role == "assistant":
            out.append(_assistant(message, to))
        elif message.role in ("system", "developer"):
            role = message.role if "developer_role" in to.flags else "system"
            out.append(_named({"role": role, "content": _content(message.parts)}, message))
        else:
            _user(message, out)
    return _paired(out)


def _paired(messages: list[Json]) -> list[Json]:
    """Each call's result directly after the calls, in their order, as OpenAI demands; other formats are freer.

    A call that nobody answered (unless it is the last word) is told so; an answer that nobody asked for becomes a user's text.
    """
    results: dict[str, Json] = {}
    for message in messages:
        if message["role"] == "tool":
            results.setdefault(message["tool_call_id"], message)
    asked = {call["id"] for message in messages for call in message.get("tool_calls") or ()}
    out: list[Json] = []
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in asked:
                out.append({"role": "user", "content": message["content"] or "(an empty tool result)"})
            continue
        out.append(message)
        for call in message.get("tool_calls") or ():
            result = results.pop(call["id"], None)
            if result is not None:
                out.append(result)
            elif i + 1 < len(messages):
                out.append({"role": "tool", "tool_call_id": call["id"], "content": "No result was given."})
    return out


def _user(message: rq.Message, out: list[Json]) -> None:
    """Results go directly after the calls, each a message of its own; what only a user may show (images) follows them."""
    shown: list[rq.Part] = []
    rest: list[rq.Part] = []
    for part in message.parts:
        if isinstance(part, rq.Result):
            parts = spoken(part)
            texts = [p for p in parts if not isinstance(p, (rq.Image, rq.Document)) or _as_text(p)]
            shown += [p for p in parts if p not in texts]
            content = _content(texts)
            out.append({"role": "tool", "tool_call_id": part.call_id,
                        "content": content or ("See the attachment in the next message." if shown else "")})
        else:
            rest.append(part)
    if shown or rest:
        out.append(_named({"role": "user", "content": _content([*shown, *rest])}, message))


def _assistant(message: rq.Message, to: Outbound) -> Json:
    texts: list[rq.Part] = [p for p in message.parts if isinstance(p, (rq.Text, rq.Opaque))]
    out: Json = {"role": "assistant", "content": _content(texts) or None}
    thoughts = [p for p in message.parts if isinstance(p, rq.Thinking)]
    if thought := "".join([p.text for p in thoughts]):
        out["reasoning_content"] = thought
    details = [d for p in thoughts if p.owner == WIRE for d in p.extra.get("reasoning_details") or ()]
    if details:
        out["reasoning_details"] = details
    if refusal := "".join([p.text for p in message.parts if isinstance(p, rq.Refusal)]):
        out["refusal"] = refusal
    signed = "gemini" in to.model.lower()                    # nobody else has a use for Google's signatures
    calls = [_call(p, signed) for p in message.parts if isinstance(p, rq.Call)]
    if calls:
        out["tool_calls"] = calls
    elif out["content"] is None and not refusal:
        out["content"] = ""
    if message.extra.get("prefix") is True:                  # the answer goes on from here (providers/prefill.py)
        out["prefix"] = True
    return _named(out, message)


def _call(call: rq.Call, signed: bool) -> Json:
    field = "input" if call.kind == "custom" else "arguments"
    out: Json = {"id": call.id, "type": call.kind, call.kind: {"name": call.name, field: call.arguments}}
    if call.signature and signed:
        out["extra_content"] = {"google": {"thought_signature": call.signature}}
    return out


def _named(out: Json, message: rq.Message) -> Json:
    if message.name:
        out["name"] = message.name
    for key, value in message.extra.items():
        out.setdefault(key, value)
    return out


def _content(parts: list[rq.Part]) -> Any:
    """Plain text where it is one text; else a list of parts."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], rq.Text) and parts[0].cache_control is None:
        return parts[0].text
    return [made for part in parts if (made := _part(part)) is not None]


def _part(part: rq.Part) -> Json | None:
    out: Json | None = None
    if isinstance(part, rq.Text):
        out = {"type": "text", "text": part.text}
    elif isinstance(part, rq.Image):
        out = {"type": "image_url", "image_url": _image(part)}
    elif isinstance(part, rq.Document):
        out = _document(part)
    elif isinstance(part, rq.Refusal):
        out = {"type": "refusal", "refusal": part.text}
    elif isinstance(part, rq.Opaque) and part.wire == WIRE:
        return dict(part.payload)
    if out is not None and (cached := getattr(part, "cache_control", None)) is not None:
        out["cache_control"] = cached
    return out


def _image(image: rq.Image) -> Json:
    if image.file_id:
        raise GatewayError("unsupported", "An image given by a file id cannot be shown to this provider.")
    out: Json = {"url": f"data:{image.media_type or 'image/png'};base64,{image.data}" if image.data else image.url}
    if image.detail is not None:
        out["detail"] = image.detail
    return out


def _document(document: rq.Document) -> Json:
    media = document.media_type
    if text := _as_text(document):
        return {"type": "text", "text": text}
    if document.data and media in _AUDIO_FORMATS:
        return {"type": "input_audio", "input_audio": {"data": document.data, "format": _AUDIO_FORMATS[media]}}
    file: Json = {}
    if document.data:
        file["file_data"] = f"data:{media or 'application/pdf'};base64,{document.data}"
    elif document.url:
        file["file_data"] = document.url
    if document.title:
        file["filename"] = document.title
    elif document.data:
        file["filename"] = "document.pdf" if "pdf" in media or not media else "document"
    if document.file_id:
        file["file_id"] = document.file_id
    return {"type": "file", "file": file}


def _as_text(part: rq.Part) -> str:
    """A document that is text, as text."""
    if not isinstance(part, rq.Document) or not part.text:
        return ""
    return f"{part.title}\n\n{part.text}" if part.title else part.text
