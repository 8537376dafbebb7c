"""What do the rounds of a run say? Tables in Markdown."""
import statistics
from collections.abc import Callable
from typing import Any

from gateway.mock.scenarios import SCENARIOS, Scenario

Round = dict[str, Any]
REFERENCE = "aiohttp"
LEAST = {"cpu_us_per_answer", "cpu_us_per_chunk", "cores"}


def figure(rounds: list[Round], scenario: str, field: str) -> float | None:
    values = [v for r in rounds if (v := r["scenarios"].get(scenario, {}).get(field)) is not None]
    if not values:
        return None
    return float(min(values) if field in LEAST else statistics.median(values))


def of_process(rounds: list[Round], field: str) -> float | None:
    values = [r[field] for r in rounds if field in r]
    return statistics.median(values) if values else None


def bad(rounds: list[Round], scenario: str) -> bool:
    """An answer was not whole, or was whole without the failure that the scenario is about, or not all streams were there at once."""
    wanted = SCENARIOS[scenario]
    rows = [r["scenarios"][scenario] for r in rounds if scenario in r["scenarios"]]
    return any(row["errors"] or row["truncated"] or row["unfinished"] or not row["ok"]
               or (wanted.names[1] and row.get("refused", 0) < row["answered"]) for row in rows)


def growth_kb(rounds: list[Round], scenario: str) -> float | None:
    """Memory for one more stream: (peak - idle) / streams."""
    grown = [(row["rss_peak_mb"] - row["rss_before_mb"]) * 1e3 / SCENARIOS[scenario].clients
             for r in rounds if "rss_peak_mb" in (row := r["scenarios"].get(scenario, {}))]
    return statistics.median(grown) if grown else None


class Seen:
    """One peer in one scenario, beside the others of its run."""

    def __init__(self, peers: dict[str, list[Round]], peer: str, scenario: str) -> None:
        self.peers, self.peer, self.scenario = peers, peer, scenario

    def own(self, field: str) -> float | None:
        return figure(self.peers[self.peer], self.scenario, field)

    def ratio(self, field: str, peer: str = REFERENCE, scenario: str = "") -> float | None:
        mine, theirs = self.own(field), figure(self.peers.get(peer, []), scenario or self.scenario, field)
        return mine / theirs if mine and theirs else None

    def added_us(self, peer: str = "") -> float | None:
        """What it adds to the median latency of the upstream alone."""
        mine = figure(self.peers.get(peer or self.peer, []), self.scenario, "latency_p50_ms")
        alone = figure(self.peers.get("direct", []), self.scenario, "latency_p50_ms")
        return (mine - alone) * 1e3 if mine is not None and alone is not None else None

    def added_ratio(self) -> float | None:
        mine, theirs = self.added_us(), self.added_us(REFERENCE)
        return mine / theirs if mine and theirs else None

    def to_direct_hit(self, field: str) -> float | None:
        return self.ratio(field, self.peer, self.scenario.replace("failover", "whole"))

    def kb(self) -> float | None:
        return growth_kb(self.peers[self.peer], self.scenario)


Column = tuple[str, Callable[[Seen], float | None]]
SPEED: tuple[Column, ...] = (
    ("answers/s", lambda s: s.own("per_s")), ("CPU µs/answer", lambda s: s.own("cpu_us_per_answer")),
    ("× aiohttp", lambda s: s.ratio("cpu_us_per_answer")))
LATENCY: tuple[Column, ...] = (("p50 ms", lambda s: s.own("latency_p50_ms")), ("p99 ms", lambda s: s.own("latency_p99_ms")))
MEMORY: tuple[Column, ...] = (("RSS peak MB", lambda s: s.own("rss_peak_mb")),)
TTFT: tuple[Column, ...] = (("TTFT p50 ms", lambda s: s.own("ttft_p50_ms")), ("TTFT p99 ms", lambda s: s.own("ttft_p99_ms")),
                            ("× aiohttp", lambda s: s.ratio("ttft_p99_ms")))
CHUNKS: tuple[Column, ...] = (
    ("chunks/s", lambda s: s.own("chunks_per_s")), ("CPU µs/chunk", lambda s: s.own("cpu_us_per_chunk")),
    ("× aiohttp", lambda s: s.ratio("cpu_us_per_chunk")))
ADDED: tuple[Column, ...] = (("added p50 µs", lambda s: s.added_us()), ("× aiohttp", lambda s: s.added_ratio()))
TRANSIT: tuple[Column, ...] = (
    ("transit p50 ms", lambda s: s.own("transit_p50_ms")), ("transit p99 ms", lambda s: s.own("transit_p99_ms")),
    ("× aiohttp", lambda s: s.ratio("transit_p99_ms")), ("at once", lambda s: s.own("at_once")), ("KB/stream", Seen.kb),
    ("processes", lambda s: s.own("processes")))
FAILED_OVER: tuple[Column, ...] = (
    ("CPU × direct hit", lambda s: s.to_direct_hit("cpu_us_per_answer")),
    ("p50 × direct hit", lambda s: s.to_direct_hit("latency_p50_ms")),
    ("503s", lambda s: s.own("refused")))


def columns(scenario: Scenario) -> tuple[Column, ...]:
    if scenario.names[1]:
        return SPEED[:2] + LATENCY + FAILED_OVER
    if scenario.plan.stamp:
        return CHUNKS + TTFT + TRANSIT + MEMORY
    return SPEED + (CHUNKS + TTFT if scenario.stream else ADDED + LATENCY) + MEMORY


def text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


PROCESS = (("cold start s", "start_s"), ("fresh MB", "rss_fresh_mb"), ("idle MB", "rss_idle_mb"))


def show(data: dict[str, Any]) -> None:
    """The tables, as Markdown."""
    peers: dict[str, list[Round]] = data["peers"]
    for name in data["scenarios"]:
        wanted = columns(SCENARIOS[name])
        seen = [peer for peer, rounds in peers.items() if any(name in r["scenarios"] for r in rounds)]
        if not seen:
            continue
        print(f"\n**{name}**: {SCENARIOS[name].about}\n\n| peer | " + " | ".join(title for title, _ in wanted) + " |")
        print("|---|" + "---:|" * len(wanted))
        for peer in seen:
            mark = " **(not valid)**" if bad(peers[peer], name) else ""
            print(f"| {peer}{mark} | " + " | ".join(text(cell(Seen(peers, peer, name))) for _, cell in wanted) + " |")
    print("\n**process**\n\n| peer | " + " | ".join(title for title, _ in PROCESS) + " |\n|---|" + "---:|" * len(PROCESS))
    for peer, rounds in peers.items():
        if any("start_s" in r for r in rounds):
            print(f"| {peer} | " + " | ".join(text(of_process(rounds, field)) for _, field in PROCESS) + " |")
    print()
    faults(peers)


def faults(peers: dict[str, list[Round]]) -> None:
    for peer, rounds in peers.items():
        for r in rounds:
            if "error" in r:
                print(f"{peer}: {r['error']}")
            for name, row in r["scenarios"].items():
                if row["first_error"]:
                    print(f"{peer} {name}: {row['errors']} errors, {row['truncated']} truncated, {row['unfinished']} unfinished: "
                          f"{row['first_error'][:200]}")
