"""Who else is asked while the first is silent? Two targets race for the commit point; who loses is left, not blamed.

The second starts when the first has been silent for longer than it usually is (its p95 of the time to the first token, or
``routing.hedge_after_s``), and only as long as the budget has tokens: each request earns ``routing.hedge_share`` of one. One that
has begun to speak is not raced against: it answers, however long its turn is held. Each attempt runs in a task of its own, so that
cancelling one closes its connection and nothing else; who commits cancels the others in the same step, before anything of them
could leave (sinks.commit).
"""
import asyncio
from typing import Final

from gateway.core.errors import GatewayError
from gateway.pipeline import purse
from gateway.pipeline.booking import tried
from gateway.pipeline.deliver import Client
from gateway.pipeline.hop import Hop
from gateway.pipeline.search import Search
from gateway.routing.outcomes import OUTCOMES

LEAST_S: Final = 0.02                        # a machine's own hiccups are no reason to ask twice
Failures = list[tuple[Hop, GatewayError]]    # in the order in which they ended


def delay_s(x: Hop, search: Search) -> float | None:
    """After how long of silence somebody else is asked as well; None = never."""
    if not search.way.races or not search.plan.resolution.several:
        return None
    settings, budget = search.ground.snapshot.routing, search.ground.extras.hedges
    if len(search.call.attempts) == 1:
        budget.earn(settings.hedge_share)
    usual_s = settings.hedge_after_s or search.ground.health.stats.usual_s(x.lane.candidate, whole=not x.plan.request.stream)
    return max(usual_s, LEAST_S) if usual_s is not None else None


def final(error: GatewayError, client: Client) -> bool:
    """Does this failure end the request, whoever else could be asked?"""
    return client.committed or error.kind == "client_gone" or not OUTCOMES[error.kind].moves_on


async def race(first: Hop, after_s: float, search: Search) -> Failures:
    """Try the first, and another when it is silent for too long. Who failed; [] = one of them answered."""
    heat = Race(search)
    heat.enter(first)
    try:
        await asyncio.wait(heat.running.values(), timeout=after_s)
        second = await heat.second(first)
        if second is not None:
            heat.enter(second)
        return await heat.outcome()
    finally:
        await heat.end()


class Race:
    """The attempts that run at once."""

    __slots__ = ("running", "search")

    def __init__(self, search: Search) -> None:
        self.search = search
        self.running: dict[Hop, asyncio.Task[GatewayError | None]] = {}

    def enter(self, x: Hop) -> None:
        x.race = self
        self.running[x] = asyncio.create_task(tried(x, self.search))

    def idle(self, first: Hop) -> bool:
        """Is there no reason any more for a second?"""
        return self.running[first].done() or self.search.client.committed or not first.silent or self.search.ground.inflight.draining

    async def second(self, first: Hop) -> Hop | None:
        """Somebody of another target, if there is reason, money and somebody free. Takes place and budget in one step, unless they
        are shared and have to be leased."""
        search, ground = self.search, self.search.ground
        if self.idle(first):
            return None
        if len(search.call.attempts) >= ground.snapshot.routing.max_attempts or not ground.extras.hedges.left:
            return None
        walk = search.walk
        walk.beside(first.lane.candidate.target)
        try:
            taken = await search.take(ground.clock.now())
        finally:
            walk.beside(None)
        if taken is None:
            return None
        possible = False
        try:
            possible = await purse.doubled(search.call, ground) and not self.idle(first)
        finally:
            if not possible:
                candidate, reservation = taken
                reservation.release(ground.clock.now())
                ground.health.released(candidate)
        if not possible:
            return None
        ground.extras.hedges.spend()
        return search.begin(taken)

    def won(self, winner: Hop, now: float) -> None:
        """The commit point: nobody else may answer. Synchronous, so none of them takes another step."""
        for x, task in self.running.items():
            if x is not winner and not task.done():
                x.attempt.hedged, x.attempt.ended = True, now
                task.cancel()

    async def outcome(self) -> Failures:
        """Wait until one has answered, or failed for all, or all have failed."""
        failed: Failures = []
        while self.running:
            done, _ = await asyncio.wait(self.running.values(), return_when=asyncio.FIRST_COMPLETED)
            for x in [x for x, task in self.running.items() if task in done]:
                task = self.running.pop(x)
                if x.attempt.hedged and task.cancelled():
                    continue
                error = task.result()
                if error is None:
                    return []
                failed.append((x, error))
                if final(error, self.search.client):
                    return failed
        return failed

    async def end(self) -> None:
        """Whoever still runs is left: the client went away, or there is an answer."""
        running, self.running = self.running, {}
        if not running:
            return
        for task in running.values():
            task.cancel()
        await asyncio.wait(running.values())
        for task in running.values():
            if not task.cancelled():
                task.exception()                     # looked at, since nobody else will
