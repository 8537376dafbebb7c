"""Where do a request's microseconds go? The whole gateway in one process: only the kernel and the other ends are missing.

A client's bytes are given to the server's protocol, the upstream's to a connection of our own client; between them runs what runs
in production, with a client key, the journals and the store. Stages are functions, each measured without those below it (the cost of
measuring is taken off), so that they and the rest add up to the total of an unmeasured run.

    python -m benchmarks.micro request --stages
    python benchmarks/micro/stages.py totals               python benchmarks/micro/stages.py profile ["20 in one"]
"""
import asyncio
import cProfile
import inspect
import json
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.micro.bench_request import MODES
from gateway.config.load import loads
from gateway.server import compose
from gateway.server.listen import Listener
from gateway.upstream.h1.connection import Connection

CONFIG: Final = """
[[auth.keys]]
name = "bench"
key = "sk-bench"
[store]
url = "sqlite:{folder}/bench.db"
[[providers]]
id = "up"
wire = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
api_keys = ["up-key"]
models = ["bench-model"]
"""
RUNS, CALLS = 15, 300                           # a run is long enough for several batches of records
WHOLE: Final = "whole answer"
END: Final = b"0\r\n\r\n"
PROMPTS: Final = {"": "hello, how are you?", " 100 KB": "hello there, how is it? " * 4_200}

SHOWN: Final = ((WHOLE, ""), ("20 in one", ""), ("20 one by one", ""), (WHOLE, " 100 KB"))

# (stage, module, owner in it or "", function). A function is charged without the functions of other rows that it calls.
STAGES: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("HTTP server", "gateway.server.succession", "Succession", "data_received"),
    ("door: call and client", "gateway.surfaces.desk", "Desk", "call"),
    ("admit: who is it", "gateway.pipeline.admit", "", "caller"),
    ("read the body", "gateway.pipeline.deliver", "Client", "body"),
    ("asked before?", "gateway.pipeline.again", "", "visit"),
    ("parse", "gateway.pipeline.serve", "", "asked"),
    ("plan", "gateway.pipeline.serve", "", "planned"),
    ("admit: limits", "gateway.pipeline.admit", "", "request"),
    ("attempts: walk, search, the loop", "gateway.pipeline.attempts", "", "run"),
    ("attempt: made", "gateway.pipeline.search", "Search", "begin"),
    ("attempt: booked", "gateway.pipeline.booking", "", "finish"),
    ("attempt: sent", "gateway.pipeline.attempt", "", "try_once"),
    ("attempt: answered, read", "gateway.pipeline.attempt", "", "answered"),
    ("source: reads", "gateway.pipeline.source", "Source", "chunk"),
    ("the body for the upstream", "gateway.pipeline.attempt", "", "written"),
    ("client: request out", "gateway.upstream.h1.transport", "H1Transport", "send"),
    ("client: answer in", "gateway.upstream.h1.connection", "Connection", "data_received"),
    ("source: reads to events", "gateway.pipeline.source", "Source", "events"),
    ("turn", "gateway.stream.turn", "Turn", "feed"),
    ("sink: events to bytes", "gateway.pipeline.sinks", "StreamSink", "push"),
    ("sink: events to bytes", "gateway.pipeline.sinks", "StreamSink", "close"),
    ("sink: events to bytes", "gateway.pipeline.sinks", "WholeSink", "close"),
    ("deliver: head and writes", "gateway.pipeline.deliver", "Client", "answer"),
    ("deliver: head and writes", "gateway.pipeline.deliver", "Client", "start"),
    ("deliver: head and writes", "gateway.pipeline.deliver", "Client", "write"),
    ("deliver: head and writes", "gateway.pipeline.deliver", "Client", "end"),
    ("record", "gateway.pipeline.record", "", "close"),
    ("record: journals", "gateway.observe.journals", "Journals", "add"),
    ("record: rows", "gateway.store.ledger", "Ledger", "gather"),
    ("serve: the story itself", "gateway.pipeline.serve", "", "serve"),
)


