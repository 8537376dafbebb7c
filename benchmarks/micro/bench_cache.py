"""What does an answer out of the cache cost in the process alone, beside ``GET /livez``? With a client key, record and access line.

Over a socket: ``benchmarks/load/cached.py``.
"""
import os
import sys
import tempfile
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.micro.bench_request import MODES
from benchmarks.micro.stages import CALLS, WHOLE, Whole

RUNS = 60
LIVEZ = (b"GET /livez HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
         b"User-Agent: python-httpx/0.28\r\n\r\n")
TOPICS = {"": "hello, how are you?", ", 100 KB asked": "hello there, how is it? " * 4_200}
STREAM = next(name for name in MODES if name.startswith("20"))


async def compared(mode: str, prompt: str) -> tuple[float, float]:
    """Microseconds of CPU for ``GET /livez`` and for a hit, by turns."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Whole(mode, prompt, folder, "[cache]\nenabled = true\n")
        await whole.open()
        asking, streams = whole.asking, whole.stream
        await whole.once()                           # the upstream answers, this once
        best = {LIVEZ: float("inf"), asking: float("inf")}
        for _ in range(RUNS):
            for said in best:
                whole.asking, whole.stream = said, streams and said is asking
                began = time.process_time_ns()
                for _ in range(CALLS):
                    await whole.once()
                best[said] = min(best[said], (time.process_time_ns() - began) / CALLS / 1e3)
        hits = whole.parts.replays.answers.statistics.hits
        assert hits == RUNS * CALLS, hits
        await whole.close()
    return best[LIVEZ], best[asking]


def main() -> list[tuple[str, float]]:
    """Access lines go to the standard error: nowhere, here."""
    kept = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    rows = []
    for mode in (WHOLE, STREAM):
        for name, prompt in TOPICS.items():
            livez, hit = uvloop.run(compared(mode, prompt))
            rows += [("GET /livez", livez), (f"a hit in the cache, {mode}{name}", hit)]
    os.dup2(kept, 2)
    return rows
