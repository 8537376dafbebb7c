"""Half an hour of mixed load with faults, and what it left behind. ``python -m benchmarks.soak [--minutes 30] [--png FILE]``

Rounds of load with a pause at the end of each: what a process holds while nobody asks is what it never gives back. After the warm-up
(the first third; caches and records in memory fill to their bounds) memory must not grow, and tasks, sockets and descriptors never.
"""
import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import msgspec

from benchmarks.soak.house import MODELS, House, Sample
from benchmarks.soak.load import Load

ROUND_S = 20.0
PAUSE_S = 2.5                                        # longer than any answer under way may take (timeouts of house.CONFIG)
GROWTH_KB = 4_096                                    # of resting memory from the end of the warm-up on: the noise of an allocator
SPARE = {"tasks": 2, "sockets": 8, "fds": 8}         # more by the fitted line: as many connections to providers are kept, now and then


class Report(msgspec.Struct):
    """``resting``: one sample at the end of each round's pause."""
    samples: list[Sample]
    resting: list[Sample]
    seen: dict[str, int]
    wrong: list[str]
    complaints: list[str]

    @property
    def settled(self) -> list[Sample]:
        return self.resting[len(self.resting) // 3:]

    @property
    def settled_s(self) -> float:
        return self.settled[-1].at_s - self.settled[0].at_s

    def a_minute(self, name: str) -> float:
        """What is gained of it at rest after the warm-up, by least squares over all that is settled."""
        return slope([(one.at_s, getattr(one, name)) for one in self.settled]) * 60

    def problems(self, growth_kb: int = GROWTH_KB, spare: Mapping[str, int] = SPARE) -> list[str]:
        found = [f"answer that is none: {text}" for text in self.wrong]
        for name, most in {"rss_kb": growth_kb, **spare}.items():
            gained = self.a_minute(name) * self.settled_s / 60
            if gained > most:
                found.append(f"{name} grew by {gained:.0f} in {self.settled_s:.0f} s")
        return found + [f"the log says: {line[:400]}" for line in self.complaints[:10]]


def slope(points: list[tuple[float, float]]) -> float:
    """By least squares; 0 of fewer than two points."""
    n = len(points)
    if n < 2:
        return 0.0
    x, y = sum(p[0] for p in points) / n, sum(p[1] for p in points) / n
    wide = sum((p[0] - x) ** 2 for p in points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / wide if wide else 0.0


async def soak(seconds: float, clients: int = 24, seed: int = 1, round_s: float = ROUND_S, pause_s: float = PAUSE_S) -> Report:
    began = time.monotonic()
    samples: list[Sample] = []
    resting: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        async with House(Path(folder), seed) as house, aiohttp.ClientSession() as session:
            load = Load(house.url, seed, MODELS)
            while time.monotonic() - began < seconds:
                under = asyncio.create_task(load.run(clients, 0.05))
                ends = time.monotonic() + round_s
                while time.monotonic() < ends and not under.done():
                    await asyncio.sleep(min(1.0, round_s / 4))
                    samples.append(await house.sample(session, time.monotonic() - began))
                house.reload()
                under.cancel()
                await asyncio.gather(under, return_exceptions=True)
                await asyncio.sleep(pause_s)
                resting.append(await house.sample(session, time.monotonic() - began))
            complaints = house.complaints
    return Report(samples=samples, resting=resting, seen=dict(load.seen), wrong=load.wrong, complaints=complaints)


def picture(report: Report, path: str) -> None:
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 1, figsize=(8, 7), sharex=True)
    rows = (("rss_kb", "memory, MB", 1_024), ("tasks", "tasks", 1), ("sockets", "sockets", 1), ("fds", "descriptors", 1))
    for axis, (name, title, per) in zip(axes, rows, strict=True):
        for looks, label, style in ((report.samples, "under load", {"color": "#9db8d2", "lw": 0.8}),
                                    (report.resting, "at rest", {"color": "#b03030", "lw": 1, "marker": "o", "ms": 2.5})):
            axis.plot([one.at_s / 60 for one in looks], [getattr(one, name) / per for one in looks], label=label, **style)
        axis.set_ylabel(title, fontsize=8)
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
        axis.axvline(report.settled[0].at_s / 60, color="#888888", lw=0.7, ls=":")
    axes[0].legend(fontsize=7, loc="lower right")
    told = f"{sum(report.seen.values()):,} requests, memory at rest {report.a_minute('rss_kb'):+.1f} KB/min after the warm-up"
    axes[0].set_title(told, fontsize=9)
    axes[-1].set_xlabel("minutes", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, format="png", dpi=80)
    pyplot.close(figure)
    with Image.open(path) as drawn:
        small = drawn.convert("RGB").quantize(32)
    small.save(path, optimize=True)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--clients", type=int, default=24)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--png", default="", help="where to draw it")
    options.add_argument("--json", default="", help="where to write the samples")
    chosen = options.parse_args()
    report = asyncio.run(soak(chosen.minutes * 60, chosen.clients, chosen.seed))
    if chosen.json:
        Path(chosen.json).write_bytes(msgspec.json.encode(report))
    if chosen.png:
        picture(report, chosen.png)
    first, last = report.settled[0], report.settled[-1]
    print(f"{sum(report.seen.values()):,} requests in {last.at_s / 60:.1f} minutes: {report.seen}")
    for name in ("rss_kb", "tasks", "sockets", "fds", "threads"):
        line = f"{report.a_minute(name):+8.2f} a minute by least squares"
        print(f"{name:8} at rest {getattr(first, name):>8} -> {getattr(last, name):>8}   {line}")
    found = report.problems()
    for problem in found:
        print("!", problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
