"""What went through in the last hours, minute by minute? Counts, tokens, latencies and who answered, in memory, for the page's charts.

Independent of the store: what it shows is this process since its start. Adding a call costs 2.5 µs; a minute is a few hundred
bytes, and the oldest go.
"""
import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.core.call import Call

MINUTES: Final = 360
MAX_NAMES: Final = 200                               # models or providers of one minute; the rest is "other"
OTHER: Final = "other"
_STEP: Final = math.log(1.15)                        # a latency is known to 7 percent


class Spread:
    """A histogram of milliseconds whose steps grow by 15 percent."""

    __slots__ = ("counts", "n", "sum_ms")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.n = 0
        self.sum_ms = 0.0

    def add(self, ms: float) -> None:
        step = int(math.log(ms) / _STEP) if ms > 1.0 else 0
        self.counts[step] = self.counts.get(step, 0) + 1
        self.n += 1
        self.sum_ms += ms

    def merge(self, other: "Spread") -> None:
        for step, n in other.counts.items():
            self.counts[step] = self.counts.get(step, 0) + n
        self.n += other.n
        self.sum_ms += other.sum_ms

    @property
    def data(self) -> list[Any]:
        return [self.n, self.sum_ms, list(self.counts.items())]

    @classmethod
    def of(cls, data: list[Any]) -> "Spread":
        made = cls()
        made.n, made.sum_ms, made.counts = data[0], data[1], dict(data[2])
        return made

    def quantile(self, share: float) -> float | None:
        """Milliseconds below which this share lies; None without any."""
        left = share * self.n
        for step in sorted(self.counts):
            left -= self.counts[step]
            if left <= 0:
                return round(math.exp((step + 0.5) * _STEP), 1)
        return None


class Tally(msgspec.Struct):
    """What one model took in a minute."""
    requests: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float = 0.0


class Minute:
    """One minute. ``at`` is its number since the epoch."""

    __slots__ = ("at", "attempts", "cached", "cost_usd", "errors", "failovers", "first", "input", "models", "outcomes", "output",
                 "providers", "requests", "took")

    def __init__(self, at: int) -> None:
        self.at = at
        self.requests = self.attempts = self.failovers = self.input = self.output = self.cached = 0
        self.cost_usd = 0.0
        self.outcomes: dict[str, int] = {}
        self.errors: dict[str, int] = {}
        self.models: dict[str, Tally] = {}
        self.providers: dict[str, list[int]] = {}    # [answers, failures]
        self.took = Spread()
        self.first = Spread()


    @classmethod
    def of(cls, data: dict[str, Any]) -> "Minute":
        """What ``Series.data`` says of it."""
        made = cls(data["at"])
        for name, value in data.items():
            if name not in _STRUCTURED:
                setattr(made, name, value)
        made.models = {name: msgspec.convert(tally, Tally) for name, tally in data["models"].items()}
        made.took, made.first = Spread.of(data["took"]), Spread.of(data["first"])
        return made


_STRUCTURED: Final = frozenset({"at", "first", "models", "took"})


class Series:
    """A Journal that only counts."""

    def __init__(self, minutes: int = MINUTES) -> None:
        self._minutes: OrderedDict[int, Minute] = OrderedDict()
        self._limit = minutes
        self.counting = True                         # somebody may look
        self.total = 0                               # requests since the start
        self.total_failed = 0

    def add(self, call: Call) -> None:
        if not self.counting:
            return
        at = int((call.wall + call.ended - call.started) // 60)
        minute = self._minutes.get(at) or self._begin(at)
        if call.role:                                # no client asked for it: it only costs
            minute.cost_usd += call.cost_usd or 0.0
            return
        self.total += 1
        minute.requests += 1
        minute.outcomes[call.outcome] = minute.outcomes.get(call.outcome, 0) + 1
        minute.took.add((call.ended - call.started) * 1000)
        if call.first_token_at:
            minute.first.add((call.first_token_at - call.started) * 1000)
        for hop in call.attempts:
            minute.attempts += 1
            row = _row(minute.providers, hop.provider)
            if hop.hedged:
                continue                             # it was left: neither an answer nor a failure
            if hop.error is None:
                row[0] += 1
            elif hop.error.kind != "client_gone":
                row[1] += 1
                minute.errors[hop.error.kind] = minute.errors.get(hop.error.kind, 0) + 1
                minute.failovers += not hop.committed
        tally = _tally(minute.models, call.routed or (call.attempts[-1].label if call.attempts else ""))
        tally.requests += 1
        if call.outcome in ("failed", "broken") and not call.refused:
            tally.failed += 1
            self.total_failed += 1
        if (usage := call.usage) is not None:
            minute.input += usage.input
            minute.output += usage.output
            minute.cached += usage.cached
            tally.input += usage.input
            tally.output += usage.output
        if (cost_usd := call.cost_usd) is not None:
            minute.cost_usd += cost_usd
            tally.cost_usd += cost_usd

    def since(self, wall: float, minutes: int) -> Iterator[Minute]:
        """The minutes of that time in which something happened, oldest first."""
        first = int(wall // 60) - minutes + 1
        return iter(sorted((minute for at, minute in self._minutes.items() if at >= first), key=lambda minute: minute.at))

    def data(self, wall: float, minutes: int) -> list[dict[str, Any]]:
        """The same as plain data, for another worker."""
        return [{**{name: getattr(minute, name) for name in Minute.__slots__ if name not in _STRUCTURED}, "at": minute.at,
                 "models": {name: msgspec.to_builtins(tally) for name, tally in minute.models.items()},
                 "took": minute.took.data, "first": minute.first.data} for minute in self.since(wall, minutes)]

    async def close(self) -> None:
        """Nothing is kept."""

    def _begin(self, at: int) -> Minute:
        minute = self._minutes[at] = Minute(at)
        while len(self._minutes) > self._limit:
            self._minutes.popitem(last=False)
        return minute


def _row(rows: dict[str, list[int]], name: str) -> list[int]:
    found = rows.get(name)
    if found is None:
        found = rows.setdefault(name if len(rows) < MAX_NAMES else OTHER, [0, 0])
    return found


def _tally(rows: dict[str, Tally], name: str) -> Tally:
    found = rows.get(name)
    if found is None:
        found = rows.setdefault(name if len(rows) < MAX_NAMES else OTHER, Tally())
    return found
