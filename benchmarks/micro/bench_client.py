"""What does the way to an upstream cost, on each transport? A request, a stream, a large prompt; the upstream is raw bytes.

The upstream runs in the same loop and answers with bytes made beforehand: its cost, the reads and writes of the kernel and the
loop are the row ``nothing`` (a protocol without HTTP), so a difference to it is what the client itself does.
"""
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from gateway.upstream.aiohttp_transport import AiohttpTransport
from gateway.upstream.h1.transport import H1Transport
from gateway.upstream.transport import Outgoing, Timeouts, Transport

RUNS, CALLS = 12, 150
FIELDS = "".join(f"x-ratelimit-limit-{i}: {i}000\r\n" for i in range(12))
HEAD = f"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: x\r\n{FIELDS}"
WHOLE = f"{HEAD}Content-Type: application/json\r\nContent-Length: 700\r\n\r\n".encode() + b"x" * 700
STREAM = f"{HEAD}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
FRAME = b"data: " + b"x" * 260 + b"\n\n"
CHUNK = b"%x\r\n%b\r\n" % (len(FRAME), FRAME)
LAST = b"0\r\n\r\n"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "gateway",
           "Authorization": "Bearer sk-bench"}
SMALL, LARGE = b"x" * 300, b"x" * 100_000


class Answers(asyncio.Protocol):
    """Writes its script for each request that has arrived as a whole; one part a turn of the loop."""

    script: list[bytes] = []
    need = 0

    def __init__(self) -> None:
        self.got = 0

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.got += len(data)
        if self.got > self.need:
            self.got = 0
            self.send(0)

    def send(self, i):
        self.transport.write(self.script[i])
        if i + 1 < len(self.script):
            asyncio.get_running_loop().call_soon(self.send, i + 1)


class Bare(asyncio.Protocol):
    """The least that a client could do: bytes out, bytes in until enough have come."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.left -= len(data)
        if self.left <= 0:
            self.waiter.set_result(None)

    def ask(self, data, n_bytes):
        self.left, self.waiter = n_bytes, asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self.waiter


SCRIPTS: dict[str, tuple[list[bytes], bytes]] = {
    "a request": ([WHOLE], SMALL),
    "a stream of 20 chunks": ([STREAM + CHUNK, *[CHUNK] * 18, CHUNK + LAST], SMALL),
    "a stream of 200 chunks, ten at a time": ([STREAM, *[CHUNK * 10] * 20, LAST], SMALL),
    "a prompt of 100 KB": ([WHOLE], LARGE),
}


async def least(once: Callable[[], Awaitable[None]]) -> float:
    """Microseconds of CPU time of one call."""
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time_ns()
        for _ in range(CALLS):
            await once()
        best = min(best, (time.process_time_ns() - began) / CALLS / 1e3)
    return best


async def ask(transport: Transport, out: Outgoing) -> None:
    reply = await transport.send(out)
    reply.headers.get("content-type")
    while await reply.chunk():
        pass


async def measured(what: str) -> dict[str, float]:
    Answers.script, body = SCRIPTS[what]
    Answers.need = len(body)
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    out = Outgoing(method="POST", url=f"http://127.0.0.1:{port}/v1/chat/completions", headers=HEADERS, body=body, timeouts=Timeouts())
    _, bare = await asyncio.get_running_loop().create_connection(Bare, "127.0.0.1", port)
    head, total = b"x" * 280, sum(map(len, Answers.script))

    async def nothing() -> None:
        await bare.ask(head + body, total)

    found = {"nothing": await least(nothing)}
    for name, made in (("own client", H1Transport()), ("aiohttp", AiohttpTransport())):
        found[name] = await least(partial(ask, made, out))
        await made.close()
    server.close()
    return found


def main() -> list[tuple[object, ...]]:
    return [(f"{what}: {name}", us) for what in SCRIPTS for name, us in uvloop.run(measured(what)).items()]


if __name__ == "__main__":
    for row in main():
        print(*row)
