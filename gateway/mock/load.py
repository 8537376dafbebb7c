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
from collections.abc import Callable, Iterable
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from gateway.mock.bench_upstream import MARK, MODEL, STAMP, start
from gateway.mock.scenarios import FAILOVER, SCENARIOS, Row, Scenario, at, histogram

_MARK: Final = MARK.encode()
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_FRAMING: Final = re.compile(rb"\r\n[0-9a-fA-F]+\r\n")            # between two chunks of a chunked body; it may cut a word
_BODY_END: Final = b"\r\n0\r\n\r\n"
_TAIL: Final = 256
CONNECT_TRIES: Final = 50
A_SOURCE: Final = 8_000                      # connections from one address; each has some 28,000 ports, and others want some
TELL_S: Final = 0.1
# Share of the scenario that is over, answers so far, and how many of them were not whole.
Progress = Callable[[float, int, int], None]


class _Run:
    """The state of one scenario that its connections share."""

    def __init__(self, scenario: Scenario, requests: list[bytes]) -> None:
        self.scenario, self.requests = scenario, requests
        self.left = scenario.requests or sys.maxsize
        self.stopping = False
        self.answered = self.chunks = self.truncated = self.errors = 0
        self.first_error = ""
        self.latency: list[float] = []
        self.ttft: list[float] = []
        self.transit: list[float] = []
        self.open = self.at_once = self.asked = 0
        self.counted_chunks = 0

    def forget(self) -> None:
        """Warm-up is over."""
        self.latency, self.ttft, self.transit, self.counted_chunks = [], [], [], 0

    def take(self) -> bytes | None:
        """The next request, while there is one."""
        if self.stopping or not self.left:
            return None
        self.left -= 1
        self.asked += 1
        return self.requests[self.asked % len(self.requests)]

    def opened(self, by: int) -> None:
        self.open += by
        self.at_once = max(self.at_once, self.open)

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
            self.run.opened(-1)
            self.run.failed(f"connection lost after {self._marks} chunks: {exc!r}", truncated=self._body)
        self._transport = None
        if not self.gone.done():
            self.gone.set_result(None)

    def ask(self) -> None:
        request = self.run.take() if self._transport is not None else None
        if request is None or self._transport is None:
            self.stop()
            return
        self.busy, self._body = True, False
        self.run.opened(+1)
        self._buffer, self._tail, self._marks, self._need = b"", b"", 0, -1
        self._asked = time.perf_counter()
        self._transport.write(request)

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
            if self.run.scenario.plan.stamp:
                self._clock(data)

    def _clock(self, data: bytes) -> None:
        """How long chunks were under way: upstream and load share a machine, and so its clock."""
        now, found = time.monotonic(), data.find(_MARK)
        while found >= 0:
            stamp = data[found + 1:found + 1 + STAMP]
            if len(stamp) == STAMP and stamp.isdigit():        # else a read cut it
                self.run.transit.append(now - int(stamp) / 1e6)
            found = data.find(_MARK, found + 1)

    def _answered(self) -> None:
        run, scenario = self.run, self.run.scenario
        run.opened(-1)
        wanted = scenario.plan.chunks if scenario.stream else 1
        if self._status != b"200":
            run.failed(f"status {self._status.decode()}: {self._tail!r}")
        elif self._marks != wanted or (scenario.stream and b"[DONE]" not in _FRAMING.sub(b"", self._tail)):
            run.failed(f"{self._marks} of {wanted} chunks, then {self._tail!r}", truncated=True)
        else:
            run.answered += 1
            run.latency.append(time.perf_counter() - self._asked)
        self.ask()


