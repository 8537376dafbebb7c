"""How fast is a gateway? A closed-loop client: each connection asks again as soon as it was answered, and every answer is checked.

A stream counts only when it was whole: all its marked chunks, then [DONE], then the end of the body. Everything else is counted
as an error, as truncated or as unfinished; a row with any of those is no result.

    python -m gateway.mock.load http://127.0.0.1:8788 --key gw-… --model bench/bench-model --scenario streams-20
"""
import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Iterable
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from gateway.mock.bench_upstream import MARK, MODEL, Plan, start

_MARK: Final = MARK.encode()
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_FRAMING: Final = re.compile(rb"\r\n[0-9a-fA-F]+\r\n")            # between two chunks of a chunked body; it may cut a word
_BODY_END: Final = b"\r\n0\r\n\r\n"
_TAIL: Final = 256
CONNECT_TRIES: Final = 50


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """``seconds`` of work, or ``requests`` in all. Sends of the first round are spread over ``ramp_s``."""
    about: str
    clients: int = 1
    stream: bool = False
    plan: Plan = Plan()
    prompt_bytes: int = 60
    seconds: float = 2.0
    warmup_s: float = 0.5
    requests: int = 0
    ramp_s: float = 0.0
    grace_s: float = 30.0


SCENARIOS: Final[dict[str, Scenario]] = {
    "whole-1": Scenario(about="non-stream, 1 client"),
    "whole-32": Scenario(about="non-stream, 32 clients", clients=32),
    "streams-20-1": Scenario(about="streams of 20 chunks, 1 client", stream=True),
    "streams-20": Scenario(about="streams of 20 chunks, 32 clients", stream=True, clients=32),
    "streams-200": Scenario(about="streams of 200 chunks, 16 clients", stream=True, clients=16, plan=Plan(chunks=200)),
    "streams-200-by-10": Scenario(about="streams of 200 chunks, 10 a write, 16 clients", stream=True, clients=16,
                                  plan=Plan(chunks=200, group=10)),
    "large-prompt": Scenario(about="non-stream, prompts of 100 KB, 8 clients", clients=8, prompt_bytes=100_000),
    "slow-1000": Scenario(about="1000 streams at once, 50 chunks 100 ms apart", stream=True, clients=1_000, requests=1_000,
                          plan=Plan(chunks=50, delay=100), ramp_s=3.0, warmup_s=0.0, grace_s=60.0),
}


class Row(msgspec.Struct, kw_only=True):
    """What one scenario gave. ``answered`` and ``chunks`` include warm-up and drain: divide CPU time by them."""
    scenario: str
    ok: int = 0
    errors: int = 0
    truncated: int = 0
    unfinished: int = 0
    per_s: float = 0.0
    chunks_per_s: float = 0.0
    latency_p50_ms: float = 0.0
    latency_p99_ms: float = 0.0
    ttft_p50_ms: float = 0.0
    ttft_p99_ms: float = 0.0
    answered: int = 0
    chunks: int = 0
    first_error: str = ""

    @property
    def valid(self) -> bool:
        return self.ok > 0 and not (self.errors or self.truncated or self.unfinished)


class _Run:
    """The state of one scenario that its connections share."""

    def __init__(self, scenario: Scenario, request: bytes) -> None:
        self.scenario, self.request = scenario, request
        self.left = scenario.requests or sys.maxsize
        self.stopping = False
        self.answered = self.chunks = self.truncated = self.errors = 0
        self.first_error = ""
        self.latency: list[float] = []
        self.ttft: list[float] = []
        self.counted_chunks = 0

    def forget(self) -> None:
        """Warm-up is over."""
        self.latency, self.ttft, self.counted_chunks = [], [], 0

    def take(self) -> bool:
        if self.stopping or not self.left:
            return False
        self.left -= 1
        return True

    def failed(self, text: str, truncated: bool = False) -> None:
        self.truncated += truncated
        self.errors += not truncated
        self.first_error = self.first_error or text[:400]