class Watch:
    """Time by stage, exclusive. A coroutine is measured step by step: what runs while it waits is not its own."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.below: dict[str, int] = {}              # calls of other stages out of it
        self._stack: list[list[int]] = []

    def begin(self) -> None:
        self._stack.append([time.thread_time_ns(), 0, 0])

    def end(self, stage: str) -> None:
        began, below, n_below = self._stack.pop()
        took = time.thread_time_ns() - began
        self.spent[stage] = self.spent.get(stage, 0) + took - below
        self.calls[stage] = self.calls.get(stage, 0) + 1
        self.below[stage] = self.below.get(stage, 0) + n_below
        if self._stack:
            self._stack[-1][1] += took
            self._stack[-1][2] += 1

    def watched(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.iscoroutinefunction(function):
            def plain(*args: Any, **named: Any) -> Any:
                self.begin()
                try:
                    return function(*args, **named)
                finally:
                    self.end(stage)
            return plain

        class Steps:
            __slots__ = ("steps",)

            def __init__(this, steps: Any) -> None:
                this.steps = steps

            def __await__(this) -> Any:
                value, step = None, this.steps.send
                while True:
                    self.begin()
                    try:
                        asked = step(value)
                    except StopIteration as over:
                        return over.value
                    finally:
                        self.end(stage)
                    try:
                        value, step = (yield asked), this.steps.send
                    except BaseException as error:
                        value, step = error, this.steps.throw
        return lambda *args, **named: Steps(function(*args, **named))


def known(function: object) -> list[tuple[Any, str]]:
    """Wherever a module of the gateway, or a struct in one, knows this function by name."""
    modules = [module for key, module in list(sys.modules.items()) if key.startswith("gateway")]
    structs = [value for module in modules for value in list(vars(module).values()) if isinstance(value, msgspec.Struct)]
    return [(module, name) for module in modules for name, value in list(vars(module).items()) if value is function] + [
        (struct, name) for struct in structs for name in struct.__struct_fields__ if getattr(struct, name, None) is function]


def put(where: Any, name: str, value: object) -> None:
    (msgspec.structs.force_setattr if isinstance(where, msgspec.Struct) else setattr)(where, name, value)


class Side(asyncio.Transport):
    """One end of a connection, without a socket: what is written goes to ``heard``."""

    def __init__(self, heard: Callable[[bytes], None]) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.write = heard  # type: ignore[method-assign]

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        pass

    abort = resume_reading = pause_reading = close


class Whole:
    """The gateway, one client connection and an upstream that answers at once with the reads of ``mode``. ``more``: configuration."""

    def __init__(self, mode: str, prompt: str, folder: str, more: str = "") -> None:
        self.loop = asyncio.get_running_loop()
        snapshot = loads(CONFIG.format(folder=folder) + more, {})
        self.desk, self.parts = compose.build(snapshot)
        self.stream = mode != WHOLE
        self.reads = framed(MODES[mode], self.stream)
        doc = {"model": "bench-model", "messages": [{"role": "user", "content": prompt}], "temperature": 0.7, "stream": self.stream}
        body = json.dumps(doc).encode()
        self.asking = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-bench\r\n"
                       b"Content-Type: application/json\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
                       b"User-Agent: python-httpx/0.28\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
        self.done: asyncio.Future[None] = self.loop.create_future()

    async def open(self) -> None:
        await self.parts.store.open()
        self.parts.transports["network"]._dialer = self  # type: ignore[attr-defined]
        self.client = Listener(self.desk, self.parts)._server()
        self.client.connection_made(Side(self._heard))

    async def connect(self, origin: Any) -> Connection:
        """In the place of ``h1.dial.Dialer``."""
        pool = self.parts.transports["network"]._pool  # type: ignore[attr-defined]
        conn = Connection(origin, pool)
        conn.connection_made(Side(lambda data: self._answer(conn, data)))
        return conn

    def _answer(self, conn: Connection, data: bytes) -> None:
        for read in self.reads:
            self.loop.call_soon(conn.data_received, read)

    def _heard(self, data: bytes) -> None:
        if not self.stream or data.endswith(END):
            assert data.startswith(b"HTTP/1.1 200") or self.stream, data
            self.done.set_result(None)

    async def once(self) -> None:
        self.done = self.loop.create_future()
        self.client.data_received(self.asking)
        await self.done

    async def close(self) -> None:
        await asyncio.sleep(0.1)
        self.client.connection_lost(None)
        await compose.dissolve(self.parts)


def framed(reads: list[bytes], stream: bool) -> list[bytes]:
    """As they come from the socket of an HTTP/1.1 upstream."""
    if not stream:
        return [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(reads[0]) + reads[0]]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
    made = [b"".join([b"%x\r\n%b\n\n\r\n" % (len(frame) + 2, frame) for frame in read.split(b"\n\n")[:-1]]) for read in reads]
    return [head + made[0], *made[1:-1], made[-1] + END] if len(made) > 1 else [head + made[0] + END]


async def measured(mode: str, prompt: str = "", watch: Watch | None = None) -> tuple[float, float]:
    """Microseconds of CPU for one request: of all threads, and of the loop's alone. ``watch`` keeps what it saw of the best run."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Whole(mode, PROMPTS[prompt], folder)
        await whole.open()
        for _ in range(CALLS):
            await whole.once()
        best, seen = (float("inf"), float("inf")), Watch()
        for _ in range(RUNS):
            if watch is not None:
                watch.spent, watch.calls, watch.below = {}, {}, {}
            began, mine = time.process_time_ns(), time.thread_time_ns()
            for _ in range(CALLS):
                await whole.once()
            await asyncio.sleep(0)
            took = (time.process_time_ns() - began) / CALLS / 1e3, (time.thread_time_ns() - mine) / CALLS / 1e3
            if watch is None:
                best = min(best[0], took[0]), min(best[1], took[1])
            elif took[1] < best[1]:
                best = took
                seen.spent, seen.calls, seen.below = watch.spent, watch.calls, watch.below
        if watch is not None:
            watch.spent, watch.calls, watch.below = seen.spent, seen.calls, seen.below
        await whole.close()
    return best


