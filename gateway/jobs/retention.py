"""When do old records go? Every quarter of an hour those that are older than the configuration of then says."""
import logging
from collections.abc import Callable

from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.ports import Ledger

log = logging.getLogger("gateway.jobs")


class Retention:
    """For one store. ``days`` is asked each time, so a reload holds from the next round on."""

    def __init__(self, ledger: Ledger, clock: Clock, days: Callable[[], int]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._days = days

    async def run(self) -> None:
        try:
            await self._ledger.expire(self._clock.wall(), self._days())
        except GatewayError as error:
            log.warning("old records stay for now: %s", error.message)
