"""How is a dialogue said to Bedrock's Converse API? From the neutral form of any client.

Turns alternate and calls are answered at once, as in the Messages format, whose mending is used: blocks stand in its form until
they are settled, then each is told in Converse's.
"""
from typing import Final

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire import files
from gateway.wire.anthropic.mend import mend
from gateway.wire.anthropic.schema import call_input
from gateway.wire.anthropic.thinking import limits
from gateway.wire.base import Outbound
from gateway.wire.bedrock_converse.schema import DOCUMENTS, IMAGES, NAME, VIDEOS, Json, call_id
from gateway.wire.lenient import dump

_SYSTEM: Final = frozenset({"system", "developer"})
_OWN: Final = "converse"                             # type of a block that is in Converse's form already
_CACHE: Final[Json] = {"cachePoint": {"type": "default"}}
_FREE: Final[Json] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
_TIERS: Final = frozenset({"default", "priority", "flex", "reserved"})
OPENING: Final = "Continue."


def build(talk: rq.Conversation, to: Outbound) -> Json:
    """The body. Raises unsupported for what this format cannot say."""
    if (talk.sampling.n or 1) > 1:
        raise unsupported("n", "This model's API gives one answer a request.")
    claude, marks = "claude" in to.model, "claude" in to.model or "nova" in to.model
    system = _system(talk, to, marks)
    messages = _messages(talk, to, marks)
    if not messages:
        # Instructions alone are no conversation to this API: they become what the user says.
        messages, system = [{"role": "user", "content": system or [{"text": OPENING}]}], []
    tools = _tools(talk, messages, claude)
    choice = _choice(talk, tools)
    body: Json = {"messages": messages}
    if system:
        body["system"] = system
    if tools:
        body["toolConfig"] = {"tools": tools} | ({"toolChoice": choice} if choice else {})
    config, more = _inference(talk, to, forced="any" in choice or "tool" in choice)
    if config:
        body["inferenceConfig"] = config
    if more:
        body["additionalModelRequestFields"] = more
    if talk.format is not None and talk.format.schema is not None and "structured_outputs" in to.flags:
        wanted = {"name": talk.format.name or "answer", "schema": dump(talk.format.schema).decode()}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": wanted}}}
    if talk.service_tier in _TIERS:
        body["serviceTier"] = {"type": talk.service_tier}
    return _adapted(body | talk.extra.get(NAME, {}), to)


def unsupported(param: str, why: str) -> GatewayError:
    return GatewayError("unsupported", why, param=param)


def _adapted(body: Json, to: Outbound) -> Json:
    for names in (body, body.get("inferenceConfig") or {}, body.get("additionalModelRequestFields") or {}):
        for name in to.drop_params:
            names.pop(name, None)
    return body


# ---------------------------------------------------------------- around the messages
def _system(talk: rq.Conversation, to: Outbound, marks: bool) -> list[Json]:
    out: list[Json] = []
    for message in talk.messages:
        for part in message.parts if message.role in _SYSTEM else ():
            if isinstance(part, rq.Text) and part.text.strip():
                out.append({"text": part.text})
                if part.cache_control and marks:
                    out.append(_CACHE)
    if talk.format is not None and not ("structured_outputs" in to.flags and talk.format.schema is not None):
        out.append({"text": instruction(talk.format)})
    return out


def instruction(wanted: rq.Format) -> str:
    if wanted.schema is None:
        return "Answer with one valid JSON object and nothing else: no prose, no code fence."
    return ("Answer with one JSON value that is valid under the JSON Schema below, and nothing else: no prose, no code fence."
            f"\n```json\n{dump(wanted.schema).decode()}\n```")


