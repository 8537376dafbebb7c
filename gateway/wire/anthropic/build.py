"""How is a dialogue said in Anthropic's Messages format? From the neutral form of any other client."""
import base64
import binascii
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Refusal,
    Result,
    Text,
    Thinking,
    Tool,
)
from gateway.wire.anthropic.mend import mend
from gateway.wire.anthropic.schema import (
    CITATIONS,
    IMAGE_TYPES,
    NAME,
    VERSIONED,
    Json,
    call_input,
    dump,
    image_type,
    safe_name,
)
from gateway.wire.anthropic.thinking import limits
from gateway.wire.base import Outbound

CHOICES: Final = {"auto": "auto", "required": "any", "none": "none", "named": "tool"}
_SYSTEM: Final = frozenset({"system", "developer"})


def build(talk: Conversation, to: Outbound) -> Json:
    """The body. Raises unsupported for what this format cannot say."""
    if (talk.sampling.n or 1) > 1:
        raise _unsupported("n", "This model's API gives one answer a request.")
    system = _system(talk, to)
    messages = _messages(talk, to)
    if not messages:
        # Instructions alone are no conversation to this API: they become what the user says.
        messages = [{"role": "user", "content": "\n\n".join(block["text"] for block in system) or "."}]
        system = []
    tools = [made for tool in talk.tools if (made := _tool(tool, to)) is not None]
    choice = _choice(talk, tools)
    body: Json = {"model": to.model} | limits(talk, to, forced=choice.get("type") in ("any", "tool"))
    if system:
        body["system"] = system[0]["text"] if len(system) == 1 and system[0].keys() == {"type", "text"} else system
    body["messages"] = messages
    if tools:
        body["tools"] = tools
        if choice:
            body["tool_choice"] = choice
    body |= _sampling(talk, thinks=body.get("thinking", {}).get("type") in ("enabled", "adaptive"))
    if talk.format is not None and "structured_outputs" in to.flags and talk.format.schema is not None:
        wanted = {"type": "json_schema", "schema": talk.format.schema}
        body["output_config"] = body.get("output_config", {}) | {"format": wanted}
    if talk.user:
        body["metadata"] = {"user_id": talk.user}
    if talk.service_tier in ("auto", "standard_only"):
        body["service_tier"] = talk.service_tier
    body |= talk.extra.get(NAME, {})
    if to.stream:
        body["stream"] = True
    return body


def _unsupported(param: str, why: str) -> GatewayError:
    return GatewayError("unsupported", why, param=param)


# ---------------------------------------------------------------- around the messages
def _system(talk: Conversation, to: Outbound) -> list[Json]:
    """All instructions in one place, in their order: this format knows them at the top only."""
    blocks = [_text(part) for message in talk.messages if message.role in _SYSTEM for part in message.parts
              if isinstance(part, Text) and part.text.strip()]
    if talk.format is not None and not ("structured_outputs" in to.flags and talk.format.schema is not None):
        blocks.append({"type": "text", "text": _instruction(talk.format)})
    return blocks


def _instruction(wanted: Format) -> str:
    if wanted.schema is None:
        return "Answer with one valid JSON object and nothing else: no prose, no code fence."
    schema = dump(wanted.schema).decode()
    return ("Answer with one JSON value that is valid under the JSON Schema below, and nothing else: no prose, no code fence."
            f"\n```json\n{schema}\n```")


def _sampling(talk: Conversation, thinks: bool) -> Json:
    """Thinking goes with the default temperature only, and newer models take one of temperature and top_p."""
    said, out = talk.sampling, Json()
    if said.temperature is not None and not thinks:
        out["temperature"] = min(max(said.temperature, 0), 1)
    if said.top_p is not None and "temperature" not in out and (not thinks or said.top_p >= 0.95):
        out["top_p"] = min(max(said.top_p, 0), 1)
    if said.top_k is not None and not thinks and said.top_k > 0:
        out["top_k"] = said.top_k
    if stop := [word for word in said.stop or () if word.strip()]:
        out["stop_sequences"] = stop
    return out


