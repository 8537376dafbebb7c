"""Frames and bodies as upstreams send them, for the tests of the chat wire."""
import json
from typing import Any

from gateway.core.request import Request
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown

CHAT = WIRES["openai-chat"]
ID = "chatcmpl-up"
MODEL = "m"


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    """One frame as OpenAI sends it; ``more`` replaces or adds top-level fields (None removes one)."""
    frame: dict[str, Any] = {"id": ID, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": MODEL,
                             "choices": [{"index": index, "delta": delta or {}, "finish_reason": finish}]}
    frame.update(more)
    return {key: value for key, value in frame.items() if value is not None}


def sse(*frames: dict[str, Any] | bytes, done: bool = False) -> bytes:
    out = b"".join(b"data: %b\n\n" % (frame if isinstance(frame, bytes) else dump(frame)) for frame in frames)
    return out + (b"data: [DONE]\n\n" if done else b"")


def text(*pieces: str) -> bytes:
    return sse(*[chunk({"content": piece}) for piece in pieces])


def asked(**fields: Any) -> Request:
    return CHAT.parse_request(dump({"model": "asked", "messages": [{"role": "user", "content": "hi"}], **fields}))


def shown(**fields: Any) -> Shown:
    given: dict[str, Any] = {"model": MODEL, "request": asked(), "same": True, "id": "req1", "created": 9}
    return Shown(**{**given, **fields})


def to(**fields: Any) -> Outbound:
    given: dict[str, Any] = {"model": "up", "provider": "p", "stream": False}
    return Outbound(**{**given, **fields})
