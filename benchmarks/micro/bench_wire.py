"""What do framing, decoding and encoding of one chat frame cost? Run: python benchmarks/micro wire

A plain frame of an OpenAI-like upstream, ten in a read and one in a read, for a client of the same format; beside it what
``orjson.loads`` of the same frame costs, which is the yardstick on a machine of any speed. The bar is 1 µs for a decoded frame
(issue: frame decode); the shape of the stream is known after two frames, so ``feed`` is what nearly all frames cost.
"""
import json

import orjson

from benchmarks.micro.timing import timed
from gateway.core import events as ev
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown
from gateway.wire.sse import Splitter

CHAT = WIRES["openai-chat"]
LIMIT = 1 << 20
N = 10
DECODE_BAR_US = 1.0


def frame(delta: dict[str, object], **more: object) -> bytes:
    body = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
            "system_fingerprint": "fp_bench", "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
    return json.dumps({**body, **more}, separators=(",", ":")).encode()


def sse(frames: list[bytes]) -> bytes:
    return b"".join(b"data: %b\n\n" % each for each in frames)


def decoder(same: bool = True, model: str = "m"):
    """One that knows its stream."""
    made = CHAT.decoder(same, model, LIMIT)
    for i in range(4):
        made.feed(sse([frame({"content": f"word {i}"})]))
    return made


def typed():
    """One that never learns a shape: what frames cost that differ in more than their text."""
    made = decoder()
    made._shape, made._lessons, made._recalls = None, 0, 0
    return made


def main() -> list[tuple[object, ...]]:
    plain = [frame({"content": f" word{i} é"}) for i in range(N)]
    read, one = sse(plain), sse(plain[:1])
    thinking = sse([frame({"reasoning_content": f" word{i}"}) for i in range(N)])
    call = sse([frame({"tool_calls": [{"index": 0, "function": {"arguments": f'{{"a{i}'}}]}) for i in range(N)])
    calling = decoder()
    for _ in range(3):
        calling.feed(call)
    known, renamed, slow, split = decoder(), decoder(model="other"), typed(), Splitter(LIMIT)
    request = CHAT.parse_request(b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}')
    encoder = CHAT.encoder(Shown(model="m", request=request, same=True, id="x", created=1))
    foreign = CHAT.encoder(Shown(model="m", request=request, same=False, id="x", created=1))
    encoder.encode([ev.Text("x")])
    events, bare = known.feed(read), [ev.Text(f" word{i}") for i in range(N)]
    split.feed(read)
    assert len(events) == N and known.run(read) == N and encoder.encode(events) == read
    prompt = json.dumps({"model": "m", "messages": [{"role": "user", "content": "word " * 20_000}], "stream": True}).encode()
    large, target = CHAT.parse_request(prompt), Outbound(model="up", provider="p", stream=True)
    return [
        ("orjson.loads of a frame", timed(lambda: orjson.loads(plain[0]))),
        ("SSE split, ten frames a read", timed(lambda: split.feed(read), per=N)),
        ("SSE split, one frame a read", timed(lambda: split.feed(one))),
        ("split + decode, ten a read", timed(lambda: known.feed(read), per=N), DECODE_BAR_US),
        ("split + decode, one a read", timed(lambda: known.feed(one)), DECODE_BAR_US),
        ("split + decode, model renamed, ten a read", timed(lambda: renamed.feed(read), per=N), DECODE_BAR_US),
        ("split + decode, shape unknown, ten a read", timed(lambda: slow.feed(read), per=N)),
        ("split + decode, reasoning, shape unknown", timed(lambda: slow.feed(thinking), per=N)),
        ("split + decode, a piece of a call", timed(lambda: calling.feed(call), per=N)),
        ("fast lane (run), ten a read", timed(lambda: known.run(read), per=N), 0.4),
        ("fast lane (run), one a read", timed(lambda: known.run(one))),
        ("encode, frames that pass, ten a write", timed(lambda: encoder.encode(events), per=N)),
        ("encode, frames built, ten a write", timed(lambda: foreign.encode(bare), per=N)),
        ("split + decode + encode, ten a read", timed(lambda: encoder.encode(known.feed(read)), per=N), 1.2),
        ("parse a small request", timed(lambda: CHAT.parse_request(request.raw))),
        ("build a small request", timed(lambda: CHAT.build_request(request, target))),
        ("parse a request of 100 KB", timed(lambda: CHAT.parse_request(prompt), calls=300)),
        ("build a request of 100 KB", timed(lambda: CHAT.build_request(large, target), calls=300)),
    ]
