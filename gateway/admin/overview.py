"""How is the gateway doing? Totals, rates and latencies of the last hours, and the curves behind them."""
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.observe.series import Minute, Spread, Tally

TOP: Final = 12
POINTS: Final = 180                              # of a curve; longer spans are taken together
GOOD: Final = frozenset({"ok", "client_gone"})


class Span(Ask, frozen=True):
    """Which time to look at."""
    minutes: Annotated[int, msgspec.Meta(ge=5, le=360, description="How far back.")] = 60


class Latency(Facts, frozen=True):
    """Milliseconds; null without any."""
    p50: float | None
    p95: float | None
    p99: float | None


class Curves(Facts, frozen=True):
    """One value for each step; a step is ``step_s`` long and begins at ``at`` (epoch seconds)."""
    step_s: int
    at: list[int]
    requests: list[int]
    failed: list[int]
    failovers: list[int]
    p50_ms: list[float | None]
    p95_ms: list[float | None]
    ttft_p50_ms: list[float | None]
    ttft_p95_ms: list[float | None]
    input_tokens: list[int]
    output_tokens: list[int]
    cost_usd: list[float]


class ModelRow(Facts, frozen=True):
    """What one target answered."""
    target: str
    requests: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_usd: float


class Overview(Facts, frozen=True):
    """All workers of this machine, in the time that was asked for."""
    version: str
    uptime_s: int
    now: float
    draining: bool
    store_reachable: bool
    in_flight: int
    providers: int
    models: int
    combos: int
    keys: int
    total_requests: int                          # since the start
    requests: int
    outcomes: dict[str, int]
    errors: dict[str, int]                       # failed attempts by kind
    success: float | None
    requests_per_minute: float
    attempts: int
    failovers: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float
    latency: Latency
    ttft: Latency
    top: list[ModelRow]
    curves: Curves


async def overview(visit: Errand) -> Overview:
    office, ground, n = visit.office, visit.ground, visit.query.minutes
    wall = ground.clock.wall()
    told = await office.others("overview", n)
    minutes = [*office.series.since(wall, n), *(Minute.of(row) for other in told for row in other["minutes"])]
    outcomes, errors = _summed(minute.outcomes for minute in minutes), _summed(minute.errors for minute in minutes)
    requests = sum(minute.requests for minute in minutes)
    judged = requests - outcomes.get("refused", 0)
    return Overview(
        version=office.place.version, uptime_s=int(ground.clock.now() - office.place.started), now=wall,
        draining=ground.inflight.draining, store_reachable=ground.store.reachable,
        in_flight=ground.inflight.count + sum(other["in_flight"] for other in told),
        providers=len(ground.catalog.providers), models=len(ground.catalog.targets), combos=len(ground.catalog.combos),
        keys=len(ground.keys.principals), total_requests=office.series.total + sum(other["total"] for other in told),
        requests=requests, outcomes=outcomes, errors=errors,
        success=sum(outcomes.get(name, 0) for name in GOOD) / judged if judged else None,
        requests_per_minute=round(requests / n, 2), attempts=sum(m.attempts for m in minutes),
        failovers=sum(m.failovers for m in minutes), input_tokens=sum(m.input for m in minutes),
        output_tokens=sum(m.output for m in minutes), cached_tokens=sum(m.cached for m in minutes),
        cost_usd=sum(m.cost_usd for m in minutes), latency=_latency(merged(m.took for m in minutes)),
        ttft=_latency(merged(m.first for m in minutes)), top=top(minutes), curves=curves(minutes, wall, n))


def curves(minutes: list[Minute], wall: float, n: int) -> Curves:
    """Every step of the span, also those in which nothing happened."""
    width = -(-n // POINTS)
    last = int(wall // 60)
    first = last - n + 1
    steps: list[list[Minute]] = [[] for _ in range(-(-n // width))]
    for minute in minutes:
        if minute.at <= last:
            steps[(minute.at - first) // width].append(minute)
    took, began = [merged(m.took for m in step) for step in steps], [merged(m.first for m in step) for step in steps]
    return Curves(
        step_s=width * 60, at=[(first + place * width) * 60 for place in range(len(steps))],
        requests=[sum(m.requests for m in step) for step in steps],
        failed=[sum(m.outcomes.get("failed", 0) + m.outcomes.get("broken", 0) for m in step) for step in steps],
        failovers=[sum(m.failovers for m in step) for step in steps],
        p50_ms=[each.quantile(0.5) for each in took], p95_ms=[each.quantile(0.95) for each in took],
        ttft_p50_ms=[each.quantile(0.5) for each in began], ttft_p95_ms=[each.quantile(0.95) for each in began],
        input_tokens=[sum(m.input for m in step) for step in steps], output_tokens=[sum(m.output for m in step) for step in steps],
        cost_usd=[sum(m.cost_usd for m in step) for step in steps])


def top(minutes: list[Minute]) -> list[ModelRow]:
    """The targets that answered most."""
    found: dict[str, Tally] = {}
    for minute in minutes:
        for name, tally in minute.models.items():
            if name:
                into = found.setdefault(name, Tally())
                for field in Tally.__struct_fields__:
                    setattr(into, field, getattr(into, field) + getattr(tally, field))
    rows = sorted(found.items(), key=lambda row: -row[1].requests)[:TOP]
    return [ModelRow(target=name, requests=t.requests, failed=t.failed, input_tokens=t.input, output_tokens=t.output,
                     cost_usd=t.cost_usd) for name, t in rows]


def merged(spreads: Iterable[Spread]) -> Spread:
    out = Spread()
    for each in spreads:
        out.merge(each)
    return out


def _latency(spread: Spread) -> Latency:
    return Latency(p50=spread.quantile(0.5), p95=spread.quantile(0.95), p99=spread.quantile(0.99))


def _summed(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for each in counts:
        for name, n in each.items():
            out[name] = out.get(name, 0) + n
    return out