def _tools(talk: rq.Conversation, messages: list[Json], claude: bool) -> list[Json]:
    """The tools; also when none may be called, where the messages speak of calls: the API wants them declared then."""
    choice = talk.tool_choice
    if choice is not None and choice.mode == "none" and not any("toolUse" in block or "toolResult" in block
                                                               for message in messages for block in message["content"]):
        return []
    out: list[Json] = []
    for tool in talk.tools:
        if tool.kind == "server":
            continue
        schema = dict(tool.parameters or {}) if tool.kind == "function" else dict(_FREE)
        if schema.get("type") != "object":
            schema["type"] = "object"
        spec: Json = {"name": tool.name, "inputSchema": {"json": schema}}
        if tool.description.strip():
            spec["description"] = tool.description
        if tool.strict and claude:
            spec["strict"] = True
        out.append({"toolSpec": spec})
        if tool.cache_control and claude:
            out.append(_CACHE)
    return out


def _choice(talk: rq.Conversation, tools: list[Json]) -> Json:
    """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolChoice.html; auto is the default."""
    said = talk.tool_choice
    if said is None or not tools:
        return {}
    if said.mode == "named" and any(tool.get("toolSpec", {}).get("name") == said.name for tool in tools):
        return {"tool": {"name": said.name}}
    return {"any": {}} if said.mode in ("required", "named") else {}


def _inference(talk: rq.Conversation, to: Outbound, forced: bool) -> tuple[Json, Json]:
    """(what all models know, what this family knows)"""
    said, config, more = talk.sampling, Json(), Json()
    if said.max_tokens is not None:
        config["maxTokens"] = min(said.max_tokens, to.max_output) if to.max_output else said.max_tokens
    if said.temperature is not None:
        config["temperature"] = min(max(said.temperature, 0), 1)
    if said.top_p is not None:
        config["topP"] = min(max(said.top_p, 0), 1)
    if stop := [word for word in said.stop or () if word.strip()]:
        config["stopSequences"] = stop
    if "claude" in to.model:
        _claude(talk, to, forced, config, more)
    elif "nova" in to.model:
        if said.top_k:
            more["inferenceConfig"] = {"topK": said.top_k}
        effort = _EFFORTS.get((talk.thought and talk.thought.effort) or "")
        if effort and "nova-2" in to.model:
            more["reasoningConfig"] = {"type": "enabled", "maxReasoningEffort": effort}
            if effort == "high":
                # https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html: refused beside it
                config = {name: value for name, value in config.items() if name == "stopSequences"}
    elif "gpt-oss" in to.model and (effort := _EFFORTS.get((talk.thought and talk.thought.effort) or "")):
        more["reasoning_effort"] = effort
    return config, more


def _claude(talk: rq.Conversation, to: Outbound, forced: bool, config: Json, more: Json) -> None:
    found = limits(talk, to, forced)
    thinking = found.get("thinking")
    if thinking is not None:
        more["thinking"] = thinking
        config["maxTokens"] = found["max_tokens"]
    if "output_config" in found:
        more["output_config"] = found["output_config"]
    if thinking is not None and thinking["type"] != "disabled":
        config.pop("temperature", None)
        config.pop("topP", None)
    elif talk.sampling.top_k:
        more["top_k"] = talk.sampling.top_k
    if "temperature" in config:
        config.pop("topP", None)                     # newer models take one of the two


# ---------------------------------------------------------------- messages
def _messages(talk: rq.Conversation, to: Outbound, marks: bool) -> list[Json]:
    titles = _Titles()
    turns = [{"role": "assistant" if message.role == "assistant" else "user",
              "content": [made for j, part in enumerate(message.parts)
                          for made in _parts(part, message.role, f"messages.{i}.content.{j}", to, titles, marks)]}
             for i, message in enumerate(talk.messages) if message.role not in _SYSTEM]
    out = []
    for turn in mend(turns, merge=True):
        content = turn["content"]
        blocks = [{"text": content}] if isinstance(content, str) else [_settled(block) for block in content]
        if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
            blocks.append({"text": OPENING})         # a document alone is refused
        out.append({"role": turn["role"], "content": blocks})
    if out and out[-1]["role"] == "assistant" and "text" in (last := out[-1]["content"][-1]):
        out[-1]["content"][-1] = {"text": last["text"].rstrip()}
    return out