def _tool(tool: Tool, to: Outbound) -> Json | None:
    """None for a tool that only its own provider can run."""
    if tool.kind == "server":
        return _server_tool(tool, to)
    schema = dict(tool.parameters or {})
    if tool.kind == "custom":
        schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    if schema.get("type") != "object":
        schema["type"] = "object"
    schema.setdefault("properties", {})
    out: Json = {"name": safe_name(tool.name)}
    description = tool.description
    if tool.kind == "custom" and (grammar := _grammar(tool.payload or {})):
        description += f"\n\nThe string `input` must follow this grammar:\n{grammar}"
    if description:
        out["description"] = description
    out["input_schema"] = schema
    if tool.cache_control:
        out["cache_control"] = tool.cache_control
    if tool.strict is not None and ("structured_outputs" in to.flags or NAME in tool.extra):
        out["strict"] = tool.strict
    own: Json = tool.extra.get(NAME, {})
    return out | own


def _grammar(payload: Json) -> Any:
    """What a freeform tool's text must look like: Responses says it flat, chat in boxes."""
    for box in ("custom", "format", "grammar"):
        inner = payload.get(box)
        payload = inner if isinstance(inner, dict) else payload
    return payload.get("definition")


def _server_tool(tool: Tool, to: Outbound) -> Json | None:
    payload = tool.payload or {}
    kind = str(payload.get("type") or "")
    if VERSIONED.search(kind):
        return payload
    if kind.startswith("web_search") and "server_tools" in to.flags:
        return {"type": "web_search_20250305", "name": "web_search"}
    return None


def _choice(talk: Conversation, tools: list[Json]) -> Json:
    said = talk.tool_choice
    if said is None or not tools:
        return {}
    kind = CHOICES[said.mode]
    names = {tool.get("name") for tool in tools}
    out: Json = {"type": kind}
    if kind == "tool":
        name = safe_name(said.name)
        out = {"type": "tool", "name": name} if name in names else {"type": "any"}
    if said.parallel is not None and kind != "none":
        out["disable_parallel_tool_use"] = not said.parallel
    return out


# ---------------------------------------------------------------- messages
def _messages(talk: Conversation, to: Outbound) -> list[Json]:
    turns = [{"role": "assistant" if message.role == "assistant" else "user", "content": _content(message, i, to)}
             for i, message in enumerate(talk.messages) if message.role not in _SYSTEM]
    out = mend(turns, merge=True, unsigned="unsigned_thinking" in to.flags)
    if out and out[-1]["role"] == "assistant":
        # The start of an answer to be continued must not end in blanks.
        content = out[-1]["content"]
        if isinstance(content, str):
            out[-1]["content"] = content.rstrip()
        elif content and content[-1]["type"] == "text":
            out[-1]["content"] = [*content[:-1], {**content[-1], "text": content[-1]["text"].rstrip()}]
    return out


def _content(message: Message, i: int, to: Outbound) -> list[Json]:
    out: list[Json] = []
    for j, part in enumerate(message.parts):
        if message.role == "assistant" and isinstance(part, (Image, Document)):
            continue                                     # pictures that a model made: this API takes none back
        block = _block(part, f"messages.{i}.content.{j}", to)
        if block is not None:
            out.append(block)
    return out


def _block(part: Part, at: str, to: Outbound) -> Json | None:
    match part:
        case Text():
            return _text(part)
        case Image():
            return _image(part, at)
        case Document():
            return _document(part, at)
        case Thinking():
            return _thinking(part, to)
        case Call():
            block: Json = {"type": "tool_use", "id": part.id, "name": safe_name(part.name),
                           "input": call_input(part.arguments, part.kind)}
            return _marked(block | part.extra.get(NAME, {}), part)
        case Result():
            return _result(part, at, to)
        case Refusal():
            return {"type": "text", "text": part.text}
        case Opaque():
            return part.payload if part.wire == NAME and isinstance(part.payload, dict) else None


