"""Frames, bodies and requests of the Gemini format, for its tests."""
from typing import Any

from gateway.core import events as ev
from gateway.core.request import Conversation, Request
from gateway.stream.turn import Rules, Turn
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown
from gateway.wire.gemini import GEMINI
from tests.unit.wire.frames import dump

CHAT = WIRES["openai-chat"]
MODEL = "gemini-2.5-flash"
USAGE = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
HELLO = [{"role": "user", "parts": [{"text": "hi"}]}]
WEATHER = {"name": "weather", "description": "By city", "parameters": {
    "type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}, "required": ["city"]}}


def frame(*parts: dict[str, Any], finish: str = "", index: int | None = 0, usage: Any = None, **more: Any) -> dict[str, Any]:
    """One GenerateContentResponse; ``more`` stands beside the candidate's content."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, **more}
    if index is not None:
        candidate["index"] = index
    if finish:
        candidate["finishReason"] = finish
    out: dict[str, Any] = {"candidates": [candidate]}
    if usage is not None:
        out["usageMetadata"] = usage
    return {**out, "modelVersion": MODEL, "responseId": "r1"}


def say(text: str, **more: Any) -> dict[str, Any]:
    return frame({"text": text}, **more)


def sse(*frames: Any) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % (one if isinstance(one, bytes) else dump(one)) for one in frames)


def decode(data: bytes, cuts: Any = (), same: bool = True, model: str = "") -> list[ev.Event]:
    decoder, out, at = GEMINI.decoder(same, model, 1 << 20), [], 0
    for cut in [*cuts, len(data)]:
        out += decoder.feed(data[at:cut])
        at = cut
    return out + decoder.close()


def asked(operation: str = "chat", stream: bool = True, **fields: Any) -> Request:
    body = {"contents": HELLO, **fields}
    return GEMINI.parse_request(dump({k: v for k, v in body.items() if v is not None}), operation, "m", stream)


def opened(**fields: Any) -> Conversation:
    return GEMINI.open(asked(**fields))


def to(**fields: Any) -> Outbound:
    return Outbound(**{"model": MODEL, "provider": "p", "stream": True, **fields})


def shown(**fields: Any) -> Shown:
    return Shown(**{"model": MODEL, "request": asked(), "same": True, "id": "req1", **fields})


def from_chat(**fields: Any) -> Request:
    """A chat client's request, opened for another format."""
    request = CHAT.parse_request(dump({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}))
    request.conversation = CHAT.open(request)
    return request


def turn(events: list[ev.Event], **rules: Any) -> list[ev.Event]:
    """What a turn lets out of these events."""
    made = Turn(Rules(**rules), 0.0)
    return made.feed(events, 1.0) + made.eof(2.0)


def kinds(events: list[ev.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def call_frame(name: str, args: Any, id: str = "", signature: str = "", **more: Any) -> dict[str, Any]:
    """A frame of one call."""
    part: dict[str, Any] = {"functionCall": {"name": name, "args": args, **({"id": id} if id else {})}}
    return frame({**part, "thoughtSignature": signature} if signature else part, **more)
