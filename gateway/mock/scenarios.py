"""Which loads are there, and what is told of one that ran?"""
import math
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.mock.bench_upstream import Plan

FAILOVER: Final = "bench-failover-{}"           # models whose first target is the upstream's /broken
FAILOVERS: Final = 2_000
STEPS_A_DOUBLING: Final = 4                     # of a histogram: its steps are 19 % apart


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
    names: tuple[int, int] = (0, 0)              # asked for in turn, of FAILOVER: what has failed once rests, and is not asked again


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
                          plan=Plan(chunks=50, delay=100, stamp=1), ramp_s=3.0, warmup_s=0.0, grace_s=60.0),
    "slow-10000": Scenario(about="10,000 streams at once, 20 chunks a second apart", stream=True, clients=10_000, requests=10_000,
                           plan=Plan(chunks=20, delay=1_000, stamp=1), ramp_s=16.0, warmup_s=0.0, grace_s=90.0),
    "failover-1": Scenario(about="non-stream, 1 client, the first target answers 503", names=(0, 1_000), requests=1_000),
    "failover-32": Scenario(about="non-stream, 32 clients, the first target answers 503", clients=32, names=(1_000, FAILOVERS),
                            requests=1_000),
}

# Those that need more than one model of one provider, or more than this machine may give.
DEMANDING: Final = frozenset({"slow-10000", "failover-1", "failover-32"})


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
    transit_p50_ms: float = 0.0                  # from the upstream's write of a chunk to its arrival, where chunks are stamped
    transit_p99_ms: float = 0.0
    answered: int = 0
    chunks: int = 0
    at_once: int = 0                             # answers under way at the same time, at most
    histogram: list[tuple[float, int]] = []      # of the latency: up to so many ms, so many answers
    first_error: str = ""

    @property
    def valid(self) -> bool:
        return self.ok > 0 and not (self.errors or self.truncated or self.unfinished)


def at(values: Sequence[float], part: float) -> float:
    """The percentile of sorted seconds, in ms."""
    return round(values[min(len(values) - 1, int(len(values) * part))] * 1e3, 3) if values else 0.0


def histogram(values: Sequence[float]) -> list[tuple[float, int]]:
    """Sorted seconds in steps that grow alike: (up to so many ms, how many), without gaps."""
    counts: dict[int, int] = {}
    for value in values:
        step = math.ceil(math.log2(max(value, 1e-6) * 1e3) * STEPS_A_DOUBLING)
        counts[step] = counts.get(step, 0) + 1
    steps = range(min(counts), max(counts) + 1) if counts else ()
    return [(float(f"{2 ** (step / STEPS_A_DOUBLING):.4g}"), counts.get(step, 0)) for step in steps]
