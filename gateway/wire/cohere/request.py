"""How is a dialogue said to Cohere's v2 chat API? From the neutral form of any client."""
from typing import Final

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire import files
from gateway.wire.base import Outbound
from gateway.wire.cohere.schema import NAME, Json
from gateway.wire.lenient import dump

_SAMPLING: Final = (("max_tokens", "max_tokens"), ("temperature", "temperature"), ("top_p", "p"), ("top_k", "k"), ("seed", "seed"),
                    ("stop", "stop_sequences"), ("presence_penalty", "presence_penalty"),
                    ("frequency_penalty", "frequency_penalty"), ("logprobs", "logprobs"))
_LIMITS: Final = {"temperature": (0, 1), "p": (0.01, 0.99), "k": (0, 500), "presence_penalty": (0, 1), "frequency_penalty": (0, 1)}
_CHOICES: Final = {"required": "REQUIRED", "named": "REQUIRED", "none": "NONE"}
_BUDGETS: Final = {"minimal": 512, "low": 1_024, "medium": 4_096}
MAX_STOPS: Final = 5
OPENING: Final = "Continue."
_FREE: Final[Json] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def build(talk: rq.Conversation, to: Outbound) -> Json:
    """The body. Raises unsupported for what this format cannot say."""
    if (talk.sampling.n or 1) > 1:
        raise unsupported("n", "This model's API gives one answer a request.")
    body: Json = {"model": to.model, "messages": _messages(talk) or [{"role": "user", "content": OPENING}], "stream": to.stream}
    for ours, theirs in _SAMPLING:
        value = getattr(talk.sampling, ours)
        if value is not None and value != []:
            low, high = _LIMITS.get(theirs, (None, None))
            body[theirs] = value if low is None or high is None else min(max(value, low), high)
    if "stop_sequences" in body:
        body["stop_sequences"] = body["stop_sequences"][:MAX_STOPS]
    if "max_tokens" in body and to.max_output:
        body["max_tokens"] = min(body["max_tokens"], to.max_output)
    _tools(talk, body)
    if talk.format is not None:
        # https://docs.cohere.com/docs/structured-outputs
        body["response_format"] = {"type": "json_object"} | ({"json_schema": talk.format.schema} if talk.format.schema else {})
    if (thinking := _thinking(talk)) is not None:
        body["thinking"] = thinking
    body |= talk.extra.get(NAME, {})
    return {to.rename_params.get(name, name): value for name, value in body.items() if name not in to.drop_params}


def unsupported(param: str, why: str) -> GatewayError:
    return GatewayError("unsupported", why, param=param)


def _tools(talk: rq.Conversation, body: Json) -> None:
    """A named tool is the only one that is offered: the API can demand a call, not which."""
    choice = talk.tool_choice
    tools = [tool for tool in talk.tools if tool.kind != "server"]
    if choice is not None and choice.mode == "named":
        tools = [tool for tool in tools if tool.name == choice.name] or tools
    if not tools:
        return
    body["tools"] = [{"type": "function", "function": {
        "name": tool.name, "description": tool.description,
        "parameters": (tool.parameters or {"type": "object", "properties": {}}) if tool.kind == "function" else _FREE}}
        for tool in tools]
    if choice is not None and choice.mode in _CHOICES:
        body["tool_choice"] = _CHOICES[choice.mode]
    if any(tool.strict for tool in tools):
        body["strict_tools"] = True


def _thinking(talk: rq.Conversation) -> Json | None:
    """https://docs.cohere.com/docs/reasoning"""
    thought = talk.thought
    if thought is None or thought.effort is None and thought.budget_tokens is None:
        return None
    if thought.effort == "none" or thought.budget_tokens == 0:
        return {"type": "disabled"}
    budget = thought.budget_tokens or _BUDGETS.get(thought.effort or "")
    return {"type": "enabled"} | ({"token_budget": budget} if budget and budget > 0 else {})


# ---------------------------------------------------------------- messages
def _messages(talk: rq.Conversation) -> list[Json]:
    out: list[Json] = []
    for i, message in enumerate(talk.messages):
        results = [part for part in message.parts if isinstance(part, rq.Result)]
        shown: list[Json] = []
        for result in results:
            content = _content(result.parts, f"messages.{i}.content")
            text = "".join([piece["text"] for piece in content if piece["type"] == "text"])
            shown += [piece for piece in content if piece["type"] != "text"]
            out.append({"role": "tool", "tool_call_id": result.call_id, "content": text or "(empty)"})
        rest: list[rq.Part] = [part for part in message.parts if not isinstance(part, rq.Result)]
        if message.role == "assistant":
            out.append(_assistant(rest, i))
            continue
        content = shown + _content(rest, f"messages.{i}.content")    # a tool's answer holds text only: its pictures follow
        if content:
            role = "system" if message.role in ("system", "developer") else "user"
            out.append({"role": role, "content": _slim(content)})
    return [said for said in out if len(said) > 1]


def _assistant(parts: list[rq.Part], i: int) -> Json:
    out: Json = {"role": "assistant"}
    content = [piece for piece in _content([part for part in parts if isinstance(part, (rq.Text, rq.Refusal))],
                                           f"messages.{i}.content") if piece["text"].strip()]
    calls = [{"id": part.id, "type": "function", "function": {"name": part.name, "arguments": _arguments(part)}}
             for part in parts if isinstance(part, rq.Call)]
    if content:
        out["content"] = _slim(content)
    if calls:
        out["tool_calls"] = calls
        if plan := "".join([part.text for part in parts if isinstance(part, rq.Thinking) and part.owner == NAME]):
            out["tool_plan"] = plan
    return out


def _arguments(call: rq.Call) -> str:
    if call.kind == "custom":
        return dump({"input": call.arguments}).decode()
    return call.arguments if call.arguments.strip() else "{}"


def _content(parts: list[rq.Part], at: str) -> list[Json]:
    out: list[Json] = []
    for j, part in enumerate(parts):
        match part:
            case rq.Text() | rq.Refusal() if part.text:
                out.append({"type": "text", "text": part.text})
            case rq.Image():
                out.append(_image(part, f"{at}.{j}"))
            case rq.Document():
                if not part.text:
                    raise unsupported(f"{at}.{j}", f"{at}.{j}: this model's API takes no files.")
                out.append({"type": "text", "text": f"{part.title}\n\n{part.text}" if part.title else part.text})
    return out


def _image(part: rq.Image, at: str) -> Json:
    """https://docs.cohere.com/docs/image-inputs: a data URL or a web address."""
    data, kind = files.inline(part.data, part.media_type, part.url)
    if not data and not part.url.startswith(("http://", "https://")):
        raise unsupported(at, f"{at}: an image that was uploaded elsewhere cannot be given to this model.")
    url = f"data:{files.image_type(data, kind)};base64,{data}" if data else part.url
    return {"type": "image_url", "image_url": {"url": url} | ({"detail": part.detail} if part.detail else {})}


def _slim(content: list[Json]) -> str | list[Json]:
    """Plain text is a string, as everybody writes it."""
    return content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content