def watching(watch: Watch) -> Callable[[], None]:
    """From now on the functions of STAGES are measured; returns what undoes that."""
    changed: list[tuple[Any, str, Any]] = []
    for stage, module, owner, name in STAGES:
        place: Any = import_module(module)
        if owner:
            place = getattr(place, owner)
        old = getattr(place, name)
        new = watch.watched(stage, old)
        for where, called in [(place, name)] if owner else known(old):
            changed.append((where, called, old))
            put(where, called, new)

    def undo() -> None:
        for where, called, old in changed:
            put(where, called, old)
    return undo


async def profiled(mode: str, prompt: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = Whole(mode, PROMPTS[prompt], folder)
        await whole.open()
        await whole.once()
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(1_000):
            await whole.once()
        profile.disable()
        await whole.close()
    pstats.Stats(profile).sort_stats("tottime").print_stats(70)


def within_share() -> float:
    """Of what watching adds to a call, the part that lies within the time told; the rest is charged to who called."""
    watch, n = Watch(), 20_000

    def nothing() -> None:
        pass

    inner, outer = watch.watched("inner", nothing), watch.watched("outer", lambda: [inner() for _ in range(n)])
    shares = []
    for _ in range(7):
        watch.spent = {}
        outer()
        shares.append(watch.spent["inner"] / (watch.spent["inner"] + watch.spent["outer"]))
    return sorted(shares)[3]


def table(mode: str, prompt: str = "") -> list[tuple[str, float]]:
    """(stage, microseconds), the rest included: together what a request takes unwatched. What watching costs is the difference
    between both runs, in equal parts for each call."""
    total, loops = uvloop.run(measured(mode, prompt))
    watch = Watch()
    undo = watching(watch)
    try:
        _, watched = uvloop.run(measured(mode, prompt, watch))
    finally:
        undo()
    each, within = (watched - loops) * CALLS / sum(watch.calls.values()), within_share()
    found = {stage: (watch.spent[stage] / 1e3 - each * (watch.calls[stage] * within + watch.below[stage] * (1 - within))) / CALLS
             for stage in dict.fromkeys(row[0] for row in STAGES) if stage in watch.spent}
    return [*found.items(), ("event loop, the connection's task, what no row names", loops - sum(found.values())),
            ("the threads that write records and log", total - loops), ("a request", total)]


def show() -> None:
    columns = [dict(table(mode, prompt)) for mode, prompt in SHOWN]
    print("| stage, µs | " + " | ".join(mode + prompt for mode, prompt in SHOWN) + " |\n|---|" + "---:|" * len(SHOWN))
    for stage in dict.fromkeys(stage for column in columns for stage in column):
        print(f"| {stage} | " + " | ".join(f"{column[stage]:.1f}" if stage in column else "" for column in columns) + " |")


def main() -> None:
    """Access lines go to the standard error: nowhere, here."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    mode, prompt = (sys.argv[2] if len(sys.argv) > 2 else WHOLE), (sys.argv[3] if len(sys.argv) > 3 else "")
    if sys.argv[1:2] == ["profile"]:
        uvloop.run(profiled(mode, prompt))
    elif sys.argv[1:2] == ["totals"]:
        for mode, prompt in SHOWN:
            print(f"{mode + prompt}  {uvloop.run(measured(mode, prompt))[0]:.1f} µs", flush=True)
    else:
        show()


if __name__ == "__main__":
    main()
