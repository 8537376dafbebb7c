"""What does a Messages request say, in neutral form? For upstreams of another format."""
from typing import Any, Final

from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Image,
    Message,
    Opaque,
    Part,
    Request,
    Result,
    Sampling,
    Text,
    Thinking,
    Thought,
    Tool,
)
from gateway.wire.anthropic.request import format_of, own
from gateway.wire.anthropic.schema import NAME, Json, arguments

# Fields that have a neutral place; the others are kept for who understands them.
_PLACED: Final = frozenset({
    "model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "temperature", "top_p", "top_k",
    "stop_sequences", "thinking", "metadata", "service_tier", "output_config", "output_format",
})
_EFFORTS: Final = {"max": "xhigh"}
_BILLING: Final = "x-anthropic-billing-header:"
_EMPTY_SCHEMA: Final[Json] = {"type": "object", "properties": {}}


def conversation(request: Request) -> Conversation:
    """The dialogue of a parsed request."""
    body: Json = request.body
    metadata = body.get("metadata") or {}
    user = metadata.get("user_id")
    extra = {key: value for key, value in body.items() if key not in _PLACED and value is not None}
    return Conversation(
        messages=_messages(body), tools=[_tool(tool) for tool in body.get("tools") or ()],
        tool_choice=request.tool_choice,
        sampling=Sampling(max_tokens=request.max_tokens, temperature=body.get("temperature"), top_p=body.get("top_p"),
                          top_k=body.get("top_k"), stop=body.get("stop_sequences") or None),
        thought=_thought(body), format=format_of(body), user=user if isinstance(user, str) else "",
        service_tier=str(body.get("service_tier") or ""), extra={NAME: extra} if extra else {})


def _messages(body: Json) -> list[Message]:
    out: list[Message] = []
    system = body.get("system")
    if isinstance(system, str):
        out += [Message("system", [Text(system)])] if system.strip() else []
    elif system:
        parts = _instructions(system)
        out += [Message("system", parts)] if parts else []
    for turn in body["messages"]:
        role, content = turn["role"], turn.get("content")
        parts = ([Text(content)] if content else []) if isinstance(content, str) else _parts(content or [])
        if role in ("system", "developer"):
            parts = [part for part in parts if isinstance(part, Text)]
        elif role == "user":
            results: list[Part] = [part for part in parts if isinstance(part, Result)]
            parts = [part for part in parts if not isinstance(part, Result)]
            if results:
                # Answers belong right behind the calls, whatever else the user said in this turn.
                out.append(Message("tool", results))
        if parts or role == "assistant":
            out.append(Message(role, parts))
    return out


def _instructions(blocks: list[Json]) -> list[Part]:
    """Without the line that Claude Code writes for Anthropic's billing: it tells a model nothing, and changes."""
    return [part for part in _parts(blocks) if isinstance(part, Text) and not part.text.startswith(_BILLING)]


def _parts(blocks: list[Json]) -> list[Part]:
    out: list[Part] = []
    for block in blocks:
        read = _READ.get(block["type"])
        if read is None:
            out.append(Opaque(NAME, block["type"], block))
        else:
            out += read(block)
    return out


def _text(block: Json) -> list[Part]:
    text = block["text"]
    if not text:
        return []
    rest = _rest(block, "text", "citations")
    return [Text(text, _cache(block), block.get("citations") or None, rest)]


def _thinking(block: Json) -> list[Part]:
    return [Thinking(str(block.get("thinking") or ""), str(block.get("signature") or ""), "", NAME)]


def _redacted(block: Json) -> list[Part]:
    return [Thinking("", "", str(block.get("data") or ""), NAME)]


def _call(block: Json) -> list[Part]:
    signature = block.get("thought_signature") or block.get("signature")
    rest = _rest(block, "id", "name", "input", "thought_signature", "signature")
    return [Call(str(block.get("id") or ""), block["name"], arguments(block.get("input")), "function",
                 signature if isinstance(signature, str) else "", _cache(block), rest)]


