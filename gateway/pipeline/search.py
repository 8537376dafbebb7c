"""Whom does one request ask, and what is an attempt at them made of? Everything that its attempts share.

Taking somebody is one synchronous step: the walk's candidate, the room in every limit, the attempt (before it a lease is waited
for where other processes share the limits). What is done with it is the
loop's business (attempts.py), what is waited for when nobody is there patience's, who else may be asked meanwhile the hedge's.
"""
from collections.abc import Awaitable, Callable, Hashable
from math import inf
from typing import Any

import msgspec

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.hop import Hop
from gateway.pipeline.prepare import Plan
from gateway.policy.limits import Reservation, Wanted
from gateway.providers.registry import Ceiling
from gateway.routing.catalog import Candidate
from gateway.routing.walk import Walk

EXEMPT = 2                 # the first attempt and the first retry are always allowed, whatever they took (spec/streaming 2.1)
Taken = tuple[Candidate, Reservation]


class Way(msgspec.Struct, frozen=True):
    """How one kind of operation is tried: what an attempt is, how it goes, and what is left of those that failed. ``races``: may
    two targets be asked at once? ``most``: attempts, below routing.max_attempts."""
    make: Callable[..., Any]
    go: Callable[[Any], Awaitable[None]]
    salvage: Callable[[Any], Awaitable[bool]]
    races: bool = False
    most: int = 1_000


class Search:
    """The search of one request for somebody who answers it."""

    __slots__ = ("call", "client", "give_up_at", "ground", "n_sets", "plan", "waited_s", "walk", "way")

    def __init__(self, call: Call, plan: Plan, client: Client, ground: Ground, way: Way, walk: Walk) -> None:
        self.call = call
        self.plan = plan
        self.client = client
        self.ground = ground
        self.way = way
        self.walk = walk
        budget_s = ground.snapshot.routing.budget_s
        self.give_up_at = call.started + budget_s if budget_s else inf
        self.n_sets = 0                              # how often everybody was asked again
        self.waited_s = 0.0                          # for cooldowns, so far

    def overdue(self, now: float) -> bool:
        """Is the time for more attempts over?"""
        return len(self.call.attempts) >= EXEMPT and now >= self.give_up_at

    async def take(self, now: float) -> Taken | None:
        """The next candidate whose own limits have room. Waits only where limits are shared and too little of one is at hand."""
        walk, limits = self.walk, self.ground.limits
        while (candidate := walk.next(now)) is not None:
            wanted = self.wanted(candidate, now)
            if limits.leases is not None:
                try:
                    await limits.stock(wanted, walk.tokens)
                except BaseException:
                    self.ground.health.released(candidate)
                    raise
            try:
                return candidate, limits.take_accounts(wanted, walk.tokens, now)
            except GatewayError as full:
                walk.busy(candidate, now + (full.retry_after_s or 1.0))
        return None

    def wanted(self, candidate: Candidate, now: float) -> Wanted:
        """Every limit of an attempt: the operator's, those that refusals taught, the combo's own."""
        found: list[tuple[Hashable, Ceiling]] = [(candidate.account_key, candidate.target.provider.limits)]
        if (learned := self.ground.health.learned).known and (taught := learned.ceiling(candidate, now)) is not None:
            found.append((candidate.key, taught))
        if places := self.walk.settings(candidate).concurrency:
            found.append((("combo", self.walk.resolution.scope, candidate.key), Ceiling(concurrency=places)))
        return found

    def begin(self, taken: Taken) -> Hop:
        """The attempt at somebody who was taken just now."""
        candidate, reservation = taken
        call, target, walk = self.call, candidate.target, self.walk
        # key1, key2 … by first appearance in this request: no real ids leak
        number = call.accounts.setdefault((target.provider.id, candidate.account.ordinal), len(call.accounts) + 1)
        attempt = Attempt(label=target.label, provider=target.provider.id, model=target.model.id, key=number,
                          started=self.ground.clock.now(), price=target.model.price, rank=walk.rank,
                          account=candidate.account.label or f"key{candidate.account.ordinal}")
        call.attempts.append(attempt)
        x: Hop = self.way.make(call, attempt, self.ground.lane(candidate), self.plan, self.client, self.ground)
        x.reservation, x.leg = reservation, walk.current
        self._bound(x)
        return x

    def _bound(self, x: Hop) -> None:
        """When an attempt is given up that has let nothing out: the request's time, or the combo's for one target."""
        deadline = self.ground.snapshot.routing.hedge == "deadline" and len(self.call.attempts) > EXEMPT
        give_up_at = x.commit_by = self.give_up_at if deadline else inf
        own_s = self.walk.settings(x.lane.candidate).target_timeout_s
        if own_s and x.attempt.started + own_s < give_up_at:
            x.commit_by, x.own_time = x.attempt.started + own_s, True
