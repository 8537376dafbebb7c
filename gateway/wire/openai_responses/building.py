"""How is a dialogue said to a Responses upstream? Conversation -> body, for requests that came in another format.

The API has no stop sequences, seeds, penalties and logit biases: they are left out, as every client library does. Several choices
cannot be had. Nothing is stored there (``store`` false): the dialogue comes whole each time.
"""
from collections.abc import Iterable
from typing import Any, Final

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire.base import Outbound
from gateway.wire.lenient import dump
from gateway.wire.openai_chat.conversation import AUDIO
from gateway.wire.openai_responses.items import paired
from gateway.wire.openai_responses.schema import EMPTY_SCHEMA, WIRE, Json, clamped

MIN_OUTPUT: Final = 16           # https://platform.openai.com/docs/api-reference/responses/create#max_output_tokens
_AUDIO_FORMATS: Final = {media: form for form, media in AUDIO.items()} | {"audio/mp3": "mp3", "audio/x-wav": "wav"}
_HOSTED: Final = frozenset({"web_search", "web_search_preview", "image_generation", "code_interpreter"})


def other_format(request: rq.Request, to: Outbound) -> bytes:
    """The body for a Responses upstream of a request in any other format."""
    if request.conversation is None:
        raise GatewayError("internal", "The request was not opened before it was built.")
    doc = body_of(request.conversation, to)
    for old, new in to.rename_params.items():
        if old in doc:
            doc.setdefault(new, doc.pop(old))
    return dump({key: value for key, value in doc.items() if key not in to.drop_params})


def body_of(talk: rq.Conversation, to: Outbound) -> Json:
    sampling = talk.sampling
    if (sampling.n or 1) > 1:
        raise GatewayError("unsupported", "Several choices cannot be had from this provider.", param="n")
    instructions, rest = _leading(talk.messages)
    doc: Json = {"model": to.model}
    if instructions:
        doc["instructions"] = instructions
    doc["input"] = paired(_items(rest)) or [{"type": "message", "role": "user", "content": instructions or "Continue."}]
    doc["stream"], doc["store"] = to.stream, False
    if sampling.max_tokens is not None:
        wanted = min(sampling.max_tokens, to.max_output) if to.max_output else sampling.max_tokens
        doc["max_output_tokens"] = max(wanted, MIN_OUTPUT)
    for name, highest in (("temperature", 2.0), ("top_p", 1.0)):
        if (value := getattr(sampling, name)) is not None:
            doc[name] = min(max(value, 0), highest)
    _tools(talk, doc)
    _thought(talk.thought, doc)
    if talk.format is not None:
        doc["text"] = {"format": _format(talk.format)}
    for name, value in (("user", talk.user), ("metadata", talk.metadata), ("prompt_cache_key", talk.cache_key),
                        ("service_tier", talk.service_tier)):
        if value:
            doc[name] = value
    for name, value in talk.extra.get(WIRE, {}).items():
        doc.setdefault(name, value)
    return doc


def _thought(thought: rq.Thought | None, doc: Json) -> None:
    if thought is None:
        return
    reasoning: Json = {}
    effort, budget = thought.effort, thought.budget_tokens
    if effort is None and budget is not None and budget >= 0:
        effort = "none" if budget == 0 else "low" if budget <= 1024 else "medium" if budget <= 10_240 else "high"
    if effort is not None:
        reasoning["effort"] = effort
    if thought.include is not False and effort != "none" and (thought.summary or thought.include or thought.adaptive or budget):
        reasoning["summary"] = thought.summary or "auto"
    if reasoning:
        doc["reasoning"] = reasoning
    if reasoning and effort != "none":
        doc["include"] = ["reasoning.encrypted_content"]


def _format(wanted: rq.Format) -> Json:
    if wanted.kind == "json_object" or wanted.schema is None:
        return {"type": "json_object"}
    out: Json = {"type": "json_schema", "name": wanted.name or "answer", "schema": wanted.schema}
    if wanted.strict:
        out["strict"] = True
    return out


# ---------------------------------------------------------------- tools
def _tools(talk: rq.Conversation, doc: Json) -> None:
    tools = [made for tool in talk.tools if (made := _tool(tool)) is not None]
    if not tools:
        return
    doc["tools"] = tools
    choice = talk.tool_choice
    if choice is None:
        return
    if choice.mode == "named":
        custom = any(tool.name == choice.name and tool.kind == "custom" for tool in talk.tools)
        doc["tool_choice"] = {"type": "custom" if custom else "function", "name": choice.name}
    else:
        doc["tool_choice"] = choice.mode
    if choice.parallel is not None:
        doc["parallel_tool_calls"] = choice.parallel


def _tool(tool: rq.Tool) -> Json | None:
    """A tool's declaration; None for one that only another provider can run."""
    if tool.kind == "server":
        own = tool.extra.get("wire") == WIRE or str((tool.payload or {}).get("type")) in _HOSTED
        return tool.payload if own else None
    out: Json = {"type": tool.kind, "name": tool.name}
    if tool.description:
        out["description"] = tool.description
    if tool.kind == "custom":
        if (form := _grammar(tool.payload or {})) is not None:
            out["format"] = form
        return out
    parameters = EMPTY_SCHEMA if tool.parameters is None else tool.parameters
    out["parameters"] = parameters if "type" in parameters else {"type": "object", **parameters}
    # Unlike elsewhere, strict is the default here: https://platform.openai.com/docs/guides/migrate-to-responses
    out["strict"] = tool.strict is True
    extra: Json = tool.extra.get(WIRE, {})
    return out | extra


