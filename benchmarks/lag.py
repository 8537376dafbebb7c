"""How late does the event loop get while large bodies are compressed? A timer's lateness, with and without that work.

    python -m benchmarks.lag [MODE [AT ONCE]]            MODE: lossless, standard, aggressive

Requests of 100 KB to 1 MB go through what a served one goes through: they are read, compressed, and written for another API language,
so many at once. In the first row nothing but the timer runs. On a machine with other work most lateness is the machine's: *own* is
what of each lateness this process spent computing, whichever of its threads did. Exit status 1 when its p99 is over 10 ms.
"""
import asyncio
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.talks import chat
from gateway.cli.loop import factory
from gateway.config.load import loads
from gateway.core.call import Call
from gateway.pipeline import prepare, serve, shrink
from gateway.pipeline.aside import aside
from gateway.server import compose
from gateway.server.run import settle
from gateway.wire import WIRES
from gateway.wire.base import Outbound

LIMIT_MS: Final = 10.0
EVERY_S: Final = 0.001
RUN_S: Final = 6.0
SIZES: Final = (100, 250, 500, 1_000)                # KB
CONFIG: Final = """
[compression]
mode = "{mode}"
[[providers]]
id = "up"
base_url = "http://127.0.0.1:9/v1"
api_keys = ["k"]
models = ["m"]
"""
TO: Final = Outbound(model="m", provider="up", stream=False, max_output=None, drop_params=frozenset(), rename_params={},
                     flags=frozenset())


def sized(kb: int) -> bytes:
    """A session of about so many kilobytes."""
    n = 1
    while len(body := orjson.dumps({**chat(n), "model": "m"})) < kb * 1_000:
        n += 1
    return body


Late = list[tuple[float, float]]


async def late(seconds: float) -> Late:
    """(milliseconds by which a timer came late, those of them in which this process computed), each time."""
    found, until = [], time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        used = time.process_time()
        await asyncio.sleep(EVERY_S)
        ms = max(time.perf_counter() - began - EVERY_S, 0.0) * 1e3
        found.append((ms, min(ms, (time.process_time() - used) * 1e3)))
    return found


async def once(body: bytes, ground: Any) -> None:
    call = Call(id="lag", surface="chat", wire="openai-chat", operation="chat", started=0.0, wall=0.0)
    client: Any = SimpleNamespace(headers={}, step_headers=None, wire=WIRES["openai-chat"])
    request = await serve.asked(call, client, serve.Story(parse=prepare.parse), body)
    request = await shrink.shrunk(call, client, request, ground)
    request.conversation = await aside(client.wire.open, request)
    await aside(WIRES["anthropic"].build_request, request, TO)


def row(name: str, found: Late, n: int, seconds: float) -> float:
    """Prints it; returns the p99 of the own part."""
    whole, own, middle = sorted(ms for ms, _ in found), sorted(ms for _, ms in found), len(found) // 2
    at = int(len(found) * 0.99)
    print(f"| {name} | {n / seconds:.1f} | {whole[middle]:.2f} | {whole[at]:.2f} | {own[at]:.2f} | {own[-1]:.2f} |", flush=True)
    return own[at]


async def measured(mode: str, at_once: int) -> int:
    desk, parts = compose.build(loads(CONFIG.format(mode=mode), {}))
    await parts.store.open()
    settle()
    bodies = {kb: sized(kb) for kb in SIZES}
    print("| bodies | requests a second | p50, ms | p99, ms | own p99, ms | own most, ms |\n|---|---:|---:|---:|---:|---:|")
    row("none", await late(RUN_S / 2), 0, 1.0)
    worst = 0.0
    for kb, body in bodies.items():
        done = 0

        async def ask(body: bytes = body) -> None:
            nonlocal done
            while True:
                await once(body, desk.ground)
                done += 1

        workers = [asyncio.ensure_future(ask()) for _ in range(at_once)]
        found = await late(RUN_S)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        worst = max(worst, row(f"{kb} KB, {mode}, {at_once} at once", found, done, RUN_S))
    await compose.dissolve(parts)
    return 1 if worst > LIMIT_MS else 0


def main() -> int:
    mode, at_once = (sys.argv[1] if len(sys.argv) > 1 else "standard"), int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with asyncio.Runner(loop_factory=factory() or asyncio.new_event_loop) as runner:
        return runner.run(measured(mode, at_once))


if __name__ == "__main__":
    sys.exit(main())