def _parts(part: rq.Part, role: str, at: str, to: Outbound, titles: "_Titles", marks: bool) -> list[Json]:
    """A part in the form that mending knows, with the cache mark that stands after it."""
    if role == "assistant" and isinstance(part, (rq.Image, rq.Document)):
        return []                                    # pictures that a model made: this API takes none back
    block = _block(part, at, to, titles)
    if block is None:
        return []
    marked = marks and getattr(part, "cache_control", None)
    return [block, {"type": _OWN, "block": _CACHE}] if marked and not isinstance(part, rq.Result) else [block]


def _block(part: rq.Part, at: str, to: Outbound, titles: "_Titles") -> Json | None:
    match part:
        case rq.Text() | rq.Refusal():
            return {"type": "text", "text": part.text}
        case rq.Image():
            return {"type": _OWN, "block": _image(part, at)}
        case rq.Document():
            return {"type": _OWN, "block": _document(part, at, titles)}
        case rq.Call():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": call_input(part.arguments, part.kind)}
        case rq.Result():
            inner = [made for k, one in enumerate(part.parts) if (made := _block(one, f"{at}.{k}", to, titles)) is not None]
            return {"type": "tool_result", "tool_use_id": part.call_id, "content": inner, "is_error": part.is_error}
        case rq.Thinking() if part.owner in (NAME, to.provider) and (part.signature or part.redacted):
            said: Json = {"redactedContent": part.redacted} if part.redacted else \
                {"reasoningText": {"text": part.text, "signature": part.signature}}
            return {"type": _OWN, "block": {"reasoningContent": said}}
        case rq.Opaque() if part.wire == NAME and isinstance(part.payload, dict):
            return {"type": _OWN, "block": part.payload}
    return None


def _settled(block: Json) -> Json:
    """A mended block as Converse says it."""
    kind = block["type"]
    if kind == _OWN:
        return dict(block["block"])
    if kind == "text":
        return {"text": block["text"]}
    if kind == "tool_use":
        return {"toolUse": {"toolUseId": call_id(block["id"]), "name": block["name"], "input": block["input"]}}
    content = block.get("content")
    said = [{"text": content}] if isinstance(content, str) else [_settled(inner) for inner in content or ()]
    result: Json = {"toolUseId": call_id(block["tool_use_id"]), "content": said or [{"text": "(empty)"}]}
    return {"toolResult": result | ({"status": "error"} if block.get("is_error") else {})}


# ---------------------------------------------------------------- pictures and documents
def _image(part: rq.Image, at: str) -> Json:
    data, kind = files.inline(part.data, part.media_type, part.url)
    if not data:
        raise unsupported(at, f"{at}: an image must be sent to this model as data.")
    kind = files.image_type(data, kind)
    if kind not in IMAGES:
        raise unsupported(at, f"{at}: images of the type {kind!r} are not accepted by this model's API.")
    return {"image": {"format": IMAGES[kind], "source": {"bytes": data}}}


def _document(part: rq.Document, at: str, titles: "_Titles") -> Json:
    if part.text:
        return {"text": f"{part.title}\n\n{part.text}" if part.title else part.text}
    data, kind = files.inline(part.data, part.media_type, part.url)
    if not data:
        raise unsupported(at, f"{at}: a file must be sent to this model as data.")
    if kind in VIDEOS:
        return {"video": {"format": VIDEOS[kind], "source": {"bytes": data}}}
    form = DOCUMENTS.get(kind or "application/pdf") or ("txt" if kind.startswith("text/") else "")
    if not form:
        raise unsupported(at, f"{at}: files of the type {kind!r} are not accepted by this model's API.")
    return {"document": {"format": form, "name": titles.of(part.title), "source": {"bytes": data}}}


class _Titles:
    """Names of documents: letters, digits, single spaces, hyphens and brackets only, and no two alike."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, title: str) -> str:
        kept = "".join([sign if sign.isascii() and (sign.isalnum() or sign in " -()[]") else "-" for sign in title])
        stem = " ".join(kept.split())[:180] or "document"
        name, n = stem, 1
        while name in self._used:
            n += 1
            name = f"{stem} {n}"
        self._used.add(name)
        return name
