"""What does compression cost, per 100 KB of a request? Reading, engines, gate and writing; not the second parse."""
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
from timing import timed

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.talks import anthropic, chat
from gateway.compress import plan, wires
from gateway.compress.filters import builtin

KB_100 = 102_400
LIMITS_US = {"lossless": 5_000, "standard": 15_000, "aggressive": 40_000}
FILTERS = builtin()


def once(wire: str, raw: bytes, mode: str) -> Callable[[], object]:
    def run() -> bytes:
        talk = wires.read(wire, raw)
        assert talk is not None
        talk.filters = FILTERS
        return wires.write(raw, plan.compress(talk, plan.Aim(mode, len(raw) // 4)).changed)
    return run


def main() -> list[tuple[str, float, float]]:
    rows = []
    for wire, make in (("openai-chat", chat), ("anthropic", anthropic)):
        for n in (5, 30):
            raw = orjson.dumps(make(n))
            for mode, limit in LIMITS_US.items():
                us = min(timed(once(wire, raw, mode), calls=1) for _ in range(4)) * KB_100 / len(raw)
                rows.append((f"compression, {mode}, 100 KB of a {wire} session of {len(raw) >> 10} KB", us, limit))
    return rows