def _grammar(payload: Json) -> Json | None:
    """The form of a freeform tool's text. Chat puts the grammar into a box of its own."""
    form: Any = (payload.get("custom") or payload).get("format")
    if not isinstance(form, dict):
        return None
    boxed = form.get("grammar")
    return {"type": "grammar"} | (boxed if isinstance(boxed, dict) else form)


# ---------------------------------------------------------------- messages
def _leading(messages: list[rq.Message]) -> tuple[str, list[rq.Message]]:
    """The system's words before everything else are the instructions."""
    texts: list[str] = []
    for n, message in enumerate(messages):
        if message.role not in ("system", "developer") or not all(isinstance(part, rq.Text) for part in message.parts):
            return "\n\n".join(texts), messages[n:]
        texts.append("\n\n".join([part.text for part in message.parts if isinstance(part, rq.Text)]))
    return "\n\n".join(texts), []


def _items(messages: list[rq.Message]) -> list[Json]:
    """Turns taken apart; each call's result directly after the turn that called."""
    results: dict[str, list[rq.Result]] = {}
    asked: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, rq.Result):
                results.setdefault(part.call_id, []).append(part)
            elif isinstance(part, rq.Call):
                asked.add(part.id)
    out: list[Json] = []
    for message in messages:
        words: list[rq.Part] = []
        answered: list[Json] = []
        for part in message.parts:
            if isinstance(part, rq.Result) and part.call_id in asked:
                continue
            item = _item(part)
            if item is None:
                words.append(part)
                continue
            out += [*_message(message.role, words), *item]
            words = []
            if isinstance(part, rq.Call) and (waiting := results.get(part.id)):
                answered.append(_result(waiting.pop(0), part.kind))
        out += [*_message(message.role, words), *answered]
    return out


def _item(part: rq.Part) -> list[Json] | None:
    """A part that is an item of its own (or nothing); None for one that is said in a message."""
    if isinstance(part, rq.Call):
        return [_call(part)]
    if isinstance(part, rq.Thinking):
        return _reasoning(part)
    if isinstance(part, rq.Result):
        return [_result(part, "function")]
    return [dict(part.payload)] if isinstance(part, rq.Opaque) and _own(part) else None


def _own(part: rq.Opaque) -> bool:
    """An item of this format that has no neutral form."""
    return part.wire == WIRE and not part.kind.startswith("input_")


def _message(role: str, parts: list[rq.Part]) -> Iterable[Json]:
    assistant = role == "assistant"
    content = [made for part in parts if (made := _part(part, assistant)) is not None]
    if not content:
        return
    who = "user" if role == "tool" else role
    single = content[0].get("text") if len(content) == 1 and content[0]["type"] == "input_text" else None
    yield {"type": "message", "role": who, "content": content if single is None else single}


def _call(call: rq.Call) -> Json:
    custom = call.kind == "custom"
    return {"type": "custom_tool_call" if custom else "function_call", "call_id": clamped(call.id), "name": call.name,
            "input" if custom else "arguments": call.arguments if custom else call.arguments or "{}"}


def _result(result: rq.Result, kind: str) -> Json:
    parts = [made for part in result.parts if (made := _part(part, False)) is not None]
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    output: Any = "\n".join(texts) if len(texts) == len(parts) else parts
    if result.is_error:
        said = [{"type": "input_text", "text": "Error:"}, *parts]
        output = said if isinstance(output, list) else f"Error: {output}" if output else "Error"
    return {"type": "custom_tool_call_output" if kind == "custom" else "function_call_output",
            "call_id": clamped(result.call_id), "output": output}


def _reasoning(part: rq.Thinking) -> list[Json]:
    """Thinking goes back to its maker only, and only if it can read it."""
    item = part.extra.get(WIRE)
    if part.owner != WIRE or not isinstance(item, dict) or not item.get("encrypted_content"):
        return []
    return [{"type": "reasoning", "summary": [], **item}]


# ---------------------------------------------------------------- parts
def _part(part: rq.Part, assistant: bool) -> Json | None:
    if isinstance(part, rq.Text):
        return {"type": "output_text" if assistant else "input_text", "text": part.text} if part.text else None
    if isinstance(part, rq.Refusal):
        return {"type": "refusal", "refusal": part.text} if assistant else {"type": "input_text", "text": part.text}
    if assistant:
        return None                              # the API knows nothing else that an assistant has said
    if isinstance(part, rq.Image):
        return _image(part)
    if isinstance(part, rq.Document):
        return _document(part)
    return dict(part.payload) if isinstance(part, rq.Opaque) and part.wire == WIRE else None


def _image(image: rq.Image) -> Json:
    out: Json = {"type": "input_image"}
    if image.file_id:
        out["file_id"] = image.file_id
    else:
        out["image_url"] = f"data:{image.media_type or 'image/png'};base64,{image.data}" if image.data else image.url
    out["detail"] = image.detail or "auto"
    return out


def _document(document: rq.Document) -> Json:
    media = document.media_type
    if document.text:
        titled = f"{document.title}\n\n{document.text}" if document.title else document.text
        return {"type": "input_text", "text": titled}
    if document.data and media in _AUDIO_FORMATS:
        return {"type": "input_audio", "input_audio": {"data": document.data, "format": _AUDIO_FORMATS[media]}}
    out: Json = {"type": "input_file"}
    if document.file_id:
        out["file_id"] = document.file_id
    elif document.url:
        out["file_url"] = document.url
    else:
        out["filename"] = document.title or ("document.pdf" if "pdf" in media or not media else "document")
        out["file_data"] = f"data:{media or 'application/pdf'};base64,{document.data}"
    return out