class _Client(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self.run = run
        self.busy = False
        self.gone = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.busy:
            self.busy = False
            self.run.failed(f"connection lost after {self._marks} chunks: {exc!r}", truncated=self._body)
        self._transport = None
        if not self.gone.done():
            self.gone.set_result(None)

    def ask(self) -> None:
        if self._transport is None or not self.run.take():
            self.stop()
            return
        self.busy, self._body = True, False
        self._buffer, self._tail, self._marks, self._need = b"", b"", 0, -1
        self._asked = time.perf_counter()
        self._transport.write(self.run.request)

    def stop(self) -> None:
        self.busy = False
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self.busy:
            return
        if not self._body:
            self._buffer += data
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head, data = self._buffer[:end + 2], self._buffer[end + 4:]
            self._body, self._status = True, head[9:12]
            length = _LENGTH.search(head)
            self._need = int(length.group(1)) if length else -1
            self._buffer, self._size = b"", 0
        self._size += len(data)
        self._count(data)
        self._tail = (self._tail + data)[-_TAIL:] if len(data) < _TAIL else data[-_TAIL:]
        if self._size >= self._need if self._need >= 0 else self._tail.endswith(_BODY_END):
            self._answered()

    def _count(self, data: bytes) -> None:
        marks = data.count(_MARK)
        if marks:
            if not self._marks:
                self.run.ttft.append(time.perf_counter() - self._asked)
            self._marks += marks
            self.run.chunks += marks
            self.run.counted_chunks += marks

    def _answered(self) -> None:
        run, scenario = self.run, self.run.scenario
        wanted = scenario.plan.chunks if scenario.stream else 1
        if self._status != b"200":
            run.failed(f"status {self._status.decode()}: {self._tail!r}")
        elif self._marks != wanted or (scenario.stream and b"[DONE]" not in _FRAMING.sub(b"", self._tail)):
            run.failed(f"{self._marks} of {wanted} chunks, then {self._tail!r}", truncated=True)
        else:
            run.answered += 1
            run.latency.append(time.perf_counter() - self._asked)
        self.ask()


def request_bytes(url: str, key: str | None, model: str, scenario: Scenario) -> bytes:
    """The one request that all connections of a scenario repeat."""
    parts = urlsplit(url)
    filler = "All work and no play makes a dull prompt. "
    prompt = scenario.plan.mark() + " " + filler * max(1, scenario.prompt_bytes // len(filler))
    body: dict[str, Any] = {"model": model, "max_tokens": 512, "temperature": 0.5, "stream": scenario.stream, "messages": [
        {"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": prompt}]}
    if scenario.stream:
        body["stream_options"] = {"include_usage": True}
    data = msgspec.json.encode(body)
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = (path or "/v1") + "/chat/completions"
    login = f"Authorization: Bearer {key}\r\n" if key else ""
    return (f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\nAccept: */*\r\n{login}"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


async def _connect(run: _Run, host: str, port: int) -> _Client:
    loop = asyncio.get_running_loop()
    for left in reversed(range(CONNECT_TRIES)):
        try:
            _, client = await loop.create_connection(lambda: _Client(run), host, port)
            return client
        except OSError:
            if not left:
                raise
            await asyncio.sleep(0.05)
    raise AssertionError("unreachable")


async def _keep(run: _Run, client: _Client, host: str, port: int) -> None:
    """One place in the loop; a connection that the server closed is made anew."""
    client.ask()
    while True:
        await client.gone
        if run.stopping or not run.left:
            return
        client = await _connect(run, host, port)
        client.ask()


async def load(url: str, key: str | None, model: str, name: str, scenario: Scenario) -> Row:
    """Run one scenario against ``url`` (a base URL, with or without /v1)."""
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    run = _Run(scenario, request_bytes(url, key, model, scenario))
    clients = [await _connect(run, host, port) for _ in range(scenario.clients)]
    places: list[asyncio.Task[None]] = []
    began = time.perf_counter()
    for i, client in enumerate(clients):
        places.append(asyncio.create_task(_keep(run, client, host, port)))
        if scenario.ramp_s:
            await asyncio.sleep(max(0.0, began + scenario.ramp_s * i / len(clients) - time.perf_counter()))
    if scenario.warmup_s:
        await asyncio.sleep(scenario.warmup_s)
        run.forget()
        began = time.perf_counter()
    await asyncio.wait(places, timeout=scenario.grace_s if scenario.requests else scenario.seconds)
    wall_s = time.perf_counter() - began
    row = _row(name, run, wall_s)
    run.stopping = True
    pending = {place for place in places if not place.done()}
    if pending and not scenario.requests:
        _, pending = await asyncio.wait(pending, timeout=scenario.grace_s)
    row.unfinished = len(pending)
    row.answered, row.chunks, row.errors, row.truncated = run.answered, run.chunks, run.errors, run.truncated
    row.first_error = run.first_error
    for place in pending:
        place.cancel()
    for client in clients:
        client.stop()
    return row


def _row(name: str, run: _Run, wall_s: float) -> Row:
    return Row(scenario=name, ok=len(run.latency), per_s=round(len(run.latency) / wall_s, 1),
               chunks_per_s=round(run.counted_chunks / wall_s, 1) if run.scenario.stream else 0.0,
               latency_p50_ms=_at(run.latency, 0.5), latency_p99_ms=_at(run.latency, 0.99),
               ttft_p50_ms=_at(run.ttft, 0.5), ttft_p99_ms=_at(run.ttft, 0.99))


def _at(values: list[float], part: float) -> float:
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1e3, 3) if values else 0.0


async def _bench(url: str | None, key: str | None, model: str, scenarios: Iterable[str], seconds: float | None) -> list[Row]:
    server: asyncio.Server | None = None
    if url is None:
        server, port, _ = await start()
        url = f"http://127.0.0.1:{port}"
    rows = []
    for name in scenarios:
        scenario = SCENARIOS[name]
        if seconds is not None:
            scenario = msgspec.structs.replace(scenario, seconds=seconds, warmup_s=min(scenario.warmup_s, seconds / 2))
        rows.append(await load(url, key, model, name, scenario))
    if server is not None:
        server.close()
    return rows


def run_bench(url: str | None, key: str | None, model: str, scenarios: Iterable[str] = tuple(SCENARIOS),
              seconds: float | None = None) -> list[Row]:
    """Rows of ``scenarios`` against a gateway at ``url`` whose ``model`` leads to a ``bench_upstream``. Blocks; own event loop.

    Without a URL the built-in upstream itself is measured, in this process: what the machine and this client could do at most.
    """
    if sys.platform != "win32":
        import uvloop
        return uvloop.run(_bench(url, key, model, scenarios, seconds))
    return asyncio.run(_bench(url, key, model, scenarios, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description="Load-test an OpenAI-like server in front of gateway.mock.bench_upstream.")
    parser.add_argument("url", nargs="?")
    parser.add_argument("--key")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    rows = run_bench(given.url, given.key, given.model, given.scenario or tuple(SCENARIOS), given.seconds)
    print(json.dumps([msgspec.structs.asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
