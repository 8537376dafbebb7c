"""What does one request cost without the network? Everything between a parsed HTTP request and the bytes of its answer.

The whole story of ``pipeline.serve`` with a client key, routing, deadlines and turn checks; sockets, HTTP parsing and the log are
left out. ``python -m benchmarks.micro request`` prints the table; ``python benchmarks/micro/bench_request.py "20 in one"``
profiles one row.
"""
import asyncio
import cProfile
import json
import pstats
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import uvloop
from multidict import CIMultiDict

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from gateway.config.load import loads
from gateway.core.call import Call
from gateway.pipeline.deliver import Client
from gateway.pipeline.serve import serve
from gateway.server import compose
from gateway.server.run import settle_memory
from gateway.surfaces.routes import ROUTES
from gateway.wire import WIRES

CONFIG = """
[[auth.keys]]
name = "bench"
key = "sk-bench"
[store]
url = "memory:"
[[providers]]
id = "up"
wire = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
api_keys = ["up-key"]
models = ["bench-model"]
"""
CONNECTION: Any = object()
RUNS, CALLS = 60, 25                             # many short runs: the least of them was disturbed by nothing
USAGE = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
ENVELOPE = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench-model",
            "system_fingerprint": "fp_bench"}


def frame(delta: dict[str, str], finish: str | None = None, **more: object) -> bytes:
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return b"data: " + orjson.dumps({**ENVELOPE, "choices": choices, **more}) + b"\n\n"


OPENING = frame({"role": "assistant", "content": ""})
TEXTS = [frame({"content": f"~{i}".ljust(16, "x")}) for i in range(200)]
ENDING = frame({}, "stop") + frame({}, choices=[], usage=USAGE) + b"data: [DONE]\n\n"
MESSAGE = {"role": "assistant", "content": "~" + "x" * 299}
WHOLE = orjson.dumps({**ENVELOPE, "object": "chat.completion", "usage": USAGE, "choices": [
    {"index": 0, "logprobs": None, "finish_reason": "stop", "message": MESSAGE}]})


def by(n: int, size: int) -> list[bytes]:
    """A stream of ``n`` chunks as an upstream that writes ``size`` of them at a time sends it."""
    return [OPENING, *[b"".join(TEXTS[i:i + size]) for i in range(0, n, size)], ENDING]


MODES: dict[str, list[bytes]] = {
    "whole answer": [WHOLE],
    "20 in one": [b"".join(by(20, 20))],
    "20 one by one": by(20, 1),
    "200 one by one": by(200, 1),
    "200 by ten": by(200, 10),
    "200 in two": [b"".join(by(200, 200)[:1] + TEXTS[:110]), b"".join([*TEXTS[110:], ENDING])],
}


class Body:
    """The client's request body: one read, then the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def is_eof(self) -> bool:
        return True

    def at_eof(self) -> bool:
        return not self._data

    async def readany(self) -> bytes:
        data, self._data = self._data, b""
        return data


class Http:
    method, content_length = "POST", 100
    headers = CIMultiDict({"Host": "x", "Authorization": "Bearer sk-bench", "Content-Type": "application/json",
                           "Content-Length": "100"})

    def __init__(self, body: bytes) -> None:
        self.content = Body(body)


class Deaf(Client):
    """A client whose connection takes everything at once."""

    __slots__ = ()

    async def answer(self, body, status=200, content_type="application/json", more=None):
        self.call.status, self.response = status, CONNECTION
        self._headers()

    async def start(self):
        self.response = CONNECTION
        self._headers()

    async def write(self, data, now):
        self.last_write = now
        self.written += len(data)

    async def end(self, data=b""):
        self.written += len(data)


class Reply:
    complete, status = True, 200

    def __init__(self, reads: list[bytes], kind: str) -> None:
        self._reads = iter(reads)
        self.headers = {"Content-Type": kind}

    async def chunk(self):
        return next(self._reads, b"")

    async def read(self, limit):
        return b"".join(self._reads)

    def close(self):
        pass


class Upstream:
    """A transport that answers at once."""

    reads: list[bytes] = []
    kind = ""

    async def send(self, out):
        return Reply(self.reads, self.kind)


class Silent:
    def add(self, call):
        pass


async def prepared(mode: str):
    """The upstream's answer is ``mode``; gives the coroutine function that answers one request."""
    snapshot = loads(CONFIG, {})
    desk, _ = compose.build(snapshot, journal=Silent())
    ground, upstream, door = desk.ground, Upstream(), ROUTES[0]
    ground.transports = {"network": upstream, "demo": upstream}
    upstream.reads = MODES[mode]
    stream = mode != "whole answer"
    upstream.kind = "text/event-stream" if stream else "application/json"
    body = json.dumps({"model": "bench-model", "messages": [{"role": "user", "content": "hello, how are you?"}],
                       "temperature": 0.7, "stream": stream}).encode()
    wire, headers = WIRES[door.wire], {"Server": "gateway", "X-Request-ID": "req_1", "request-id": "req_1"}

    async def once() -> Call:
        call = Call(id="req_1", surface=door.name, wire=door.wire, operation=door.operation, started=ground.clock.now(),
                    wall=ground.clock.wall())
        await serve(call, Deaf(Http(body), call, wire, headers, None), ground)
        await asyncio.sleep(0)
        return call

    assert (await once()).outcome == "ok"
    return once


async def measured(mode: str) -> float:
    once = await prepared(mode)
    settle_memory()
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time_ns()
        for _ in range(CALLS):
            await once()
        best = min(best, (time.process_time_ns() - began) / CALLS / 1e3)
    return best


async def profiled(mode: str) -> None:
    once = await prepared(mode)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(1_000):
        await once()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)


def main() -> list[tuple[object, ...]]:
    unit = TEXTS[0][6:-2]
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time_ns()
        for _ in range(1_000):
            orjson.loads(unit)
        best = min(best, (time.process_time_ns() - began) / 1e6)
    return [("orjson.loads of one frame", best), *[(f"one request without the network: {mode}", uvloop.run(measured(mode)))
                                                   for mode in MODES]]


if __name__ == "__main__":
    uvloop.run(profiled(sys.argv[1]))
