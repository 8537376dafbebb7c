"""Who may be asked now? Cooldowns and the counters behind them, per key of ``catalog``; synchronous, clock passed in.

A failure of an attempt that began before the present cooldown did says nothing new: it may lengthen the cooldown, but it
counts nowhere. Else fifty requests in flight during one hiccup would look like fifty outages.
"""
from typing import Any, Final

from gateway.core.bounded import LruMap
from gateway.core.errors import GatewayError
from gateway.routing.catalog import Candidate, Key, Target
from gateway.routing.cooldown import DAY_S, Cooldown, Facts, decide
from gateway.routing.outcomes import OUTCOMES, Outcome

WINDOW_S: Final = 900.0                       # this many failures of one model …
WINDOW_FAILURES: Final = 3
WINDOW_BENCH_S: Final = 600.0                 # … and all of its keys rest
SILENT_SHARE: Final = 0.75                    # of the retry budget: longer silence is the target's fault
SILENT_BENCH_S: Final = 300.0
# Three of these in a row from one candidate: (bench for this long; None = as after any transient failure).
STREAKS: Final[dict[str, float | None]] = {"truncated": 300.0, "empty_length": None}
STREAK: Final = 3

_TRANSIENT: Final = Outcome("key", "transient", True)


class Health:
    """The state that outlives requests and reloads. Every map is bounded; what falls out is forgotten, never wrong."""

    def __init__(self, transient_cooldown_s: float = 90.0, budget_s: float = 45.0, limit: int = 20_000) -> None:
        self.transient_cooldown_s = transient_cooldown_s
        self.budget_s = budget_s
        self._cooldowns: LruMap[Key, Cooldown] = LruMap(limit)
        self._quota_hits: LruMap[Key, list[float]] = LruMap(limit)
        self._failures: LruMap[Key, list[float]] = LruMap(limit)
        self._streaks: LruMap[Key, tuple[str, int]] = LruMap(limit)
        self._turns: LruMap[str, int] = LruMap(limit)

    def cooldown(self, candidate: Candidate, now: float) -> Cooldown | None:
        """The longest cooldown that covers this candidate: its own, its account's, its model's or its provider's."""
        cooldowns = self._cooldowns
        if not cooldowns:
            return None
        longest: Cooldown | None = None
        for key in candidate.keys:
            found = cooldowns.get(key)
            if found is None:
                continue
            if found.until <= now:
                del cooldowns[key]
            elif longest is None or found.until > longest.until:
                longest = found
        return longest

    def blocked(self, candidate: Candidate, now: float) -> tuple[float, str] | None:
        """(monotonic end, kind of the failure behind it) while the candidate rests."""
        found = self.cooldown(candidate, now)
        return None if found is None else (found.until, found.kind)

    def failed(self, candidate: Candidate, error: GatewayError, now: float, wall: float, *,
               committed: bool = False, silent_s: float = 0.0, overdue: bool = False) -> None:
        """Book a failed attempt; one that broke after its commit point (``committed``) weighs the same.

        ``silent_s``: from its start to its first token, or to its end without one. ``overdue``: our retry budget stopped it,
        which is only its fault when most of that time was its own silence.
        """
        outcome, key = OUTCOMES[error.kind], candidate.key
        silent = bool(self.budget_s) and silent_s >= SILENT_SHARE * self.budget_s
        if not outcome.moves_on or (overdue and not silent):
            return
        news = self.cooldown(candidate, now) is None
        streak = self._streak(key, error.kind, outcome) if news else 0
        if error.kind == "empty_length" and streak >= STREAK:
            outcome = _TRANSIENT
        facts = self._facts(candidate, outcome, now, news)
        found = decide(outcome.rule, error, facts, now, wall)
        if found is not None:
            self._cool(candidate.account_key if outcome.skip == "account" else key, found)
        if candidate.target.provider.loopback:
            return
        if streak >= STREAK and (bench_s := STREAKS.get(error.kind)) is not None:
            self._cool(key, Cooldown(now + bench_s, error.kind, "heuristic"))
        if error.kind == "in_band" and silent:
            self._cool(key, Cooldown(now + SILENT_BENCH_S, error.kind, "heuristic"))
        if outcome.counts and news and (found is None or found.source == "heuristic"):
            self._count(candidate.target, error.kind, now)

    def succeeded(self, candidate: Candidate, now: float = 0.0) -> None:
        """An answer: what was counted against this candidate and its model is forgotten; cooldowns run on."""
        if self._failures:
            self._failures.pop(candidate.target.key, None)
        if self._quota_hits:
            self._quota_hits.pop(candidate.key, None)
        if self._streaks:
            self._streaks.pop(candidate.key, None)

    def turn(self, target: Target) -> int:
        """Whose turn it is among the accounts of a target; the next caller gets the next one."""
        turn = self._turns.get(target.label, 0)
        self._turns[target.label] = turn + 1
        if turn == 0:
            self._turns.put(target.label, 1)
        return turn % len(target.candidates)

    def peek_turn(self, target: Target) -> int:
        """Whose turn it would be; takes nothing (explain)."""
        return self._turns.get(target.label, 0) % max(len(target.candidates), 1)

    def cleared(self, candidate: Candidate) -> None:
        """The account was changed or proved well: forget its own cooldowns."""
        for key in candidate.keys[:2]:
            self._cooldowns.pop(key, None)

    def snapshot(self, now: float) -> list[dict[str, Any]]:
        """Running cooldowns as data, soonest end first. Accounts appear by digest; "" means all."""
        rows = [{"provider": key[0], "model": key[1], "account": key[2], "kind": entry.kind, "source": entry.source,
                 "remaining_s": round(entry.until - now, 3)}
                for key, entry in self._cooldowns.items() if entry.until > now]
        return sorted(rows, key=lambda row: row["remaining_s"])

    def _cool(self, key: Key, new: Cooldown) -> None:
        running = self._cooldowns.get(key)
        if running is None or running.until < new.until:
            self._cooldowns.put(key, new)

    def _streak(self, key: Key, kind: str, outcome: Outcome) -> int:
        """How many of this kind in a row; any other failure of health ends a streak."""
        if kind not in STREAKS:
            if outcome.counts or outcome.rule != "none":
                self._streaks.pop(key, None)
            return 0
        before, count = self._streaks.get(key, ("", 0))
        count = count + 1 if before == kind else 1
        self._streaks.put(key, (kind, count))
        return count

    def _facts(self, candidate: Candidate, outcome: Outcome, now: float, news: bool) -> Facts:
        hits: list[float] = []
        if outcome.rule == "quota":
            hits = [t for t in self._quota_hits.get(candidate.key, ()) if now - t < DAY_S]
            if news:
                hits = [*hits[-3:], now]
                self._quota_hits.put(candidate.key, hits)
        target = candidate.target
        return Facts(target.provider.loopback, target.pacific, hits, self.transient_cooldown_s)

    def _count(self, target: Target, kind: str, now: float) -> None:
        times = [t for t in self._failures.get(target.key, ()) if now - t < WINDOW_S][1 - WINDOW_FAILURES:] + [now]
        self._failures.put(target.key, times)
        if len(times) >= WINDOW_FAILURES:
            self._cool(target.key, Cooldown(now + WINDOW_BENCH_S, kind, "heuristic"))