def _result(block: Json) -> list[Part]:
    content = block.get("content")
    parts: list[Part] = [Text(content)] if isinstance(content, str) and content else []
    if isinstance(content, list):
        parts = _parts(content)
    return [Result(block["tool_use_id"], parts, "", block.get("is_error") is True, "function", _cache(block),
                   _rest(block, "tool_use_id", "content", "is_error"))]


def _image(block: Json) -> list[Part]:
    source, cache = block["source"], _cache(block)
    kind = source.get("type")
    if kind == "base64":
        return [Image(str(source.get("data") or ""), str(source.get("media_type") or ""), cache_control=cache)]
    if kind == "url":
        return [Image(url=str(source.get("url") or ""), cache_control=cache)]
    return [Image(file_id=str(source.get("file_id") or ""), cache_control=cache)]


def _document(block: Json) -> list[Part]:
    source, title = block["source"], str(block.get("title") or "")
    kind = source.get("type")
    common: Json = {"title": title, "cache_control": _cache(block), "extra": _rest(block, "source", "title")}
    if kind == "base64":
        return [Document(str(source.get("media_type") or "application/pdf"), str(source.get("data") or ""), **common)]
    if kind == "text":
        return [Document(str(source.get("media_type") or "text/plain"), text=str(source.get("data") or ""), **common)]
    if kind == "url":
        return [Document(url=str(source.get("url") or ""), **common)]
    if kind == "content":
        content = source.get("content")
        inner = [Text(content)] if isinstance(content, str) else _parts(content or [])
        text = "\n".join([part.text for part in inner if isinstance(part, Text)])
        pictures: list[Part] = [part for part in inner if isinstance(part, Image)]
        return [Document("text/plain", text=text, **common), *pictures]
    return [Document(file_id=str(source.get("file_id") or ""), **common)]


def _search_result(block: Json) -> list[Part]:
    """Others read it as a document; the block itself is kept for who knows it."""
    content = block.get("content")
    texts = [str(part.get("text") or "") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [Document("text/plain", text="\n".join(texts), title=str(block.get("title") or block.get("source") or ""),
                     cache_control=_cache(block), extra={NAME: block})]


_READ: Final = {
    "text": _text, "thinking": _thinking, "redacted_thinking": _redacted, "tool_use": _call, "tool_result": _result,
    "image": _image, "document": _document, "search_result": _search_result,
}


def _cache(block: Json) -> Json | None:
    value = block.get("cache_control")
    return value if isinstance(value, dict) else None


def _rest(block: Json, *known: str) -> Json:
    rest = {key: value for key, value in block.items() if key not in known and key not in ("type", "cache_control")
            and value is not None}
    return {NAME: rest} if rest else {}


def _tool(tool: Json) -> Tool:
    name = str(tool.get("name") or tool.get("type"))
    if not own(tool):
        return Tool(name, kind="server", payload=tool, cache_control=_cache(tool))
    schema = tool.get("input_schema")
    strict = tool.get("strict")
    return Tool(name, str(tool.get("description") or ""), schema if isinstance(schema, dict) else dict(_EMPTY_SCHEMA),
                strict if isinstance(strict, bool) else None, cache_control=_cache(tool),
                extra=_rest(tool, "name", "description", "input_schema", "strict"))


def _thought(body: Json) -> Thought | None:
    thinking: Json = body.get("thinking") or {}
    effort: Any = (body.get("output_config") or {}).get("effort")
    effort = _EFFORTS.get(effort, effort) if isinstance(effort, str) else None
    kind, budget, display = thinking.get("type"), thinking.get("budget_tokens"), thinking.get("display")
    if kind == "disabled":
        return Thought(effort="none")
    if not kind and not effort:
        return None
    return Thought(effort=effort, budget_tokens=budget if isinstance(budget, int) and kind == "enabled" else None,
                   adaptive=kind == "adaptive" or kind == "auto", summary=display if isinstance(display, str) else None)
