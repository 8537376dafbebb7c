"""Who may be asked now? Cooldowns, breakers and the counters behind them, by the keys of ``places``; synchronous, clock passed in.

A failure of an attempt that began before the present cooldown did says nothing new: it may lengthen the cooldown, but it
counts nowhere. Else fifty requests in flight during one hiccup would look like fifty outages. And when a cooldown is over, one
request tries before the others follow (``admits``): who comes back is not trampled.
"""
from collections.abc import Callable, KeysView, Mapping, Sequence
from typing import Any, Final, Literal

from gateway.core.bounded import LruMap
from gateway.core.errors import GatewayError
from gateway.core.ports import Dice
from gateway.providers.wording import retirement
from gateway.routing.breaker import Breaker, State, profile
from gateway.routing.cooldown import DAY_S, RECENT_S, Cooldown, Facts, decide
from gateway.routing.learned import Learned
from gateway.routing.memory import Memory
from gateway.routing.outcomes import OUTCOMES, Outcome
from gateway.routing.places import Candidate, Key, Target
from gateway.routing.quota import Quotas
from gateway.routing.resting import Cooldowns
from gateway.routing.stats import Stats

WINDOW_S: Final = 900.0                       # this many failures of one model …
WINDOW_FAILURES: Final = 3
WINDOW_BENCH_S: Final = 600.0                 # … and all of its keys rest; twice as long when it happens again, …
WINDOW_BENCH_MAX_S: Final = 1800.0            # … this long at most
SILENT_SHARE: Final = 0.75                    # of the retry budget: longer silence is the target's fault
SILENT_BENCH_S: Final = 300.0
# Three of these in a row from one candidate: (bench for this long; None = as after any transient failure).
STREAKS: Final[dict[str, float | None]] = {"truncated": 300.0, "empty_length": None}
STREAK: Final = 3
TRIAL_S: Final = 20.0                         # a trial that said nothing for so long does not hold up the next
PROBABLE_S: Final = 3600.0                    # two hints within it that a model is gone
DEGRADED_PROVIDERS: Final = 3
DEGRADED_AFTER_S: Final = 60.0
NORMAL_AFTER_S: Final = 120.0
_TRANSIENT: Final = Outcome("key", "transient", True)
_BACKS_OFF: Final = frozenset({"transient", "quota"})

Trial = Literal["free", "mine", "soft", "hard"]


class Usable:
    """Less than half of three or more providers usable for a minute: degraded, nobody explores; back after two minutes above."""

    __slots__ = ("_since", "degraded")

    def __init__(self) -> None:
        self.degraded = False
        self._since: float | None = None      # when the other state was first seen

    def note(self, usable: int, present: int, now: float) -> bool:
        below = present >= DEGRADED_PROVIDERS and usable * 2 < present
        if below == self.degraded:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= (DEGRADED_AFTER_S if below else NORMAL_AFTER_S):
            self.degraded, self._since = below, None
        return self.degraded


