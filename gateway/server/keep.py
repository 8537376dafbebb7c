"""How does what routing learned outlive the process? Loaded once at the start, saved in batches while it changes.

Nothing waits for it: a store that cannot be read or written is said in the log, and routing goes on with what it has in memory.
"""
import asyncio
import logging
from collections.abc import Callable

from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.ports import StateRow, StateStore
from gateway.routing.health import Health
from gateway.routing.keep import changes, restore

log = logging.getLogger("gateway.keep")

SAVE_S = 5.0


class Keeper:
    """One health and its store."""

    def __init__(self, health: Health, store: StateStore, clock: Clock, save_s: float = SAVE_S) -> None:
        self._health = health
        self._store = store
        self._clock = clock
        self._save_s = save_s
        self._unsaved: dict[tuple[str, str], StateRow] = {}
        self._task: asyncio.Task[None] | None = None
        self.told: Callable[[list[StateRow]], None] | None = None      # who else wants to know of what changed

    async def open(self) -> None:
        try:
            rows = await self._store.load()
        except (OSError, GatewayError) as error:
            log.warning("what routing learned before cannot be read: %s", error)
            rows = []
        restore(self._health, rows, self._clock.now(), self._clock.wall())
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self.save()

    def collect(self) -> list[StateRow]:
        """What changed since anybody asked; it is written with the next batch."""
        rows = changes(self._health, self._clock.now(), self._clock.wall())
        self._unsaved |= {(row.book, row.key): row for row in rows}
        if self.told is not None and rows:
            self.told(rows)
        return rows

    async def save(self) -> None:
        """Write what changed; what could not be written is kept for the next time."""
        self.collect()
        if not self._unsaved:
            return
        batch, self._unsaved = self._unsaved, {}
        try:
            await self._store.save(list(batch.values()))
        except (OSError, GatewayError) as error:
            log.warning("what routing learned cannot be written: %s", error)
            self._unsaved = batch | self._unsaved

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._save_s)
            await self.save()
