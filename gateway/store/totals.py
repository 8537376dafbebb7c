"""How much was it, by whom and when? What the roll-ups say: sums by model, provider, key or client, and how times are spread.

``read`` and times as in ``store.reading``. Steps are "hour", "day", or "" for one sum over all of the time. A time within an
hour counts from the beginning of that hour (with the step "day", of that day).
"""
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from gateway.store.reading import FOREVER, Read
from gateway.store.rollups import ATTEMPTS, DAY_S, HOUR_S, USAGE, middle

Step = Literal["", "hour", "day"]
Dimension = Literal["provider", "model", "key", "client"]
DIMENSIONS: Final[tuple[Dimension, ...]] = ("provider", "model", "key", "client")
MAX_ROWS: Final = 20_000
QUANTILES: Final = (0.5, 0.9, 0.95, 0.99)
_DECIMAL: Final = frozenset({"cost_usd", "latency_ms", "upstream_ms"})


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of one group. ``at``: where its hour or day begins (0 = over all). ``unpriced``: requests whose cost is unknown; the
    cost is that of the others. ``latency_ms`` and ``upstream_ms`` are sums too: divide by ``requests``."""
    at: int = 0
    provider: str = ""
    model: str = ""
    key: str = ""
    client: str = ""
    requests: int = 0
    ok: int = 0
    gone: int = 0                                # clients that left
    attempts: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    latency_ms: float = 0.0
    upstream_ms: float = 0.0
    bytes_out: int = 0
    refused: int = 0                             # not let in, or wrong themselves: nobody failed

    @property
    def failed(self) -> int:
        return self.requests - self.ok - self.gone - self.refused


class FaringRow(msgspec.Struct, frozen=True, kw_only=True):
    """How one target fared: attempts that ended with this error ("" = well)."""
    at: int = 0
    provider: str = ""
    model: str = ""
    error: str = ""
    attempts: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    upstream_ms: float = 0.0


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles in milliseconds of answered requests, to a twentieth; ``measure``: latency, ttft or overhead."""
    measure: str
    at: int = 0
    provider: str = ""
    model: str = ""
    n: int = 0
    p50: float = 0.0
    p90: float = 0.0
    p95: float = 0.0
    p99: float = 0.0


async def usage(read: Read, by: Sequence[Dimension] = (), since: float = 0.0, until: float = 0.0, step: Step = "",
                only: dict[Dimension, str] | None = None) -> list[UsageRow]:
    """Sums by these dimensions and by time, in the order of time and then of requests, most first. ``only``: of these alone."""
    table, span = ("usage_daily", DAY_S) if step == "day" else ("usage_hourly", HOUR_S)
    groups = (*(("at",) if step else ()), *(name for name in DIMENSIONS if name in by))
    where, values = _window(since, until, span)
    for name in DIMENSIONS:
        if only and name in only:
            where += f" AND {name} = ?"
            values.append(only[name])
    order = ", ".join([*(("at",) if step else ()), "requests DESC", *(name for name in groups if name != "at")])
    sql = f"SELECT {', '.join([*groups, *map(_sum, USAGE)])} FROM {table} WHERE {where}{_grouped(groups)} ORDER BY {order} LIMIT ?"
    found = await read(sql, (*values, MAX_ROWS))
    return [UsageRow(**dict(zip((*groups, *USAGE), row, strict=True))) for row in found if row[-1] is not None]


async def totals(read: Read, since: float = 0.0, until: float = 0.0, only: dict[Dimension, str] | None = None) -> UsageRow:
    """One sum of everything."""
    found = await usage(read, (), since, until, "", only)
    return found[0] if found else UsageRow()


async def fared(read: Read, since: float = 0.0, until: float = 0.0, step: Step = "", by_model: bool = True) -> list[FaringRow]:
    """Attempts by provider (and model) and error: what failed where, and how often."""
    groups = (*(("at",) if step else ()), "provider", *(("model",) if by_model else ()), "error")
    where, values = _window(since, until, HOUR_S)
    shown = [("at - at % 86400 AS at" if name == "at" and step == "day" else name) for name in groups]
    grouped = ["at - at % 86400" if name == "at" and step == "day" else name for name in groups]
    sql = (f"SELECT {', '.join([*shown, *map(_sum, ATTEMPTS)])} FROM attempts_hourly WHERE {where} "
           f"GROUP BY {', '.join(grouped)} ORDER BY {', '.join(grouped)} LIMIT ?")
    return [FaringRow(**dict(zip((*groups, *ATTEMPTS), row, strict=True))) for row in await read(sql, (*values, MAX_ROWS))]


async def timings(read: Read, since: float = 0.0, until: float = 0.0, step: Step = "", by: Sequence[Dimension] = (),
                  only: dict[Dimension, str] | None = None) -> list[Timing]:
    """Percentiles over time, by provider and model if asked."""
    groups = (*(("at",) if step else ()), *(name for name in ("provider", "model") if name in by), "measure")
    where, values = _window(since, until, HOUR_S)
    for name in ("provider", "model"):
        if only and name in only:
            where += f" AND {name} = ?"
            values.append(only[name])
    sql = (f"SELECT {', '.join(groups)}, bucket, {_sum('n')} FROM timings_hourly WHERE {where} "
           f"GROUP BY {', '.join(groups)}, bucket ORDER BY {', '.join(groups)}, bucket LIMIT ?")
    spreads: dict[tuple[Any, ...], dict[int, int]] = {}
    for *place, bucket, n in await read(sql, (*values, MAX_ROWS)):
        if step == "day":
            place[0] -= place[0] % DAY_S
        spread = spreads.setdefault(tuple(place), {})
        spread[bucket] = spread.get(bucket, 0) + n
    return [msgspec.convert(dict(zip(groups, place, strict=True)) | quantiles(spread), Timing) for place, spread in spreads.items()]


def quantiles(spread: dict[int, int]) -> dict[str, float]:
    """How many, and percentiles by the buckets' middles."""
    total, seen, at = sum(spread.values()), 0, 0
    out = {"n": total, "p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0}
    for bucket in sorted(spread):
        seen += spread[bucket]
        while at < len(QUANTILES) and seen >= QUANTILES[at] * total:
            out[f"p{QUANTILES[at] * 100:.0f}"] = round(middle(bucket), 2)
            at += 1
    return out


def _window(since: float, until: float, span: int) -> tuple[str, list[Any]]:
    return "at >= ? AND at < ?", [int(since) // span * span, int(until) if until else FOREVER]


def _sum(name: str) -> str:
    return f"sum({name}) AS {name}" if name in _DECIMAL else f"CAST(sum({name}) AS BIGINT) AS {name}"


def _grouped(groups: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(groups)}" if groups else ""
