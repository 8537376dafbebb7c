"""What does an Ollama request say, in neutral form? For upstreams of another format."""
from typing import Final

from gateway.core.request import (
    Call,
    Conversation,
    Image,
    Message,
    Part,
    Request,
    Result,
    Sampling,
    Text,
    Thinking,
    Thought,
    Tool,
)
from gateway.wire.lenient import dump
from gateway.wire.ollama.request import function_of
from gateway.wire.ollama.schema import GENERATE, NAME, Body, Json, Said

_MAGIC: Final = (("iVBORw0KGgo", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
_FILL: Final = ("Write the text that belongs between the two passages below. Answer with that text and nothing else.\n\n"
                "Before:\n{before}\n\nAfter:\n{after}")


def conversation(request: Request) -> Conversation:
    """The dialogue of a parsed request."""
    body: Body = request.body
    messages = _prompt(body) if request.operation == GENERATE else _messages(body.messages or [])
    options = body.options
    sampling = Sampling(max_tokens=request.max_tokens)
    if options is not None:
        for name in ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty"):
            setattr(sampling, name, getattr(options, name))
        sampling.stop = [options.stop] if isinstance(options.stop, str) else options.stop or None
    sampling.logprobs, sampling.top_logprobs = body.logprobs, body.top_logprobs
    return Conversation(messages=messages, tools=[_tool(tool, i) for i, tool in enumerate(body.tools or ())], sampling=sampling,
                        thought=_thought(body.think), format=request.format)


def _thought(think: bool | str | None) -> Thought | None:
    if think is None:
        return None
    return Thought(effort=think if isinstance(think, str) else "medium" if think else "none")


def _prompt(body: Body) -> list[Message]:
    out = [Message("system", [Text(body.system)])] if body.system else []
    prompt = body.prompt or ""
    if body.suffix:
        prompt = _FILL.format(before=prompt, after=body.suffix)
    return [*out, Message("user", [Text(prompt), *_images(body.images)])]


def _messages(messages: list[Said]) -> list[Message]:
    """Answers to calls find them by id, else by the tool's name, else in their order."""
    out: list[Message] = []
    waiting: list[tuple[str, str]] = []              # (id, name) of calls without an answer
    n_calls = 0
    for message in messages:
        if message.role == "tool":
            place = _place(message, waiting)
            orphan = message.tool_call_id or f"call_of_nobody_{len(out)}", message.tool_name or ""
            found, name = waiting.pop(place) if place is not None else orphan
            parts: list[Part] = [Text(message.content)] if message.content else []
            result = Result(found, [*parts, *_images(message.images)], name)
            if out and out[-1].role == "tool":
                out[-1].parts.append(result)
            else:
                out.append(Message("tool", [result]))
            continue
        said: list[Part] = [Thinking(message.thinking, owner=NAME)] if message.thinking else []
        if message.content:
            said.append(Text(message.content))
        said += _images(message.images)
        for called in message.tool_calls or ():
            n_calls += 1
            given, name = called.id or f"call_{n_calls}", called.function.name
            waiting.append((given, name))
            said.append(Call(given, name, _arguments(called.function.arguments)))
        out.append(Message(message.role, said))      # type: ignore[arg-type]
    return out


def _place(message: Said, waiting: list[tuple[str, str]]) -> int | None:
    for i, (given, name) in enumerate(waiting):
        if message.tool_call_id == given or not message.tool_call_id and message.tool_name == name:
            return i
    return 0 if waiting and not message.tool_call_id and not message.tool_name else None


def _arguments(value: object) -> str:
    return value if isinstance(value, str) else dump(value or {}).decode()


def _images(images: list[str] | None) -> list[Part]:
    """Base64 without a type: the first bytes tell. Some clients send a whole data URL."""
    found: list[Part] = []
    for data in images or ():
        kind = ""
        if data.startswith("data:"):
            head, _, data = data[5:].partition(",")
            kind = head.partition(";")[0]
        kind = kind or next((media for start, media in _MAGIC if data.startswith(start)), "image/jpeg")
        found.append(Image(data=data, media_type=kind))
    return found


def _tool(tool: Json, i: int) -> Tool:
    function = function_of(tool, i)
    parameters = function.get("parameters")
    return Tool(function["name"], str(function.get("description") or ""), parameters if isinstance(parameters, dict) else None)
