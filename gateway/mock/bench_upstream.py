"""How does an upstream answer that must cost nothing beside the gateway under test? From bytes made beforehand.

The request says how it wants to be answered, in a mark anywhere in its prompt, since gateways pass prompts on unchanged:

    <<bench chunks=20 delay=0 group=1 text=16 answer=300 stamp=0>>

``chunks`` content frames in a stream, ``delay`` ms between writes, ``group`` frames a write, ``text`` bytes of text in each,
``answer`` bytes of text in a whole answer, ``stamp`` 1: each chunk tells when it was written. Below the path /broken every answer
is 503. All text consists of ``MARK`` followed by other letters, and nothing else in an answer
contains that byte: counting it counts what arrived, however the gateway wrote it anew.

    python -m gateway.mock.bench_upstream --port 9100
"""
import argparse
import asyncio
import re
import signal
import sys
import time
from typing import Final

import msgspec

from gateway.core.bounded import LruMap
from gateway.mock.http1 import LAST_CHUNK, HttpServerProtocol, chunk

MARK: Final = "\u007c"                       # "|" needs no escape in JSON and is in no field of our frames
MODEL: Final = "bench-model"
BROKEN: Final = b"/broken/"
STAMP: Final = 16                            # digits after a mark: microseconds of the monotonic clock
_STAMP: Final = b"0" * STAMP
_PLAN: Final = re.compile(rb"<<bench((?: [a-z]+=\d+)*)>>")
_STREAM: Final = re.compile(rb'"stream"\s*:\s*true')
# Another model: a gateway would tell that it was not served.
_OTHER: Final = re.compile(rb'"model": ?"(?!' + MODEL.encode() + rb'")([\w-]+)"')
_USAGE: Final = {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}
_SSE: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz "


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a mark asks for."""
    chunks: int = 20
    delay: int = 0
    group: int = 1
    text: int = 16
    answer: int = 300
    stamp: int = 0

    def mark(self) -> str:
        """The mark that a prompt must contain."""
        return "<<bench" + "".join(f" {name}={getattr(self, name)}" for name in self.__struct_fields__) + ">>"


def _text(n_bytes: int, seed: int, stamp: int = 0) -> str:
    """Differs from chunk to chunk: a gateway may stop a model that repeats itself."""
    return MARK + _STAMP.decode() * stamp + "".join(_LETTERS[(seed * 7 + i) % len(_LETTERS)] for i in range(max(0, n_bytes - 1)))


def _frame(choices: list[dict[str, object]], **more: object) -> bytes:
    body = {"id": "chatcmpl-b1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": MODEL,
            "system_fingerprint": "fp_b1", "choices": choices, **more}
    return chunk(b"data: " + msgspec.json.encode(body) + b"\n\n")


def _delta(delta: dict[str, object], finish: str | None = None) -> bytes:
    return _frame([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])


class Answer:
    """The bytes of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        frames = [_delta({"content": _text(plan.text, i, plan.stamp)}) for i in range(plan.chunks)]
        group = max(1, plan.group)
        self.opening = _SSE + _delta({"role": "assistant", "content": ""})
        self.writes = [b"".join(frames[i:i + group]) for i in range(0, len(frames), group)]
        self.ending = (_delta({}, "stop") + _frame([], usage=_USAGE) + chunk(b"data: [DONE]\n\n") + LAST_CHUNK)
        message = {"role": "assistant", "content": _text(plan.answer, 1)}
        self._whole = {"id": "chatcmpl-b1", "object": "chat.completion", "created": 1_760_000_000, "model": MODEL,
                       "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
                       "usage": _USAGE, "system_fingerprint": "fp_b1"}
        self.whole = _json(self._whole)

    def by(self, model: str) -> bytes:
        """The whole answer as this model's."""
        return _json(self._whole | {"model": model})


def _json(body: object, status: str = "200 OK") -> bytes:
    data = msgspec.json.encode(body)
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


_MODELS: Final = _json({"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1_760_000_000, "owned_by": "bench"}]})
_DOWN: Final = _json({"error": {"message": "The server is overloaded", "type": "server_error"}}, "503 Service Unavailable")
_UNKNOWN: Final = _json({"error": {"message": "unknown path", "type": "invalid_request_error"}}, "404 Not Found")


class Counts(msgspec.Struct):
    """What the server has seen."""
    connections: int = 0
    open: int = 0
    requests: int = 0
    aborted: int = 0
    refused: int = 0


class BenchProtocol(HttpServerProtocol):
    def __init__(self, loop: asyncio.AbstractEventLoop, answers: LruMap[bytes, Answer], counts: Counts) -> None:
        super().__init__()
        self._loop, self._answers, self._counts = loop, answers, counts
        self._timer: asyncio.Handle | None = None
        self._at = 0
        self._due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._counts.connections += 1
        self._counts.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._counts.open -= 1
        self._counts.aborted += self.busy
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def request(self, head: bytes, body: bytes) -> None:
        self._counts.requests += 1
        target = head.split(b" ", 2)[1]
        if BROKEN in target:
            self._counts.refused += 1
            self._finish(_DOWN)
        elif target.endswith(b"/chat/completions"):
            answer = self._answer(body)
            if _STREAM.search(body):
                self._begin(answer)
            else:
                named = _OTHER.search(body)
                self._finish(answer.by(named[1].decode()) if named else answer.whole)
        elif target.endswith(b"/stats"):
            self._finish(_json(self._counts))
        else:
            self._finish(_MODELS if target.endswith(b"/models") else _UNKNOWN)

    def _answer(self, body: bytes) -> Answer:
        found = _PLAN.search(body)
        asked = found.group(1) if found else b""
        answer = self._answers.get(asked)
        if answer is None:
            given = dict(pair.split("=") for pair in asked.decode().split())
            answer = Answer(msgspec.convert(given, Plan, strict=False))
            self._answers.put(asked, answer)
        return answer

    def _begin(self, answer: Answer) -> None:
        assert self.transport is not None
        self.transport.write(answer.opening)
        self._at, self._due = 0, self._loop.time()
        self._timer = self._loop.call_soon(self._next, answer)

    def _next(self, answer: Answer) -> None:
        if self.transport is None:
            return
        if self._at == len(answer.writes):
            self._finish(answer.ending)
            return
        data = answer.writes[self._at]
        if answer.plan.stamp:
            data = data.replace(_STAMP, b"%0*d" % (STAMP, int(time.monotonic() * 1e6)))
        self.transport.write(data)
        self._at += 1
        if answer.plan.delay:
            self._due += answer.plan.delay / 1000
            self._timer = self._loop.call_at(self._due, self._next, answer)
        else:
            self._timer = self._loop.call_soon(self._next, answer)

    def _finish(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)
            self.answered()


async def start(host: str = "127.0.0.1", port: int = 0) -> tuple[asyncio.Server, int, Counts]:
    """A listening server, its port, and what it counts."""
    loop = asyncio.get_running_loop()
    answers: LruMap[bytes, Answer] = LruMap(64)
    counts = Counts()
    server = await loop.create_server(lambda: BenchProtocol(loop, answers, counts), host, port, backlog=4096)
    return server, server.sockets[0].getsockname()[1], counts


async def _main(host: str, port: int) -> None:
    server, port, _ = await start(host, port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    print(f"listening on http://{host}:{port}/v1", flush=True)
    await stop.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="A fast OpenAI-like upstream for benchmarks.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    if sys.platform != "win32":
        import uvloop
        uvloop.run(_main(given.host, given.port))
    else:
        asyncio.run(_main(given.host, given.port))


if __name__ == "__main__":
    main()