class Health:
    """The state that outlives requests and reloads. Every map is bounded; what falls out is forgotten, never wrong."""

    def __init__(self, transient_cooldown_s: float = 90.0, budget_s: float = 45.0, limit: int = 20_000,
                 dice: Dice | None = None) -> None:
        self.transient_cooldown_s = transient_cooldown_s
        self.budget_s = budget_s
        self.dice = dice
        self.memory = Memory()
        self.stats = Stats(limit)
        self.quotas = Quotas(limit)
        self.learned = Learned()
        # Shares used of accounts' own limits.
        self.usage: Callable[[Sequence[Key], float], list[float]] | None = None
        self.breakers: LruMap[str, Breaker] = LruMap(limit)
        self.changed: set[tuple[str, Key]] = set()                   # (book, key) since the last save (keep.py)
        self._cooldowns = Cooldowns(limit)
        self.levels: LruMap[Key, tuple[int, float]] = LruMap(limit)      # (failures in a row, end of the last cooldown)
        self._failures: LruMap[Key, list[float]] = LruMap(limit)
        self._lockouts: LruMap[Key, int] = LruMap(limit)
        self._gone: LruMap[Key, float] = LruMap(limit)
        self._streaks: LruMap[Key, tuple[str, int]] = LruMap(limit)
        self.trials: LruMap[Key, float] = LruMap(limit)             # back from a cooldown -> until when somebody tries
        self._probes: LruMap[Key, float] = LruMap(limit)             # asked although it rested
        self._turns: LruMap[str, int] = LruMap(limit)
        self._usable = Usable()

    # ---------------------------------------------------------------- questions
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

    def all_resting(self, now: float) -> KeysView[Key]:
        """Keys that rest now; for orders, which look at many candidates at one instant."""
        return self._cooldowns.running(now)

    def blocked(self, candidate: Candidate, now: float) -> tuple[float, str] | None:
        """(monotonic end, kind of the failure behind it) while the candidate rests."""
        found = self.cooldown(candidate, now)
        return None if found is None else (found.until, found.kind)

    def trial(self, candidate: Candidate, now: float) -> Trial:
        """``free``: nothing to prove. ``mine``: it comes back and nobody tries yet. ``soft``, ``hard``: somebody tries just now;
        the others wait where somebody else can be asked (soft), or in any case (hard: a whole provider)."""
        trials = self.trials
        if not trials:
            return "free"
        found: Trial = "free"
        for key in candidate.keys:
            until = trials.get(key)
            if until is not None:
                if until > now:
                    return "hard" if key is candidate.target.provider_key or not (key[1] or key[2]) else "soft"
                found = "mine"
        return found

    def trial_end(self, candidate: Candidate) -> float:
        return max((self.trials.get(key, 0.0) for key in candidate.keys), default=0.0)

    def probing(self, candidate: Candidate, now: float) -> bool:
        """May it be asked although it rests, because nobody else is left? Only what we guessed may be tried again, only after
        half of the guess, and by one request at a time."""
        found = self.cooldown(candidate, now)
        return found is not None and found.source == "heuristic" and OUTCOMES[found.kind].rule in _BACKS_OFF \
            and now >= (found.since + found.until) / 2 and self.trial(candidate, now) in ("free", "mine")

    def breaker(self, target: Target, now: float) -> State:
        found = self.breakers.get(target.provider.id)
        return found.state(profile(target.provider), now) if found is not None else "closed"

    def level(self, candidate: Candidate) -> int:
        """How often it failed in a row."""
        return self.levels.get(candidate.key, (0, 0.0))[0]

    def degraded(self, usable: int, present: int, now: float) -> bool:
        """Is the house as a whole in trouble? ``usable`` of ``present`` providers may be asked, in the caller's view."""
        return self._usable.note(usable, present, now)

    def headroom(self, candidate: Candidate, now: float) -> float:
        """What is left of the account's tightest quota, 1 when nothing is known."""
        used = self.quotas.used(candidate.account_key, now) if self.quotas else 0.0
        if self.usage is not None:
            used = max(used, self.usage((candidate.account_key,), now)[0])
        return 1.0 - used

    def headrooms(self, accounts: Sequence[Key], now: float) -> list[float]:
        """The same of many accounts at one instant."""
        shares = [0.0] * len(accounts) if self.usage is None else self.usage(accounts, now)
        if not self.quotas:
            return [1.0 - share for share in shares]
        return [1.0 - (share if found is None or found.share < share else found.share)
                for found, share in zip(self.quotas.standings(accounts, now), shares, strict=True)]

    # ---------------------------------------------------------------- events
    def asked(self, candidate: Candidate, now: float) -> None:
        """An attempt begins: if the candidate is coming back, it is the trial."""
        for key in candidate.keys:
            if key in self.trials:
                self.trials[key] = now + TRIAL_S
        if self._cooldowns and self.cooldown(candidate, now) is not None:
            self._probes.put(candidate.key, now)
            self.trials.put(candidate.key, now + TRIAL_S)

    def released(self, candidate: Candidate) -> None:
        """The attempt said nothing (the client left, no room): the next may try."""
        for key in candidate.keys:
            if key in self.trials:
                self.trials[key] = 0.0

    def failed(self, candidate: Candidate, error: GatewayError, now: float, wall: float, *, committed: bool = False,
               silent_s: float = 0.0, overdue: bool = False, tokens: int = 0) -> None:
        """Book a failed attempt; one that broke after its commit point (``committed``) weighs the same.

        ``silent_s``: from its start to its first token, or to its end without one. ``overdue``: our retry budget stopped it,
        which is only its fault when most of that time was its own silence. ``tokens``: the size of the request.
        """
        outcome, key = OUTCOMES[error.kind], candidate.key
        self.released(candidate)
        silent = bool(self.budget_s) and silent_s >= SILENT_SHARE * self.budget_s
        if not outcome.moves_on or (overdue and not silent):
            return
        if outcome.counts or outcome.rule in _BACKS_OFF:
            self.stats.add(candidate, False, now)
        if (error.hint or error.kind == "context_too_large") and self.learned.learn(candidate, error, tokens, now):
            self.changed.add(("learned", candidate.key))
            self.changed.add(("learned", candidate.target.key))
        news = self._probes.pop(key, None) is not None or self.cooldown(candidate, now) is None
        streak = self._streak(key, error.kind, outcome) if news else 0
        if error.kind == "empty_length" and streak >= STREAK:
            outcome = _TRANSIENT
        self._cool_down(candidate, error, outcome, now, wall, news, streak, silent)
        if outcome.skip == "provider" and outcome.moves_on and error.retry_after_s is None:
            self._trip(candidate, error.kind, now)
        if error.kind == "model_not_found":
            self._retire(candidate.target, error, now)

    def succeeded(self, candidate: Candidate, now: float = 0.0, *, first_s: float = 0.0, rate: float = 0.0,
                  tokens: int = 0, whole: bool = False) -> None:
        """An answer: what was counted against this candidate and its model is forgotten; cooldowns run on."""
        key, target = candidate.key, candidate.target
        if self._failures:
            self._failures.pop(target.key, None)
        if self.levels and key in self.levels:
            del self.levels[key]
            self.changed.add(("level", key))
        if self._lockouts and target.key in self._lockouts:
            self._halve(target.key)
        if self._streaks:
            self._streaks.pop(key, None)
        if self.trials:
            for each in candidate.keys:
                if self.trials.get(each):        # else nobody tries yet: this was asked for before it rested, and proves nothing
                    del self.trials[each]
        if self.breakers:
            self._close(target)
        if self._probes and self._probes.pop(key, None) is not None:
            self._proved(candidate)
        if tokens and self.learned.known:
            self.learned.proved(target, tokens)
        self.stats.add(candidate, True, now, first_s, rate, whole)

    def learn(self, candidate: Candidate, headers: Mapping[str, str], now: float, wall: float) -> None:
        """What the headers of an answer say about the account's quota."""
        self.quotas.learn(candidate.account_key, headers, now, wall)

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
            self.levels.pop(key, None)
            self.changed.add(("cooldown", key))

    def snapshot(self, now: float) -> list[dict[str, Any]]:
        """Running cooldowns as data, soonest end first. Accounts appear by digest; "" means all."""
        rows = [{"provider": key[0], "model": key[1], "account": key[2], "kind": entry.kind, "source": entry.source,
                 "remaining_s": round(entry.until - now, 3)}
                for key, entry in self._cooldowns.items() if entry.until > now]
        return sorted(rows, key=lambda row: row["remaining_s"])

    # ---------------------------------------------------------------- book-keeping
    def _cool_down(self, candidate: Candidate, error: GatewayError, outcome: Outcome, now: float, wall: float, news: bool,
                   streak: int, silent: bool) -> None:
        key, target = candidate.key, candidate.target
        level = self._climb(key, now) if outcome.rule in _BACKS_OFF and news else max(self.level(candidate), 1)
        found = decide(outcome.rule, error, Facts(target.provider.loopback, target.pacific, level, self.transient_cooldown_s),
                       now, wall)
        if found is not None:
            self._cool(candidate.account_key if outcome.skip == "account" else key, found)
            if outcome.rule in _BACKS_OFF:
                self.levels.put(key, (level, found.until))
                self.changed.add(("level", key))
        if target.provider.loopback:
            return
        if streak >= STREAK and (bench_s := STREAKS.get(error.kind)) is not None:
            self._cool(key, Cooldown(now + bench_s, error.kind, "heuristic", now))
        if error.kind == "in_band" and silent:
            self._cool(key, Cooldown(now + SILENT_BENCH_S, error.kind, "heuristic", now))
        if outcome.counts and news and (found is None or found.source == "heuristic"):
            self._count(target, error.kind, now)

    def _cool(self, key: Key, new: Cooldown) -> None:
        running = self._cooldowns.get(key)
        if running is None or running.until < new.until:
            self.rest(key, new)
            self.changed.add(("cooldown", key))
        if new.source in ("heuristic", "breaker"):
            self.trials.put(key, 0.0)

    def rest(self, key: Key, cooldown: Cooldown) -> None:
        self._cooldowns.begin(key, cooldown)

    def _climb(self, key: Key, now: float) -> int:
        """One failure more in a row, unless the last one is long over."""
        count, ended = self.levels.get(key, (0, now))
        return count + 1 if now - ended <= RECENT_S else 1

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

    def _count(self, target: Target, kind: str, now: float) -> None:
        times = [t for t in self._failures.get(target.key, ()) if now - t < WINDOW_S][1 - WINDOW_FAILURES:] + [now]
        self._failures.put(target.key, times)
        if len(times) >= WINDOW_FAILURES:
            steps = self._lockouts.get(target.key, 0)
            running = self._cooldowns.get(target.key)
            if running is None or running.until <= now:
                self._lockouts.put(target.key, min(steps + 1, 10))
            bench_s = min(WINDOW_BENCH_S * 2.0 ** steps, WINDOW_BENCH_MAX_S)
            self._cool(target.key, Cooldown(now + bench_s, kind, "heuristic", now))

    def _halve(self, key: Key) -> None:
        left = self._lockouts[key] // 2
        if left:
            self._lockouts[key] = left
        else:
            del self._lockouts[key]

    def _trip(self, candidate: Candidate, kind: str, now: float) -> None:
        provider = candidate.target.provider
        found = self.breakers.get(provider.id)
        if found is None:
            found = Breaker()
            self.breakers.put(provider.id, found)
        until = found.failed(candidate.account_key[2], profile(provider), now)
        self.changed.add(("breaker", candidate.target.provider_key))
        if until is not None:
            self._cool(candidate.target.provider_key, Cooldown(until, kind, "breaker", now))

    def _proved(self, candidate: Candidate) -> None:
        """It was tried while it rested, and answered: what we guessed was wrong."""
        for key in candidate.keys:
            found = self._cooldowns.get(key)
            if found is not None and found.source == "heuristic":
                del self._cooldowns[key]
                self.changed.add(("cooldown", key))

    def _close(self, target: Target) -> None:
        found = self.breakers.get(target.provider.id)
        if found is not None:
            if found.succeeded():
                running = self._cooldowns.get(target.provider_key)
                if running is not None and running.source == "breaker":
                    del self._cooldowns[target.provider_key]
                    self.changed.add(("cooldown", target.provider_key))
            self.changed.add(("breaker", target.provider_key))

    def _retire(self, target: Target, error: GatewayError, now: float) -> None:
        """A model that is gone for good is out for a day, and every day anew. Two hints within an hour are as good as a word."""
        said = retirement(error.upstream_status, error.message)
        if said == "probable":
            before = self._gone.get(target.key)
            self._gone.put(target.key, now)
            if before is None or not 0 < now - before <= PROBABLE_S:
                return
        if said:
            self._cool(target.key, Cooldown(now + DAY_S, error.kind, "retired", now))

    def fork(self) -> "Health":
        """For explain: the same cooldowns and counts, memory of its own."""
        made = Health.__new__(Health)
        made.__dict__ = dict(self.__dict__)
        made.memory = self.memory.fork()
        made.trials, made._probes = LruMap(self.trials.limit), LruMap(self._probes.limit)
        made.trials.update(self.trials)
        made._probes.update(self._probes)
        made._turns = LruMap(self._turns.limit)
        made._turns.update(self._turns)
        return made
