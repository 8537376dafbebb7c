"""Who answers when no key is configured? An upstream inside the process that speaks OpenAI chat: no socket, no model.

It streams a fixed answer word by word, calls a tool when one is offered and asked for, answers with what a tool returned, and
makes a document of the asked schema. Everything that a real upstream's stream has is there, so the first request of a fresh
installation goes the whole way: decoder, turn, encoder.
"""
import asyncio
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from multidict import CIMultiDict

from gateway.core.errors import GatewayError
from gateway.mock.sample import sample
from gateway.upstream.transport import Outgoing

MODEL: Final = "demo"
ANSWER: Final = ("Hello! This is the demo model inside the gateway. No key, no network and no real model were needed for this "
                 "answer: it exists so that you can see a stream arrive. Set OPENAI_API_KEY or another provider's key, or write "
                 "a gateway.toml, and the same request goes to a real one.")
MAX_QUOTE: Final = 200
_ASKS: Final = re.compile(r"\b(?:use|call|invoke|run|try)\b.{0,40}\btools?\b|\btools?\b.{0,20}\b(?:call|use)\b", re.I | re.S)
_ids: Final = itertools.count(1)


class _Heard(msgspec.Struct):
    """What the demo understands of a request."""
    model: str = MODEL
    messages: list[dict[str, Any]] = []
    stream: bool | None = False
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    stream_options: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class _Said(msgspec.Struct):
    """What it answers: words, or calls as (name, arguments)."""
    words: list[str] = []
    calls: list[tuple[str, str]] = []
    finish: str = "stop"


class DemoReply:
    """A started answer (``transport.Reply``), made as it is read."""

    def __init__(self, status: int, content_type: str, pieces: Iterator[bytes], pace_s: float, live: "set[DemoReply]") -> None:
        self.status = status
        self.headers: Mapping[str, str] = CIMultiDict({"Content-Type": content_type})
        self._pieces = pieces
        self._pace_s = pace_s
        self._live = live
        self._first = True
        live.add(self)

    @property
    def complete(self) -> bool:
        return self not in self._live

    async def chunk(self) -> bytes:
        if self._first:
            self._first = False
        elif self._pace_s:
            await asyncio.sleep(self._pace_s)
        data = next(self._pieces, b"")
        if not data:
            self.close()
        return data

    async def read(self, limit: int) -> bytes:
        data = b"".join(self._pieces)
        self.close()
        if len(data) > limit:
            raise GatewayError("bad_reply", f"the answer is larger than {limit} bytes")
        return data

    def close(self) -> None:
        self._pieces = iter(())
        self._live.discard(self)


class DemoTransport:
    """``transport.Transport`` without a network. ``pace_s``: seconds between words, so that a person sees them come."""

    def __init__(self, pace_s: float = 0.015) -> None:
        self._pace_s = pace_s
        self._live: set[DemoReply] = set()

    async def send(self, out: Outgoing) -> DemoReply:
        await asyncio.sleep(0)
        path = out.url.split("?")[0]
        if path.endswith("/models"):
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "gateway"}]}
            return self._json(200, listed)
        if not path.endswith("/chat/completions"):
            return self._error(404, "the demo provider only has chat completions")
        try:
            heard = msgspec.json.decode(out.body or b"", type=_Heard)
            said = _answer(heard)
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            return self._error(400, "the demo provider does not understand this request")
        if heard.stream:
            return DemoReply(200, "text/event-stream", _frames(heard, said), self._pace_s, self._live)
        return self._json(200, _whole(heard, said))

    def _json(self, status: int, body: object) -> DemoReply:
        return DemoReply(status, "application/json", iter((msgspec.json.encode(body),)), 0.0, self._live)

    def _error(self, status: int, message: str) -> DemoReply:
        return self._json(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})

    async def close(self) -> None:
        for reply in list(self._live):
            reply.close()

    def open_connections(self) -> int:
        return len(self._live)


# -- what to say

def _answer(heard: _Heard) -> _Said:
    last = heard.messages[-1] if heard.messages else {}
    functions = [tool["function"] for tool in heard.tools or () if tool.get("type") == "function"]
    if last.get("role") == "tool":
        return _speak(heard, f"The tool answered: {_text(last)[:MAX_QUOTE]}")
    wanted = _wanted(heard.tool_choice, functions, _text(last))
    if wanted is not None:
        arguments = sample(wanted.get("parameters") or {}, _text(last)[:MAX_QUOTE])
        return _Said(calls=[(wanted["name"], msgspec.json.encode(arguments).decode())], finish="tool_calls")
    form = heard.response_format or {}
    if form.get("type") == "json_schema":
        return _speak(heard, msgspec.json.encode(sample(form["json_schema"].get("schema") or {}, "demo")).decode())
    if form.get("type") == "json_object":
        return _speak(heard, '{"answer": "This is the demo model of the gateway."}')
    return _speak(heard, ANSWER)


def _wanted(choice: Any, functions: list[dict[str, Any]], text: str) -> dict[str, Any] | None:
    """The function to call: the one that must be, or the one that the user's words ask for."""
    if not functions or choice == "none":
        return None
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        return next((function for function in functions if function["name"] == name), None)
    named = next((function for function in functions if function["name"].lower() in text.lower()), None)
    if choice == "required" or named is not None or _ASKS.search(text):
        return named or functions[0]
    return None


def _speak(heard: _Heard, text: str) -> _Said:
    words = re.findall(r"\s*\S+", text)
    limit = heard.max_completion_tokens or heard.max_tokens
    if limit is not None and len(words) > limit:
        return _Said(words=words[:limit], finish="length")
    return _Said(words=words)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


# -- how it is written

def _usage(heard: _Heard, said: _Said) -> dict[str, int]:
    read = sum(len(_text(message).split()) + 4 for message in heard.messages)
    written = len(said.words) + sum(len(arguments) // 4 + 4 for _, arguments in said.calls)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _calls(said: _Said) -> list[dict[str, Any]]:
    return [{"id": f"call_demo{next(_ids)}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in said.calls]


def _whole(heard: _Heard, said: _Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(said.words) or None}
    if said.calls:
        message["tool_calls"] = _calls(said)
    return {"id": f"chatcmpl-demo{next(_ids)}", "object": "chat.completion", "created": 0, "model": heard.model,
            "choices": [{"index": 0, "message": message, "finish_reason": said.finish}], "usage": _usage(heard, said)}


def _frames(heard: _Heard, said: _Said) -> Iterator[bytes]:
    base = {"id": f"chatcmpl-demo{next(_ids)}", "object": "chat.completion.chunk", "created": 0, "model": heard.model}

    def data(delta: dict[str, Any], finish: str | None = None) -> bytes:
        body = {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        return b"data: " + msgspec.json.encode(body) + b"\n\n"

    yield data({"role": "assistant", "content": ""})
    for word in said.words:
        yield data({"content": word})
    for index, call in enumerate(_calls(said)):
        arguments = call["function"]["arguments"]
        yield data({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
        for at in range(0, len(arguments), 12):
            yield data({"tool_calls": [{"index": index, "function": {"arguments": arguments[at:at + 12]}}]})
    yield data({}, said.finish)
    if (heard.stream_options or {}).get("include_usage"):
        yield b"data: " + msgspec.json.encode({**base, "choices": [], "usage": _usage(heard, said)}) + b"\n\n"
    yield b"data: [DONE]\n\n"