def _marked(block: Json, part: Any) -> Json:
    return block | {"cache_control": part.cache_control} if part.cache_control else block


def _text(part: Text) -> Json:
    block: Json = {"type": "text", "text": part.text}
    if part.citations and all(isinstance(c, dict) and c.get("type") in CITATIONS for c in part.citations):
        block["citations"] = part.citations
    return _marked(block | part.extra.get(NAME, {}), part)


def _thinking(part: Thinking, to: Outbound) -> Json | None:
    """Only what this API has signed may go back to it."""
    if part.owner in (NAME, to.provider):
        if part.redacted:
            return {"type": "redacted_thinking", "data": part.redacted}
        if part.signature:
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return {"type": "thinking", "thinking": part.text} if part.text and "unsigned_thinking" in to.flags else None


def _result(part: Result, at: str, to: Outbound) -> Json:
    block: Json = {"type": "tool_result", "tool_use_id": part.call_id}
    content = [made for k, inner in enumerate(part.parts) if not isinstance(inner, (Thinking, Call, Result))
               and (made := _block(inner, f"{at}.{k}", to)) is not None]
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        block["content"] = content[0]["text"]
    elif content:
        block["content"] = content
    if part.is_error:
        block["is_error"] = True
    return _marked(block | part.extra.get(NAME, {}), part)


def _image(part: Image, at: str) -> Json:
    data, kind, url = part.data, part.media_type, part.url
    if url.startswith("data:"):
        head, _, data = url[5:].partition(",")
        kind, url = head.partition(";")[0], ""
    if data:
        kind = image_type(data, kind)
        if kind not in IMAGE_TYPES:
            raise _unsupported(at, f"{at}: images of the type {kind!r} are not accepted by this model's API.")
        return _marked({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}, part)
    if url:
        return _marked({"type": "image", "source": {"type": "url", "url": url}}, part)
    return _marked({"type": "image", "source": _file(part.file_id, at)}, part)


def _file(file_id: str, at: str) -> Json:
    if not file_id.startswith("file_"):                  # Anthropic's own are file_…, OpenAI's file-…
        raise _unsupported(at, f"{at}: a file uploaded elsewhere cannot be given to this model.")
    return {"type": "file", "file_id": file_id}


def _document(part: Document, at: str) -> Json:
    own = part.extra.get(NAME, {})
    if own.get("type") == "search_result":
        return dict(own)
    block: Json = {"type": "document", "source": _source(part, at)}
    if part.title:
        block["title"] = part.title
    return _marked(block | own, part)


def _source(part: Document, at: str) -> Json:
    kind, data, url = part.media_type, part.data, part.url
    if url.startswith("data:"):
        head, _, data = url[5:].partition(",")
        kind, url = kind or head.partition(";")[0], ""
    if kind.startswith(("audio/", "video/")):
        raise _unsupported(at, f"{at}: {kind.partition('/')[0]} is not accepted by this model's API.")
    if part.text:
        return {"type": "text", "media_type": "text/plain", "data": part.text}
    if data and kind in ("application/pdf", "", "application/octet-stream"):
        return {"type": "base64", "media_type": "application/pdf", "data": data}
    if data and (kind.startswith("text/") or kind in ("application/json", "application/xml", "application/yaml")):
        return {"type": "text", "media_type": "text/plain", "data": _decoded(data, at)}
    if data:
        raise _unsupported(at, f"{at}: documents of the type {kind!r} are not accepted by this model's API.")
    return {"type": "url", "url": url} if url else _file(part.file_id, at)


def _decoded(data: str, at: str) -> str:
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4), altchars=b"-_" if "-" in data or "_" in data else None) \
            .decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        raise _unsupported(at, f"{at}: the document is not valid base64.") from None