def request_bytes(url: str, key: str | None, model: str, scenario: Scenario, headers: Iterable[str] = ()) -> bytes:
    """The request that all connections of a scenario repeat. ``headers``: more of them, as lines."""
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
    login += "".join(f"{line}\r\n" for line in headers)
    return (f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\nAccept: */*\r\n{login}"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


def requests(url: str, key: str | None, model: str, scenario: Scenario, headers: Iterable[str] = ()) -> list[bytes]:
    """What the connections of a scenario send, in turn."""
    models = [FAILOVER.format(n) for n in range(*scenario.names)] or [model]
    return [request_bytes(url, key, each, scenario, headers) for each in models]


async def _connect(run: _Run, host: str, port: int, n: int) -> _Client:
    """The ``n``-th connection; thousands come from several addresses, since one has not ports enough."""
    loop = asyncio.get_running_loop()
    source = (f"127.0.0.{1 + n // A_SOURCE}", 0) if n >= A_SOURCE and host.startswith("127.") and sys.platform == "linux" else None
    for left in reversed(range(CONNECT_TRIES)):
        try:
            _, client = await loop.create_connection(lambda: _Client(run), host, port, local_addr=source)
            return client
        except OSError:
            if not left:
                raise
            await asyncio.sleep(0.05)
    raise AssertionError("unreachable")


async def _tell(run: _Run, began: float, progress: Progress) -> None:
    """Says how far a scenario is, until it is cancelled."""
    scenario = run.scenario
    while True:
        whole_s = scenario.ramp_s + scenario.warmup_s + scenario.seconds
        share = (run.answered / scenario.requests if scenario.requests else (time.perf_counter() - began) / whole_s)
        progress(min(1.0, share), run.answered, run.errors + run.truncated)
        await asyncio.sleep(TELL_S)


async def _keep(run: _Run, client: _Client, host: str, port: int, n: int) -> None:
    """One place in the loop; a connection that the server closed is made anew."""
    client.ask()
    while True:
        await client.gone
        if run.stopping or not run.left:
            return
        client = await _connect(run, host, port, n)
        client.ask()


async def load(url: str, key: str | None, model: str, name: str, scenario: Scenario, headers: Iterable[str] = (),
               progress: Progress | None = None) -> Row:
    """Run one scenario against ``url`` (a base URL, with or without /v1)."""
    run = _Run(scenario, requests(url, key, model, scenario, headers))
    telling = asyncio.create_task(_tell(run, time.perf_counter(), progress)) if progress is not None else None
    try:
        return await _load(run, name, urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 80)
    finally:
        if telling is not None:
            telling.cancel()


async def _load(run: _Run, name: str, host: str, port: int) -> Row:
    scenario = run.scenario
    clients = [await _connect(run, host, port, n) for n in range(scenario.clients)]
    places: list[asyncio.Task[None]] = []
    began = time.perf_counter()
    for i, client in enumerate(clients):
        places.append(asyncio.create_task(_keep(run, client, host, port, i)))
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
    latency, ttft, transit = sorted(run.latency), sorted(run.ttft), sorted(run.transit)
    return Row(scenario=name, ok=len(latency), per_s=round(len(latency) / wall_s, 1),
               chunks_per_s=round(run.counted_chunks / wall_s, 1) if run.scenario.stream else 0.0,
               latency_p50_ms=at(latency, 0.5), latency_p99_ms=at(latency, 0.99), ttft_p50_ms=at(ttft, 0.5),
               ttft_p99_ms=at(ttft, 0.99), transit_p50_ms=at(transit, 0.5), transit_p99_ms=at(transit, 0.99),
               at_once=run.at_once, histogram=histogram(latency))


async def _bench(url: str | None, key: str | None, model: str, scenarios: Iterable[str], seconds: float | None,
                 headers: Iterable[str], progress: Progress | None) -> list[Row]:
    server: asyncio.Server | None = None
    if url is None:
        server, port, _ = await start()
        url = f"http://127.0.0.1:{port}"
    rows = []
    for name in scenarios:
        scenario = SCENARIOS[name]
        if seconds is not None:
            scenario = msgspec.structs.replace(scenario, seconds=seconds, warmup_s=min(scenario.warmup_s, seconds / 2))
        rows.append(await load(url, key, model, name, scenario, headers, progress))
    if server is not None:
        server.close()
    return rows


def run_bench(url: str | None, key: str | None, model: str, scenarios: Iterable[str] = tuple(SCENARIOS),
              seconds: float | None = None, headers: Iterable[str] = (), progress: Progress | None = None) -> list[Row]:
    """Rows of ``scenarios`` against a gateway at ``url`` whose ``model`` leads to a ``bench_upstream``. Blocks; own event loop.

    Without a URL the built-in upstream itself is measured, in this process: what the machine and this client could do at most.
    """
    if sys.platform != "win32":
        import uvloop
        return uvloop.run(_bench(url, key, model, scenarios, seconds, headers, progress))
    return asyncio.run(_bench(url, key, model, scenarios, seconds, headers, progress))


def main() -> None:
    parser = argparse.ArgumentParser(description="Load-test an OpenAI-like server in front of gateway.mock.bench_upstream.")
    parser.add_argument("url", nargs="?")
    parser.add_argument("--key")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'")
    given = parser.parse_args()
    rows = run_bench(given.url, given.key, given.model, given.scenario or tuple(SCENARIOS), given.seconds, given.header)
    print(json.dumps([msgspec.structs.asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
