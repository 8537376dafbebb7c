"""Frames and bodies as Responses upstreams send them, and whole turns run through decoder, turn and encoder."""
import json
from typing import Any

from gateway.core import events as ev
from gateway.core.request import Request
from gateway.stream.turn import Rules, Turn
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown
from gateway.wire.lenient import whole_text

RESPONSES = WIRES["openai-responses"]
CHAT = WIRES["openai-chat"]
MODEL = "m"
USAGE = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
         "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14}


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def asked(**fields: Any) -> Request:
    return RESPONSES.parse_request(dump({"model": "asked", "input": "hi", **fields}))


def shown(**fields: Any) -> Shown:
    given: dict[str, Any] = {"model": MODEL, "request": asked(), "same": True, "id": "resp_t", "created": 9}
    return Shown(**{**given, **fields})


def to(**fields: Any) -> Outbound:
    given: dict[str, Any] = {"model": "up", "provider": "p", "stream": False}
    return Outbound(**{**given, **fields})


# ---------------------------------------------------------------- an upstream's stream
def response(status: str = "in_progress", output: Any = (), usage: Any = None, **more: Any) -> dict[str, Any]:
    return {"id": "resp_up", "object": "response", "created_at": 1_700_000_000, "status": status, "model": MODEL,
            "output": list(output), "usage": usage, "x_new": {"kept": True}, **more}


def message(text: str, id_: str = "msg_1", **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}], **more}


def call(name: str = "f", arguments: str = '{"a":1}', id_: str = "fc_1", call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function_call", "status": "completed", "arguments": arguments, "call_id": call_id, "name": name,
            **more}


def text_frames(pieces: list[str], index: int = 0, id_: str = "msg_1") -> list[dict[str, Any]]:
    at: dict[str, Any] = {"item_id": id_, "output_index": index, "content_index": 0}
    part = {"type": "output_text", "text": "".join(pieces), "annotations": [], "logprobs": []}
    added = {**message("", id_), "status": "in_progress", "content": []}
    return [{"type": "response.output_item.added", "output_index": index, "item": added},
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            *[{"type": "response.output_text.delta", **at, "delta": piece, "obfuscation": "x" * n} for n, piece in enumerate(pieces)],
            {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
            {"type": "response.output_item.done", "output_index": index, "item": message(part["text"], id_)}]


def call_frames(index: int = 0, pieces: tuple[str, ...] = ('{"a"', ":1}"), **item: Any) -> list[dict[str, Any]]:
    done = call(arguments="".join(pieces), **item)
    at = {"item_id": done["id"], "output_index": index}
    return [{"type": "response.output_item.added", "output_index": index, "item": {**done, "arguments": "", "status": "in_progress"}},
            *[{"type": "response.function_call_arguments.delta", **at, "delta": piece} for piece in pieces],
            {"type": "response.function_call_arguments.done", **at, "arguments": done["arguments"]},
            {"type": "response.output_item.done", "output_index": index, "item": done}]


def reasoning_frames(pieces: list[str], index: int = 0) -> list[dict[str, Any]]:
    at: dict[str, Any] = {"item_id": "rs_1", "output_index": index, "summary_index": 0}
    part = {"type": "summary_text", "text": "".join(pieces)}
    item: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA", "summary": []}
    return [{"type": "response.output_item.added", "output_index": index, "item": item},
            {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}},
            *[{"type": "response.reasoning_summary_text.delta", **at, "delta": piece} for piece in pieces],
            {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]},
            {"type": "response.reasoning_summary_part.done", **at, "part": part},
            {"type": "response.output_item.done", "output_index": index, "item": {**item, "summary": [part]}}]


def stream(*frames: dict[str, Any], end: dict[str, Any] | None = None, output: Any = None, numbered: bool = True) -> bytes:
    """The frames between response.created and a terminal, numbered. ``end``: the terminal's response."""
    items = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
    last = end if end is not None else response("completed", items if output is None else output, USAGE)
    docs = [{"type": "response.created", "response": response()}, {"type": "response.in_progress", "response": response()}, *frames,
            {"type": "response." + last["status"], "response": last}]
    return sse(*[{"type": doc["type"], "sequence_number": n, **doc} if numbered else doc for n, doc in enumerate(docs)])


def sse(*docs: dict[str, Any]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (doc["type"].encode(), dump(doc)) for doc in docs)


def read(data: bytes) -> list[dict[str, Any]]:
    """What a client reads; each event line must name the type, where there is one."""
    out = []
    for block in data.decode().split("\n\n"):
        if block:
            *names, body = block.split("\n")
            out.append(json.loads(body.removeprefix("data: ")))
            assert names == (["event: " + out[-1]["type"]] if out[-1].get("type") else [])
    return out


# ---------------------------------------------------------------- whole turns
def decode(data: bytes, same: bool = True, model: str = MODEL, cut: int = 0) -> list[ev.Event]:
    decoder = RESPONSES.decoder(same, model, 1 << 20)
    out: list[ev.Event] = []
    step = cut or len(data) or 1
    for at in range(0, len(data), step):
        out += decoder.feed(data[at:at + step])
    return out + decoder.close()


def judged(events: list[ev.Event], **rules: Any) -> list[ev.Event]:
    """What a turn lets leave, all reads together."""
    turn = Turn(Rules(**rules), 0.0)
    return turn.feed(events, 0.0) + turn.eof(0.0)


def passed(data: bytes, model: str = MODEL, show: Shown | None = None, **rules: Any) -> bytes:
    """An upstream's stream, as a client of the same format gets it."""
    return RESPONSES.encoder(show or shown(model=model)).encode(judged(decode(data, True, model), **rules))


def sound(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Checks the grammar of a finished stream; gives its last response."""
    numbers = [frame["sequence_number"] for frame in frames]
    assert numbers == sorted(set(numbers)), "sequence numbers rise"
    assert frames[0]["type"] == "response.created"
    assert [f["type"] for f in frames[1:]].count("response.created") == 0
    final = frames[-1]["response"]
    items: dict[int, dict[str, Any]] = {}
    said: dict[tuple[int, str], str] = {}
    for frame in frames:
        kind, index = frame["type"], frame.get("output_index")
        if kind == "response.output_item.added":
            assert index == len(items), "places are dense and told once"
            items[index] = {"id": frame["item"]["id"], "done": None}
        elif index is not None:
            assert items[index]["done"] is None, f"{kind} after the end of its item"
            assert frame.get("item_id", items[index]["id"]) == items[index]["id"]
        if kind.endswith(".delta") and isinstance(frame["delta"], str):
            said[index, kind] = said.get((index, kind), "") + frame["delta"]
        if kind == "response.output_item.done":
            assert frame["item"]["id"] == items[index]["id"]
            items[index]["done"] = frame["item"]
    assert all(item["done"] is not None for item in items.values()), "every item ends"
    assert [item["done"]["id"] for item in items.values()] == [item["id"] for item in final["output"]]
    for (index, kind), text in said.items():
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            field = "text" if "text" in kind else "refusal"
            assert whole_text(text) == "".join([part.get(field, "") for part in items[index]["done"]["content"]])
        if kind == "response.function_call_arguments.delta":
            assert text == items[index]["done"]["arguments"]
        if kind == "response.custom_tool_call_input.delta":
            assert text == items[index]["done"]["input"]
    assert all(isinstance(final["usage"][name], int) for name in ("input_tokens", "output_tokens", "total_tokens"))
    return dict(final)
