"""What does a scrape of this process show? What was counted, and how things stand at that moment."""
import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from gateway import __version__
from gateway.core.ports import SharedState
from gateway.observe.families import FAMILIES, Dump, merged, render
from gateway.observe.lag import Lag
from gateway.observe.tallies import Tallies
from gateway.pipeline.ground import Ground

STATES: Final = {"closed": 0, "degraded": 1, "half-open": 2, "open": 3}


async def nobody(mine: Dump) -> list[Dump]:
    return []


class Meter:
    """``ground`` is the current one. ``others``: what the other workers of this gateway have counted; ``webhooks``: notices by
    what became of them."""

    def __init__(self, tallies: Tallies, lag: Lag, ground: Callable[[], Ground]) -> None:
        self.tallies = tallies
        self.lag = lag
        self.ground = ground
        self.webhooks: dict[str, int] = {}
        self.others: Callable[[Dump], Awaitable[Iterable[Dump]]] = nobody
        self.shared: SharedState | None = None

    async def page(self, accept: str) -> tuple[str, bytes]:
        """(content type, body) of /metrics. prometheus_client is imported with the first one, in a thread, where pages are written
        too."""
        own = await self.dump()
        dumps = [own, *await self.others(own)]
        return await asyncio.to_thread(lambda: render(merged(dumps), accept))

    async def dump(self) -> Dump:
        """All of this process, as plain data."""
        own: Dump = {"gateway_loop_lag_seconds": [((), self.lag.spread.values)], "gateway_build_info": [((__version__,), [1])],
                     "gateway_tasks": [((), [len(asyncio.all_tasks())])],
                     "gateway_webhooks_total": [((name,), [n]) for name, n in self.webhooks.items()]}
        if self.shared is not None:
            own |= {"gateway_shared_state_down": [((), [int(not self.shared.up)])], "gateway_nodes": [((), [self.shared.nodes])]}
        now = standing(self.ground())
        return await asyncio.to_thread(lambda: merged([self.tallies.dump(), process(), now, own]))


def standing(ground: Ground) -> Dump:
    """How things stand now."""
    now, ledger, health = ground.clock.now(), ground.store.ledger, ground.health
    resting = dict.fromkeys(ground.catalog.providers, 0)
    for row in health.snapshot(now):
        if row["provider"] in resting:
            resting[row["provider"]] += 1
    states = {target.provider.id: STATES[health.breaker(target, now)] for target in ground.catalog.targets}
    calls = ground.inflight.calls.values()
    return {
        "gateway_breaker_state": [((name,), [state]) for name, state in states.items()],
        "gateway_cooldowns": [((name,), [n]) for name, n in resting.items()],
        "gateway_db_queue_depth": [((), [ledger.waiting])],
        "gateway_ledger_rows_total": [((), [ledger.committed])],
        "gateway_ledger_dropped_total": [(("detail",), [ledger.dropped]), (("request",), [ledger.lost])],
        "gateway_in_flight_requests": [((), [ground.inflight.count])],
        "gateway_open_streams": [((), [sum(call.stream for call in calls)])],
        "gateway_cache_total": [(("miss",), [ground.replays.answers.statistics.misses])],
    }


def process() -> Dump:
    """What the system says of this process; nothing where it says nothing."""
    from prometheus_client import ProcessCollector

    return {sample.name: [((), [sample.value])] for family in ProcessCollector(registry=None).collect()
            for sample in family.samples if sample.name in FAMILIES}
