"""What outlives the rows? Sums by hour and by day, and how times are spread, added up batch by batch."""
from collections.abc import Iterable
from math import log
from typing import Any, Final

from gateway.core.call import Attempt, Call

HOUR_S: Final = 3_600
DAY_S: Final = 86_400
STEP: Final = 1.1                # between two buckets: a percentile is off by a twentieth at most
_LOG: Final = log(STEP)
MEASURES: Final = ("latency", "overhead", "ttft")
SPAN: Final = 1_000              # more than there are buckets: 1.1 ** 1000 is 10 ** 41

USAGE_KEY: Final = ("at", "provider", "model", "key", "client")
USAGE: Final = ("requests", "ok", "gone", "attempts", "input", "output", "cached", "cache_write", "reasoning", "cost_usd",
                "unpriced", "latency_ms", "upstream_ms", "bytes_out", "refused")
ATTEMPTS_KEY: Final = ("at", "provider", "model", "error")
ATTEMPTS: Final = ("attempts", "input", "output", "cost_usd", "unpriced", "upstream_ms")
TIMINGS_KEY: Final = ("at", "provider", "model", "measure", "bucket")

Sums = dict[tuple[Any, ...], list[Any]]


def added(table: str, key: tuple[str, ...], sums: tuple[str, ...]) -> str:
    """A row whose sums are added to what is there."""
    columns = (*key, *sums)
    return (f"INSERT INTO {table} AS old ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{name} = old.{name} + excluded.{name}' for name in sums)}")


ADD_HOUR: Final = added("usage_hourly", USAGE_KEY, USAGE)
ADD_DAY: Final = added("usage_daily", USAGE_KEY, USAGE)
ADD_ATTEMPTS: Final = added("attempts_hourly", ATTEMPTS_KEY, ATTEMPTS)
ADD_TIMINGS: Final = added("timings_hourly", TIMINGS_KEY, ("n",))


def statements(calls: Iterable[Call]) -> list[tuple[str, tuple[Any, ...], list[Any]]]:
    """What these requests add: (SQL, key, sums), few however many they are. In the order of their keys, so that two writers of
    one database never wait for each other crosswise."""
    usage: Sums = {}
    attempts: Sums = {}
    spreads: dict[tuple[Any, ...], dict[int, int]] = {}
    for call in calls:
        hour = int(call.wall) // HOUR_S * HOUR_S
        target = call.answering
        provider, model = (target.provider, target.model) if target is not None else ("", "")
        _use(call, usage, (hour, provider, model, call.principal, call.client))
        for one in call.attempts:
            _try(one, attempts, (hour, one.provider, one.model, one.error.kind if one.error is not None else ""))
        if call.outcome == "ok" and target is not None:
            spread = spreads.get((hour, provider, model))
            _time(call, spreads.setdefault((hour, provider, model), {}) if spread is None else spread)
    days: Sums = {}
    for (hour, *rest), sums in usage.items():
        add(days, (hour - hour % DAY_S, *rest), sums)
    timings = {(*place, MEASURES[which // SPAN], which % SPAN): [n]
               for place, spread in spreads.items() for which, n in spread.items()}
    tables = ((ADD_HOUR, usage), (ADD_DAY, days), (ADD_ATTEMPTS, attempts), (ADD_TIMINGS, timings))
    return [(sql, key, table[key]) for sql, table in tables for key in sorted(table)]


def _use(call: Call, usage: Sums, key: tuple[Any, ...]) -> None:
    sums = usage.get(key)
    if sums is None:
        sums = usage[key] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0.0, 0.0, 0, 0]
    sums[0] += 1
    if call.outcome == "ok":
        sums[1] += 1
    elif call.outcome == "client_gone":
        sums[2] += 1
    sums[3] += len(call.attempts)
    if (told := call.usage) is not None:
        sums[4] += told.input
        sums[5] += told.output
        sums[6] += told.cached
        sums[7] += told.cache_write
        sums[8] += told.reasoning
    if call.cost_usd is None:
        sums[10] += 1
    else:
        sums[9] += call.cost_usd
    sums[11] += max(call.ended - call.started, 0.0) * 1_000
    sums[12] += call.upstream_s * 1_000
    sums[13] += call.bytes_out
    if call.refused:
        sums[14] += 1


def _try(attempt: Attempt, attempts: Sums, key: tuple[Any, ...]) -> None:
    sums = attempts.get(key)
    if sums is None:
        sums = attempts[key] = [0, 0, 0, 0.0, 0, 0.0]
    sums[0] += 1
    if (took := attempt.usage) is not None:
        sums[1] += took.input
        sums[2] += took.output
    if attempt.cost_usd is None:
        sums[4] += 1
    else:
        sums[3] += attempt.cost_usd
    sums[5] += attempt.upstream_s * 1_000


def _time(call: Call, spread: dict[int, int]) -> None:
    """By the measure's place among ``MEASURES`` and its bucket in one number: a third of the cost of a pair."""
    took_s = call.ended - call.started
    which = bucket(took_s * 1_000)
    spread[which] = spread.get(which, 0) + 1
    which = SPAN + bucket((took_s - call.upstream_s) * 1_000)
    spread[which] = spread.get(which, 0) + 1
    if call.first_token_at:
        which = 2 * SPAN + bucket((call.first_token_at - call.started) * 1_000)
        spread[which] = spread.get(which, 0) + 1


def add(sums: Sums, key: tuple[Any, ...], values: list[Any]) -> None:
    old = sums.get(key)
    sums[key] = list(values) if old is None else [a + b for a, b in zip(old, values, strict=True)]


def bucket(value_ms: float) -> int:
    """A hundredth of a millisecond is the least that is told apart."""
    return int(log(value_ms * 100) / _LOG) if value_ms > 0.01 else 0


def middle(number: int) -> float:
    """The time in ms that a bucket stands for."""
    return float(STEP ** (number + 0.5) / 100)
