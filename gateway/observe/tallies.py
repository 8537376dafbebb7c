"""What is counted of every finished request, for the metrics? A Journal of plain numbers; some 2 µs a request.

A row for each surface, model, provider and outcome that occurred, one for each target and end of an attempt: what a scrape wants is
summed up from them when it comes (``dump``). Rows are bounded: above that, models and providers are ``other``.
"""
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from gateway.core.call import Attempt, Call
from gateway.core.events import Usage
from gateway.observe.families import FIRST, LONG, OTHER, SHORT, Dump, Labels

MAX_ROWS: Final = 1_000
STREAM_OUTCOMES: Final = {"ok": "committed_ok", "failed": "failed_before_commit", "broken": "failed_after_commit",
                          "client_gone": "client_gone"}
# Refusals by a limit: kind of the failure -> scope; a too large body is one only where its tokens are meant.
SCOPES: Final = {"limited": "key", "budget": "budget", "shed": "inflight", "body_too_large": "request_tokens"}
TOKEN_BUDGET: Final = "request_token_budget"
MODALITIES: Final = {"images": "image", "speech": "audio", "transcriptions": "audio"}
_CACHES: Final = {"cache": "hit", "idempotency": "idempotency"}


class Spread:
    """A histogram."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def values(self) -> list[float]:
        return [*self.counts, self.sum]


class Row:
    """Requests of one surface, model, provider and outcome."""

    __slots__ = ("cache_read", "cache_write", "first", "input", "n", "output", "own", "reasoning", "streams", "took", "upstream")

    def __init__(self) -> None:
        self.n = self.streams = self.input = self.output = self.cache_read = self.cache_write = self.reasoning = 0
        self.took, self.upstream, self.own, self.first = Spread(LONG), Spread(LONG), Spread(SHORT), Spread(FIRST)

    def take(self, usage: Usage) -> None:
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cached
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning


class Tries:
    """Attempts at one target that ended alike."""

    __slots__ = ("cost_usd", "n")

    def __init__(self) -> None:
        self.n = 0
        self.cost_usd = 0.0


class Tallies:
    """``canonical``: the catalogue's id of a model by the name that a client used, "" = it has none."""

    def __init__(self) -> None:
        self.counting = True
        self.canonical: Callable[[str], str] = str
        self._rows: dict[tuple[str, str, str, str], Row] = {}
        self._tries: dict[tuple[str, str, str], Tries] = {}
        self._failovers: dict[Labels, int] = {}
        self._hedges: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._caches: dict[str, int] = {}
        self._remarks: dict[tuple[str, str], int] = {}

    def add(self, call: Call) -> None:
        if not self.counting:
            return
        attempts, ended = call.attempts, call.ended
        upstream_s = 0.0
        for attempt in attempts:
            upstream_s += attempt.upstream_s
            error = attempt.error
            key = (attempt.model, attempt.provider, "left" if attempt.hedged else "ok" if error is None else error.kind)
            tries = self._tries.get(key) or self._new_tries(key)
            tries.n += 1
            if attempt.cost_usd:
                tries.cost_usd += attempt.cost_usd
        if len(attempts) > 1:
            self._moved_on(attempts)
        if call.role:                                # no client asked for it
            return
        last = attempts[-1] if attempts else None
        if last is not None and last.hedged:
            last = next((attempt for attempt in attempts if attempt.committed), last)
        where = (call.surface, last.model, last.provider, call.outcome) if last is not None else self._unasked(call)
        row = self._rows.get(where) or self._new_row(where)
        row.n += 1
        took_s = ended - call.started
        row.took.add(took_s)
        row.own.add(max(took_s - upstream_s, 0.0))
        if last is not None:
            row.upstream.add(upstream_s)
        if call.stream:
            row.streams += 1
            if call.first_token_at:
                row.first.add(call.first_token_at - call.started)
        if call.usage is not None:
            row.take(call.usage)
        if call.error is not None or call.cache or call.remarks:
            self._answered_here(call)

    async def close(self) -> None:
        """Nothing is kept."""

    # ------------------------------------------------------------------ what is seldom
    def _moved_on(self, attempts: list[Attempt]) -> None:
        for before, after in zip(attempts, attempts[1:], strict=False):
            if after.started < before.ended:         # at the same time
                result = "lost" if after.hedged else "won" if after.committed else "failed"
                self._hedges[result] = self._hedges.get(result, 0) + 1
            elif before.error is not None:
                key = (before.provider, after.provider, before.error.kind)
                if key not in self._failovers and len(self._failovers) >= MAX_ROWS:
                    key = (OTHER, OTHER, before.error.kind)
                self._failovers[key] = self._failovers.get(key, 0) + 1

    def _answered_here(self, call: Call) -> None:
        for remark in call.remarks:
            self._remarks[remark.what, remark.action] = self._remarks.get((remark.what, remark.action), 0) + 1
        if call.cache:
            result = _CACHES[call.cache]
            self._caches[result] = self._caches.get(result, 0) + 1
        error = call.error
        scope = SCOPES.get(error.kind) if error is not None else None
        if error is not None and scope is not None and (error.kind != "body_too_large" or error.code == TOKEN_BUDGET):
            self._refused[scope] = self._refused.get(scope, 0) + 1

    def _unasked(self, call: Call) -> tuple[str, str, str, str]:
        """Nobody was asked: what the client said counts as far as the catalogue knows it."""
        name = call.request.model if call.request is not None else ""
        return call.surface, (name and self.canonical(name)) or OTHER, call.cache or "none", call.outcome

    def _new_row(self, key: tuple[str, str, str, str]) -> Row:
        if len(self._rows) >= MAX_ROWS:
            key = (key[0], OTHER, OTHER, key[3])
        return self._rows.setdefault(key, Row())

    def _new_tries(self, key: tuple[str, str, str]) -> Tries:
        if len(self._tries) >= MAX_ROWS:
            key = (OTHER, OTHER, key[2])
        return self._tries.setdefault(key, Tries())

    # ------------------------------------------------------------------ the scrape
    def dump(self) -> Dump:
        """May be called in a thread: counting goes on meanwhile, and what is counted just now may show in part."""
        sums = _Sums()
        for (surface, model, provider, outcome), row in list(self._rows.items()):
            sums.add("gateway_requests_total", (surface, model, provider, outcome), [row.n])
            sums.add("gateway_request_seconds", (surface, model, provider), row.took.values)
            sums.add("gateway_overhead_seconds", (surface,), row.own.values)
            if any(row.upstream.counts):
                sums.add("gateway_upstream_seconds", (model, provider), row.upstream.values)
            if any(row.first.counts):
                sums.add("gateway_ttft_seconds", (model, provider), row.first.values)
            if row.streams and (ended := STREAM_OUTCOMES.get(outcome)):
                sums.add("gateway_stream_outcomes_total", (ended,), [row.streams])
            _tokens(sums, row, MODALITIES.get(surface, "text"))
        for (model, provider, outcome), tries in list(self._tries.items()):
            sums.add("gateway_attempts_total", (model, provider, outcome), [tries.n])
            sums.add("gateway_cost_usd_total", (model, provider), [tries.cost_usd])
        for name, counts in (("gateway_hedges_total", self._hedges), ("gateway_limit_rejections_total", self._refused),
                             ("gateway_cache_total", self._caches)):
            for label, n in list(counts.items()):
                sums.add(name, (label,), [n])
        for labels, n in list(self._failovers.items()):
            sums.add("gateway_failovers_total", labels, [n])
        for what, n in list(self._remarks.items()):
            sums.add("gateway_guards_total", what, [n])
        return sums.dump()


def _tokens(sums: "_Sums", row: Row, modality: str) -> None:
    """Inputs include what was cached, outputs what was thought: told apart here, so that they add up."""
    fresh = max(row.input - row.cache_read - row.cache_write, 0)
    thought = min(row.reasoning, row.output)
    for direction, kind, cached, n in (("input", modality, "no", fresh), ("input", modality, "read", row.cache_read),
                                       ("input", modality, "write", row.cache_write),
                                       ("output", modality, "no", row.output - thought), ("output", "reasoning", "no", thought)):
        if n:
            sums.add("gateway_tokens_total", (direction, kind, cached), [n])


class _Sums:
    """Values by family and labels, added up."""

    def __init__(self) -> None:
        self._found: dict[str, dict[Labels, list[float]]] = {}

    def add(self, name: str, labels: Labels, values: Iterable[float]) -> None:
        rows = self._found.setdefault(name, {})
        found = rows.get(labels)
        if found is None:
            rows[labels] = list(values)
        else:
            found[:] = [a + b for a, b in zip(found, values, strict=True)]

    def dump(self) -> Dump:
        return {name: list(rows.items()) for name, rows in self._found.items()}
