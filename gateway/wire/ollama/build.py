"""How is a dialogue said to an Ollama server? From the neutral form of any other client, or an Ollama client's own body."""
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Image,
    Message,
    Part,
    Refusal,
    Request,
    Result,
    Text,
    Thinking,
    Tool,
)
from gateway.wire import splice
from gateway.wire.base import Outbound
from gateway.wire.lenient import dump, load
from gateway.wire.ollama.schema import Json
from gateway.wire.results import spoken

_OPTIONS: Final = (("max_tokens", "num_predict"), ("temperature", "temperature"), ("top_p", "top_p"), ("top_k", "top_k"),
                   ("min_p", "min_p"), ("seed", "seed"), ("stop", "stop"), ("presence_penalty", "presence_penalty"),
                   ("frequency_penalty", "frequency_penalty"))
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
_BUDGET_LOW: Final = 1_024


def same_format(request: Request, to: Outbound) -> bytes:
    """The caller's own bytes with the model's name; whether to stream is always said, since silence means yes."""
    stream = request.body.stream
    if (stream is not False) == to.stream and not to.drop_params:
        if (raw := splice.set_model(request.raw, request.model, to.model)) is not None:
            return raw
    top: dict[str, Any] = dict(splice.fields(request.raw))
    top["model"], top["stream"] = dump(to.model), dump(to.stream)
    return splice.join({name: value for name, value in top.items() if name not in to.drop_params})


def other_format(request: Request, to: Outbound) -> bytes:
    """Raises unsupported for what this format cannot say."""
    assert request.conversation is not None, "a request of another format comes opened"
    body = build(request.conversation, to)
    return dump({name: value for name, value in body.items() if name not in to.drop_params})


def build(talk: Conversation, to: Outbound) -> Json:
    if (talk.sampling.n or 1) > 1:
        raise GatewayError("unsupported", "This model's API gives one answer a request.", param="n")
    body: Json = {"model": to.model, "messages": _messages(talk.messages), "stream": to.stream}
    tools = [made for tool in talk.tools if (made := _tool(tool)) is not None]
    choice = talk.tool_choice
    if tools and (choice is None or choice.mode != "none"):
        # The API has no tool_choice: a named tool is the only one that is offered.
        named = [tool for tool in tools if choice is not None and tool["function"]["name"] == choice.name]
        body["tools"] = named or tools
    if talk.format is not None:
        body["format"] = talk.format.schema or "json"
    if (think := _think(talk)) is not None:
        body["think"] = think
    options = {theirs: value for ours, theirs in _OPTIONS if (value := getattr(talk.sampling, ours)) is not None}
    if options:
        body["options"] = options
    return body


def _think(talk: Conversation) -> bool | str | None:
    thought = talk.thought
    if thought is None:
        return None
    if thought.effort is not None:
        return False if thought.effort == "none" else _EFFORTS.get(thought.effort, True)
    budget = thought.budget_tokens
    return None if budget is None else False if budget == 0 else "low" if 0 < budget <= _BUDGET_LOW else True


def _tool(tool: Tool) -> Json | None:
    """None for a tool that only its own provider can run."""
    if tool.kind == "server":
        return None
    parameters = tool.parameters or {"type": "object", "properties": {}}
    if tool.kind == "custom":
        parameters = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


def _messages(messages: list[Message]) -> list[Json]:
    out: list[Json] = []
    names = {part.id: part.name for message in messages for part in message.parts if isinstance(part, Call)}
    for message in messages:
        rest: list[Part] = [part for part in message.parts if not isinstance(part, Result)]
        for part in message.parts:
            if isinstance(part, Result):
                out.append(_said("tool", spoken(part)) | {"tool_name": part.name or names.get(part.call_id, ""),
                                                        "tool_call_id": part.call_id})
        if rest or message.role == "assistant":
            out.append(_said("system" if message.role == "developer" else message.role, rest))
    return out


def _said(role: str, parts: list[Part]) -> Json:
    texts: list[str] = []
    message: Json = {"role": role, "content": ""}
    for part in parts:
        match part:
            case Text() | Refusal():
                texts.append(part.text)
            case Document():
                texts.append(_document(part))
            case Image():
                message.setdefault("images", []).append(_image(part))
            case Thinking() if part.text:
                message["thinking"] = message.get("thinking", "") + part.text
            case Call():
                message.setdefault("tool_calls", []).append(
                    {"id": part.id, "function": {"name": part.name, "arguments": _arguments(part)}})
    message["content"] = "\n\n".join(texts)
    return message


def _image(image: Image) -> str:
    if image.data:
        return image.data
    if image.url.startswith("data:"):
        return image.url.partition(",")[2]
    raise GatewayError("unsupported", "This model's API takes images as bytes only.", param="messages")


def _document(document: Document) -> str:
    if not document.text:
        raise GatewayError("unsupported", "This model's API takes no documents.", param="messages")
    return f"{document.title}\n\n{document.text}" if document.title else document.text


def _arguments(call: Call) -> Json:
    if call.kind == "custom":
        return {"input": call.arguments}
    try:
        value, _ = load(call.arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": call.arguments} if call.arguments.strip() else {}
