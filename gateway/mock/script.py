"""What does a scripted upstream do with a request? A list of steps, and the usual stories told with them.

    Script([Head(200, SSE), Send(frame("Hel")), Wait(0.1), Send(frame("lo")), Reset()])
    stream("Hel", "lo", delay_s=0.1).but(Reset(), after=1)
"""
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

import msgspec

from gateway.mock.http1 import LAST_CHUNK, chunk

MODEL: Final = "mock-model"
SSE: Final = {"Content-Type": "text/event-stream"}
JSON: Final = {"Content-Type": "application/json"}
HTML: Final = {"Content-Type": "text/html"}


class Head(msgspec.Struct, frozen=True):
    """The status line and headers. ``framing``: chunked, close (the body ends with the connection), or a stated length."""
    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: JSON)
    framing: str | int = "chunked"


class Send(msgspec.Struct, frozen=True):
    """Body bytes in one write, framed as the head said."""
    data: bytes


class Raw(msgspec.Struct, frozen=True):
    """Bytes as they are, outside all framing."""
    data: bytes


class Drip(msgspec.Struct, frozen=True):
    """Raw bytes, one at a time."""
    data: bytes
    every_s: float


class Wait(msgspec.Struct, frozen=True):
    seconds: float


class Hang(msgspec.Struct, frozen=True):
    """Nothing more happens until the client goes."""


class Reset(msgspec.Struct, frozen=True):
    """The connection is reset (RST)."""


class Close(msgspec.Struct, frozen=True):
    """The connection is closed in the middle of whatever it was."""


class End(msgspec.Struct, frozen=True):
    """The body is complete; the connection stays open for another request, as the framing allows."""


Step = Head | Send | Raw | Drip | Wait | Hang | Reset | Close | End


class Script(msgspec.Struct, frozen=True):
    """Steps in order. After the last one the body is ended properly if the steps did not end it otherwise."""
    steps: tuple[Step, ...]

    def but(self, *steps: Step, after: int) -> Self:
        """The same up to its ``after``-th Send, then these steps instead."""
        sends = [i for i, step in enumerate(self.steps) if isinstance(step, Send)]
        at = sends[after] if after < len(sends) else len(self.steps)
        return type(self)(self.steps[:at] + steps)

    def later(self, seconds: float) -> Self:
        """The same after a while."""
        return type(self)((Wait(seconds), *self.steps))


def script(*steps: Step) -> Script:
    return Script(steps)


# -- frames of OpenAI chat

def frame(text: str | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    """One ``data:`` frame; ``more`` goes into the delta, or beside ``choices`` for usage and error."""
    beside: dict[str, Any] = {key: more.pop(key) for key in ["usage", "error", "choices"] if key in more}
    delta = {**({} if text is None else {"content": text}), **more}
    body: dict[str, Any] = {"id": "chatcmpl-m1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": MODEL,
                            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    body.update(beside)
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


DONE: Final = b"data: [DONE]\n\n"
USAGE: Final = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}


def stream(*texts: str, finish: str = "stop", usage: bool = True, done: bool = True, delay_s: float = 0.0,
           headers: Mapping[str, str] = SSE) -> Script:
    """A whole chat stream, one write a frame."""
    frames = [frame(role="assistant", content=""), *map(frame, texts), frame(finish=finish)]
    if usage:
        frames.append(frame(choices=[], usage=USAGE))
    if done:
        frames.append(DONE)
    steps: list[Step] = [Head(200, headers)]
    for data in frames:
        if delay_s:
            steps.append(Wait(delay_s))
        steps.append(Send(data))
    return Script(tuple(steps))


def tool_stream(name: str, pieces: Iterable[str], call_id: str = "call_m1") -> Script:
    """A chat stream of one tool call whose arguments come in pieces."""
    first = {"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    frames = [frame(role="assistant", content=None, tool_calls=[first])]
    frames += [frame(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces]
    frames += [frame(finish="tool_calls"), frame(choices=[], usage=USAGE), DONE]
    return Script((Head(200, SSE), *map(Send, frames)))


def reply(text: str = "Hello", *, finish: str = "stop", usage: bool = True, **message: Any) -> Script:
    """A whole chat answer."""
    body: dict[str, Any] = {
        "id": "chatcmpl-m1", "object": "chat.completion", "created": 1_760_000_000, "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}]}
    if usage:
        body["usage"] = USAGE
    return body_of(msgspec.json.encode(body))


def body_of(data: bytes, status: int = 200, headers: Mapping[str, str] = JSON) -> Script:
    """Any body with its length."""
    return Script((Head(status, headers, len(data)), Send(data)))


def error(status: int, message: str = "something failed", *, headers: Mapping[str, str] = JSON, **fields: Any) -> Script:
    """An error in OpenAI's shape; with status 200 it is the kind that only pretends to be an answer."""
    body = {"error": {"message": message, "type": "server_error", **fields}}
    return body_of(msgspec.json.encode(body), status, {**JSON, **headers})


# -- what goes wrong

def reset_before_headers() -> Script:
    return script(Reset())


def close_before_headers() -> Script:
    return script(Close())


def reset_after_headers(headers: Mapping[str, str] = SSE) -> Script:
    return script(Head(200, headers), Wait(0.02), Reset())


def hang() -> Script:
    """Not even a status line."""
    return script(Hang())


def stall(*texts: str) -> Script:
    """A stream that falls silent."""
    return stream(*texts).but(Hang(), after=len(texts) + 1)


def half_frame(*texts: str) -> Script:
    """A stream whose connection ends within a frame."""
    part = frame("never seen whole")[:-20]
    return stream(*texts).but(Send(part), Close(), after=len(texts) + 1)


def html(status: int = 200) -> Script:
    page = b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>503 backend</body></html>"
    return body_of(page, status, HTML)


def garbage() -> Script:
    """Bytes that are no HTTP."""
    return script(Raw(b"\x16\x03\x01\x02\x00 SSH-2.0-what\r\n\r\n"), Close())


def slow_loris(every_s: float = 0.05) -> Script:
    """The head, a byte at a time, without end in sight."""
    return script(Drip(b"HTTP/1.1 200 OK\r\nX-Padding: " + b"x" * 4_096, every_s), Hang())


def cut_length(sent: bytes = b'{"id":"cha', stated: int = 400) -> Script:
    """Fewer bytes than the length says."""
    return script(Head(200, JSON, stated), Send(sent), Close())


def cut_chunked(*texts: str) -> Script:
    """A stream that closes without its last chunk."""
    return stream(*texts, done=False).but(Close(), after=len(texts) + 1)


def framed(step: Send, head: Head | None) -> bytes:
    """The bytes of a Send under this head."""
    return chunk(step.data) if head is not None and head.framing == "chunked" else step.data


def ending(head: Head | None) -> bytes:
    return LAST_CHUNK if head is not None and head.framing == "chunked" else b""
