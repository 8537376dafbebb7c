"""How well and how fast did somebody answer lately? Per candidate; what orders and the bandit go by.

Latency is kept as the last samples of the time to the first token, successes and failures as counts that halve every two days. An
answer that came whole says more about its length than about who gave it: it counts where nobody streamed.
"""
import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gateway.core.bounded import LruMap
from gateway.routing.drift import NAME_CHARS
from gateway.routing.places import Candidate, Key, Leg

SAMPLES: Final = 64
ENOUGH: Final = 10                            # samples from which a p95 is worth more than a table of usual values
DRIFTS: Final = 1_000
HALF_LIFE_S: Final = 172_800.0
FRESH_S: Final = 600.0                        # counts this old are worth what they were
LONGEST_MS: Final = 120_000.0
_DEVIATION_MS: Final = 10.0
UNKNOWN_PACE: Final = 0.6
USUAL_RATE: Final = 60.0                      # tokens a second that are two thirds of the best
QUICK_MS: Final = 300.0
SLOW_MS: Final = 5000.0


class Record:
    """What is known of one candidate. What happened is noted and only reckoned up when somebody looks."""

    __slots__ = ("_at", "_bad", "_dirty", "_good", "_mean", "_p95", "_pace", "_rate", "_samples", "_spread", "_told", "_wholes",
                 "noted")

    def __init__(self, now: float) -> None:
        self.noted: list[tuple[bool, float, float, float]] = []      # (ok, first token in ms, tokens a second, when)
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        self._wholes: deque[float] | None = None      # of answers that came whole; noted as negative milliseconds
        self._good = self._bad = 0.0
        self._at = now
        self._dirty = False
        self._mean = self._p95 = self._spread = self._rate = 0.0
        self._told: tuple[float, float] | None = None
        self._pace: float | None = None

    def reckon(self) -> None:
        """Take in what was noted."""
        noted = self.noted
        now = noted[-1][3]                    # all of them at once: they are minutes old at most, the half-life is two days
        decay = 0.5 ** ((now - self._at) / HALF_LIFE_S) if now > self._at else 1.0
        good = sum(each[0] for each in noted)
        self._good, self._bad, self._at = self._good * decay + good, self._bad * decay + len(noted) - good, now
        for _, ms, _, _ in noted:
            if ms:
                self._sample(ms)
        for _, _, rate, _ in noted:
            if rate > 0:
                self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate
        self._pace = None
        self.noted.clear()

    def _sample(self, ms: float) -> None:
        if ms > 0:
            self._samples.append(min(ms, LONGEST_MS))
        elif ms < 0:
            if self._wholes is None:
                self._wholes = deque(maxlen=SAMPLES)
            self._wholes.append(min(-ms, LONGEST_MS))
        else:
            return                            # what is no number is no sample
        self._dirty = True
        self._told = None

    @property
    def _known(self) -> Sequence[float]:
        return self._samples or self._wholes or ()

    def samples(self, whole: bool) -> Sequence[float]:
        """Milliseconds to the first token, or to whole answers."""
        if self.noted:
            self.reckon()
        return (self._wholes or ()) if whole else self._samples

    def counts(self, now: float) -> tuple[float, float]:
        """(successes, failures), the old ones worth less."""
        if self.noted:
            self.reckon()
        age_s = now - self._at
        if age_s < FRESH_S:
            return self._good, self._bad
        decay = 0.5 ** (age_s / HALF_LIFE_S)
        return self._good * decay, self._bad * decay

    @property
    def rate(self) -> float:
        """Output tokens a second, smoothed; 0 = unknown."""
        if self.noted:
            self.reckon()
        return self._rate

    @property
    def n(self) -> int:
        if self.noted:
            self.reckon()
        return len(self._known)

    @property
    def success(self) -> float | None:
        """Share of successes, None when nothing was tried."""
        if self.noted:
            self.reckon()
        total = self._good + self._bad
        return self._good / total if total > 0 else None

    @property
    def p95_ms(self) -> float:
        self._refresh()
        return self._p95

    @property
    def mean_ms(self) -> float:
        self._refresh()
        return self._mean

    def latency(self) -> tuple[float, float] | None:
        """(p95, or the mean of few samples; standard deviation) in milliseconds; None without any sample."""
        if self.noted:
            self.reckon()
        if self._told is None and self._known:
            self._refresh()
            self._told = (self._p95 if len(self._known) >= ENOUGH else self._mean, self._spread)
        return self._told

    def pace(self) -> float:
        """Throughput and time to the first token as one number, 0 to 1; one of them stands in for the other."""
        if self.noted:
            self.reckon()
        if self._pace is None:
            through = 1 - math.exp(-self._rate / USUAL_RATE) if self._rate else None
            quick = min(max((SLOW_MS - self.mean_ms) / (SLOW_MS - QUICK_MS), 0.0), 1.0) if self._known else None
            if through is None:
                self._pace = UNKNOWN_PACE if quick is None else quick
            else:
                self._pace = through if quick is None else 0.6 * through + 0.4 * quick
        return self._pace

    def _refresh(self) -> None:
        if self.noted:
            self.reckon()
        if not self._dirty:
            return
        ordered = sorted(self._known)
        n = len(ordered)
        self._mean = sum(ordered) / n
        self._p95 = p95(ordered)
        spread = math.sqrt(sum((ms - self._mean) ** 2 for ms in ordered) / n)
        self._spread = spread if n >= ENOUGH else max(spread, _DEVIATION_MS, 0.1 * self._p95)
        self._dirty = False


