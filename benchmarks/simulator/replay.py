"""How does one strategy do on one day? Requests come and attempts end in the order of a fake clock; the routing is the gateway's.

Catalog, resolve, Walk, Health, Limits and the strategies are the real ones, booked as the pipeline books them: candidates whose
limits are full are passed over, failures cool and trip, headers teach quotas, successes bind sessions. Queues are not waited in.
"""
import heapq
from collections.abc import Sequence
from math import inf
from random import Random

import msgspec

from benchmarks.simulator.world import WALL_0, Answer, Asked, Site, World
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.policy.limits import Limits, Reservation
from gateway.routing.ask import Ask
from gateway.routing.catalog import Candidate, Catalog
from gateway.routing.combos import Plan, Settings, StepPlan
from gateway.routing.health import Health
from gateway.routing.outcomes import OUTCOMES
from gateway.routing.resolve import Resolution, resolve
from gateway.routing.walk import Walk

MAX_ATTEMPTS = 20                            # the contract's defaults
BUDGET_S = 45.0
STICKY_TTL_S = 1800.0
EXEMPT = 2


class Result(msgspec.Struct):
    """What came of one day."""
    strategy: str
    asked: int = 0
    first_s: list[float] = []                # from the request's arrival to its first token, of those that were answered
    attempts: int = 0
    cost_usd: float = 0.0
    by: dict[str, int] = {}                  # provider -> answers

    @property
    def success(self) -> float:
        return len(self.first_s) / self.asked

    @property
    def p95_s(self) -> float:
        ordered = sorted(self.first_s)
        return ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)] if ordered else inf

    @property
    def cost_per_1000(self) -> float:
        return 1000 * self.cost_usd / max(len(self.first_s), 1)

    @property
    def attempts_per_answer(self) -> float:
        """By answers: a request for which nobody can be asked costs no attempt, and is no merit."""
        return self.attempts / max(len(self.first_s), 1)


class Flight:
    """A request under way."""

    __slots__ = ("asked", "candidate", "reservation", "started", "tries", "walk")

    def __init__(self, asked: Asked, walk: Walk) -> None:
        self.asked, self.walk = asked, walk
        self.tries = 0
        self.started = asked.at
        self.candidate: Candidate | None = None
        self.reservation: Reservation | None = None


class Day:
    """One strategy's day."""

    def __init__(self, sites: Sequence[Site], strategy: str, settings: Settings, seed: int, name: str,
                 tokens: int) -> None:
        steps = tuple(StepPlan(target=f"{site.id}/m", weight=site.weight) for site in sites)
        self.catalog = Catalog([site.provider(order) for order, site in enumerate(sites)],
                               combos=[Plan(name="day", strategy=strategy, steps=steps, settings=settings)])
        self.world = World(tuple(sites), seed, tokens)
        self.health = Health(dice=Random(seed))
        self.limits = Limits()
        self.health.usage = self.limits.shares
        self.result = Result(name, first_s=[], by={})
        self._events: list[tuple[float, int, Flight, Answer]] = []
        self._resolution: Resolution = resolve("day", self.catalog)

    def run(self, requests: Sequence[Asked]) -> Result:
        for asked in requests:
            self._until(asked.at)
            self.result.asked += 1
            self._go_on(Flight(asked, self._walk(asked)), asked.at)
        self._until(inf)
        return self.result

    def _walk(self, asked: Asked) -> Walk:
        request = Request(wire="openai-chat", raw=b"{}", body=None, model="day", stream=True, max_tokens=asked.answer)
        ask = Ask(session=asked.session, prefix=asked.begins, text="please continue", chars=4 * asked.prompt,
                  turns=2 * asked.turn + 1, answered=asked.turn > 0)
        return Walk(self._resolution, request, self.health, asked.prompt, asked.at, ask, STICKY_TTL_S)

    def _until(self, now: float) -> None:
        while self._events and self._events[0][0] <= now:
            at, _, flight, answer = heapq.heappop(self._events)
            self._ended(flight, answer, at)

    def _go_on(self, flight: Flight, now: float) -> None:
        """The next attempt, or none."""
        late = flight.tries >= EXEMPT and now - flight.asked.at >= BUDGET_S
        if late or flight.tries >= MAX_ATTEMPTS:
            return
        walk = flight.walk
        while (candidate := walk.next(now)) is not None:
            try:
                reservation = self.limits.take_account(candidate.account_key, candidate.target.provider.limits, walk.tokens, now)
            except GatewayError as full:
                walk.busy(candidate, now + (full.retry_after_s or 1.0))
                continue
            flight.tries, flight.started = flight.tries + 1, now
            flight.candidate, flight.reservation = candidate, reservation
            self.result.attempts += 1
            answer = self.world.answer(flight.asked, candidate, flight.tries, now)
            account = candidate.key[2]
            self.world.running[account] = self.world.running.get(account, 0) + 1
            heapq.heappush(self._events, (now + answer.after_s, self.result.attempts, flight, answer))
            return

    def _ended(self, flight: Flight, answer: Answer, now: float) -> None:
        candidate, walk = flight.candidate, flight.walk
        assert candidate is not None and flight.reservation is not None
        self.world.running[candidate.key[2]] -= 1
        error = answer.error
        if error is not None:
            flight.reservation.release(now)
            self.health.failed(candidate, error, now, WALL_0 + now, silent_s=answer.after_s, tokens=walk.tokens)
            if OUTCOMES[error.kind].moves_on:
                walk.failed(candidate, error)
                self._go_on(flight, now)
            return
        flight.reservation.settle(flight.asked.prompt + flight.asked.answer, now)
        if answer.headers:
            self.health.learn(candidate, answer.headers, now, WALL_0 + now)
        rate = flight.asked.answer / max(answer.after_s - answer.first_s, 0.05)
        self.health.succeeded(candidate, now, first_s=answer.first_s, rate=rate, tokens=walk.tokens)
        walk.succeeded(candidate, now)
        result, provider = self.result, candidate.target.provider.id
        result.first_s.append(flight.started + answer.first_s - flight.asked.at)
        result.cost_usd += answer.cost
        result.by[provider] = result.by.get(provider, 0) + 1
