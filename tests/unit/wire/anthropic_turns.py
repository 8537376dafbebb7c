"""Messages frames and turns for the tests: written shortly, read back as a client would."""
import json

from gateway.core import events as ev
from gateway.core.request import Conversation, Message, Request, Text
from gateway.stream.turn import Rules, Turn
from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.base import Outbound, Shown


def frame(kind, **fields):
    data = json.dumps({"type": kind} | fields, separators=(",", ":"), ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def start(index, **block):
    return frame("content_block_start", index=index, content_block=block)


def delta(index, kind, **fields):
    return frame("content_block_delta", index=index, delta={"type": kind} | fields)


def stop(index):
    return frame("content_block_stop", index=index)


def text_block(index, *pieces):
    return start(index, type="text", text="") + b"".join(delta(index, "text_delta", text=p) for p in pieces) + stop(index)


def tool_block(index, name, *pieces, id="toolu_1", **more):
    return start(index, type="tool_use", id=id, name=name, input={}, **more) \
        + b"".join(delta(index, "input_json_delta", partial_json=p) for p in pieces) + stop(index)


def opening(**message):
    whole = {"id": "msg_up", "type": "message", "role": "assistant", "model": "m-up", "content": [], "stop_reason": None,
             "stop_sequence": None, "usage": {"input_tokens": 11, "output_tokens": 1}} | message
    return frame("message_start", message=whole)


def ending(reason="end_turn", sequence=None, **usage):
    return frame("message_delta", delta={"stop_reason": reason, "stop_sequence": sequence},
                 usage={"output_tokens": 5} | usage) + frame("message_stop")


def request(**fields) -> Request:
    body = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]} | fields
    return ANTHROPIC.parse_request(json.dumps(body).encode())


def shown(same=True, **fields) -> Shown:
    return Shown(model="m-up", request=request(), same=same, id="req_1", **fields)


def decode(data: bytes, same=True, cut=0, model="m-up") -> list[ev.Event]:
    decoder = ANTHROPIC.decoder(same, model, 1 << 20)
    step = cut or len(data) or 1
    events = [event for at in range(0, len(data), step) for event in decoder.feed(data[at:at + step])]
    return events + decoder.close()


def judged(events, **rules) -> list[ev.Event]:
    """What the turn lets out of these events."""
    turn = Turn(Rules(**rules), 0.0)
    out = list(turn.feed(events, 0.0))
    out += turn.eof(0.0)
    assert turn.fault is None or out, turn.fault
    return out


def through(data: bytes, same=True, **rules) -> list[dict]:
    """The client's frames of an upstream's stream."""
    return read(ANTHROPIC.encoder(shown(same)).encode(judged(decode(data, same), **rules)))


def told(*events, same=False) -> list[dict]:
    """The client's frames of these events."""
    return read(ANTHROPIC.encoder(shown(same)).encode(list(events)))


def read(data: bytes) -> list[dict]:
    """Frames as documents; checks the form that client libraries rely on."""
    frames = []
    for part in data.decode().split("\n\n")[:-1]:
        name, line = part.split("\n")
        doc = json.loads(line.removeprefix("data: "))
        assert name == f"event: {doc['type']}"
        frames.append(doc)
    open_at, n = None, 0
    for doc in frames:
        kind = doc["type"]
        if kind == "content_block_start":
            assert open_at is None and doc["index"] == n, frames
            open_at, n = n, n + 1
        elif kind == "content_block_delta":
            assert doc["index"] == open_at, frames
        elif kind == "content_block_stop":
            assert doc["index"] == open_at, frames
            open_at = None
        elif kind == "message_delta":
            assert open_at is None, frames
    return frames


def blocks(frames: list[dict]) -> list[dict]:
    """The message's content, as a client puts it together."""
    out: list[dict] = []
    for doc in frames:
        if doc["type"] == "content_block_start":
            out.append(dict(doc["content_block"]))
        elif doc["type"] == "content_block_delta":
            piece = doc["delta"]
            if piece["type"] == "text_delta":
                out[-1]["text"] += piece["text"]
            elif piece["type"] == "thinking_delta":
                out[-1]["thinking"] += piece["thinking"]
            elif piece["type"] == "signature_delta":
                out[-1]["signature"] = piece["signature"]
            elif piece["type"] == "input_json_delta":
                out[-1]["json"] = out[-1].get("json", "") + piece["partial_json"]
    for block in out:
        if "json" in block:
            block["input"] = json.loads(block.pop("json") or "{}")
    return out


def of(frames: list[dict], kind: str) -> dict:
    (found,) = [doc for doc in frames if doc["type"] == kind]
    return found


def sent(talk: Conversation, **to) -> dict:
    """The body that an upstream gets of a dialogue from another format."""
    foreign = Request(wire="another", raw=b"{}", body=None, model="m", stream=False, conversation=talk)
    outbound = Outbound(**{"model": "claude-x", "provider": "p", "stream": False} | to)
    return json.loads(ANTHROPIC.build_request(foreign, outbound))


def user(*texts: str) -> Message:
    return Message("user", [Text(text) for text in texts])