def p95(ordered: Sequence[float]) -> float:
    return ordered[min(math.ceil(0.95 * len(ordered)), len(ordered)) - 1]


class Stats:
    """All records; bounded."""

    __slots__ = ("_records", "drifts")

    def __init__(self, limit: int = 20_000) -> None:
        self._records: LruMap[Key, Record] = LruMap(limit)
        self.drifts: LruMap[tuple[str, str], int] = LruMap(DRIFTS)    # (target, what it served instead) -> answers

    def drifted(self, label: str, served: str) -> bool:
        """A target served another model. Is that news?"""
        pair = (label, served[:NAME_CHARS])
        known = self.drifts.get(pair, 0)
        self.drifts.put(pair, known + 1)
        return not known

    def add(self, candidate: Candidate, ok: bool, now: float, first_s: float = 0.0, rate: float = 0.0,
            whole: bool = False) -> None:
        """One attempt: seconds to its first token (0 = none came), tokens a second (0 = unknown); ``whole``: it did not stream."""
        record = self._records.get(candidate.key)
        if record is None:
            record = Record(now)
            self._records.put(candidate.key, record)
        record.noted.append((ok, first_s * (-1000 if whole else 1000), rate, now))
        if len(record.noted) >= SAMPLES:
            record.reckon()

    def waited(self, candidate: Candidate, so_long_s: float, whole: bool) -> None:
        """It was left, silent after so long: neither good nor bad, but no reason to believe that it is quick."""
        record = self._records.get(candidate.key)
        if record is not None and so_long_s > 0:
            record.samples(whole)
            record._sample(so_long_s * (-1000 if whole else 1000))

    def usual_s(self, candidate: Candidate, whole: bool) -> float | None:
        """The p95 of its seconds to the first token (or to the whole answer), of all accounts of its model where its own are too
        few; None = not enough is known."""
        own = self._records.get(candidate.key)
        found = own.samples(whole) if own is not None else ()
        if len(found) < ENOUGH:
            records = [self._records.get(each.key) for each in candidate.target.candidates]
            found = [ms for record in records if record is not None for ms in record.samples(whole)]
        return p95(sorted(found)) / 1000 if len(found) >= ENOUGH else None

    def get(self, key: Key) -> Record | None:
        return self._records.get(key)

    def known(self) -> list[tuple[Key, Record]]:
        """Everything that was tried."""
        return list(self._records.items())

    def each(self, keys: Iterable[Key]) -> list[Record | None]:
        """The records of many, None where nothing was tried."""
        return list(map(self._records.get, keys))

    def of(self, leg: Leg, now: float) -> "Summary":
        """Of all accounts of a place together."""
        good = bad = weighed = 0.0
        n = 0
        for candidate in leg.candidates:
            record = self._records.get(candidate.key)
            if record is not None:
                more_good, more_bad = record.counts(now)
                good, bad, n = good + more_good, bad + more_bad, n + record.n
                weighed += record.mean_ms * record.n
        total = good + bad
        return Summary(good / total if total > 0 else None, weighed / n if n else None)


class Summary(NamedTuple):
    """Share of successes and mean milliseconds to the first token; None = nothing is known."""
    success: float | None
    mean_ms: float | None
