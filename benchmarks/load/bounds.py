"""Which figures must a run show? Ratios to the pass-through of the same run, and what does not depend on the machine."""
from collections.abc import Callable
from typing import Any

from benchmarks.load.report import Round, Seen, bad, of_process
from gateway.mock.scenarios import SCENARIOS

Peers = dict[str, list[Round]]
OURS = "gateway"


def to_reference(scenario: str, field: str) -> Callable[[Peers], float | None]:
    return lambda peers: Seen(peers, OURS, scenario).ratio(field)


def times(peer: str) -> Callable[[Peers], float | None]:
    """Requests of one core: ours beside theirs."""
    def found(peers: Peers) -> float | None:
        ratio = Seen(peers, OURS, "whole-32").ratio("cpu_us_per_answer", peer)
        return 1 / ratio if ratio else None
    return found


def direct_hit(scenario: str, field: str) -> Callable[[Peers], float | None]:
    return lambda peers: Seen(peers, OURS, scenario).to_direct_hit(field)


# What is told of it, how it is found, the most (or, with a minus, the least) that it may be.
BOUNDS: tuple[tuple[str, Callable[[Peers], float | None], float], ...] = (
    ("whole-32, CPU of an answer, × aiohttp", to_reference("whole-32", "cpu_us_per_answer"), 0.6),
    ("whole-32, answers a second, × aiohttp", to_reference("whole-32", "per_s"), -1.5),
    ("whole-1, added latency, × aiohttp", lambda peers: Seen(peers, OURS, "whole-1").added_ratio(), 0.7),
    ("large-prompt, CPU of an answer, × aiohttp", to_reference("large-prompt", "cpu_us_per_answer"), 0.7),
    ("streams-20, CPU of a stream, × aiohttp", to_reference("streams-20", "cpu_us_per_answer"), 0.9),
    ("streams-200, CPU of a chunk, × aiohttp", to_reference("streams-200", "cpu_us_per_chunk"), 1.15),
    ("streams-200-by-10, CPU of a chunk, × aiohttp", to_reference("streams-200-by-10", "cpu_us_per_chunk"), 1.5),
    ("slow-1000, time to first token p99, × aiohttp", to_reference("slow-1000", "ttft_p99_ms"), 0.5),
    ("slow-1000, transit of a chunk p99, × aiohttp", to_reference("slow-1000", "transit_p99_ms"), 0.8),
    ("answers a core, × LiteLLM", times("litellm"), -80),
    ("answers a core, × Portkey", times("portkey"), -7),
    ("failover-32, CPU, × a direct hit", direct_hit("failover-32", "cpu_us_per_answer"), 1.6),
    ("failover-1, latency, × a direct hit", direct_hit("failover-1", "latency_p50_ms"), 1.6),
    ("slow-10000, KB a stream", lambda peers: Seen(peers, OURS, "slow-10000").kb(), 30),
    ("slow-10000, streams at once", lambda peers: Seen(peers, OURS, "slow-10000").own("at_once"), -10_000),
    ("idle MB", lambda peers: of_process(peers.get(OURS, []), "rss_idle_mb"), 65),
    ("cold start, s", lambda peers: of_process(peers.get(OURS, []), "start_s"), 0.6),
)


def broken(data: dict[str, Any]) -> list[str]:
    """A line for every bound that does not hold and every row of ours that is no result; what was not measured is passed over."""
    peers: Peers = data["peers"]
    if OURS not in peers:
        return [f"{OURS} was not measured"]
    lines = [f"{OURS}: {name} is not valid" for name in SCENARIOS if bad(peers[OURS], name)]
    lines += [f"{OURS}: {r['error']}" for r in peers[OURS] if "error" in r]
    for about, find, limit in BOUNDS:
        value = find(peers)
        if value is not None and (value < -limit if limit < 0 else value > limit):
            lines.append(f"{about}: {value:.3g}, but {'at least' if limit < 0 else 'at most'} {abs(limit):g} is wanted")
    return lines
