"""How does this process learn of keys that another one changed, and the store of what was spent? One look and one batch a second.

Nothing waits for it: a store that cannot be read is said in the log once, and what is known stands. ``kill -9`` loses what was
spent since the last batch.
"""
import asyncio
import logging
from collections.abc import Awaitable, Callable

from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.keys import SpentStore
from gateway.policy.budget import Budgets, periods
from gateway.policy.keybook import KeyBook

log = logging.getLogger("gateway.keys")

EVERY_S = 1.0
KEPT_S = 62 * 86_400.0                               # the last month can be looked at, and no day counts for longer


class KeyKeeper:
    """One book of keys, one set of budgets and their store. ``changed`` is called when the book took something over."""

    def __init__(self, book: KeyBook, budgets: Budgets, store: SpentStore, clock: Clock, every_s: float = EVERY_S) -> None:
        self._book = book
        self._budgets = budgets
        self._store = store
        self._clock = clock
        self._every_s = every_s
        self._failing = False
        self._task: asyncio.Task[None] | None = None
        self.changed: Callable[[], Awaitable[None]] | None = None

    async def open(self) -> None:
        """Never raises: without the store's keys, doors that only they would open stay shut."""
        try:
            await self._book.open()
            self._budgets.others(await self._store.spent(self._periods(), True))
        except GatewayError as error:
            self._failed(error)
        self._store.forget(periods(self._clock.wall() - KEPT_S)[1])
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self.keep()

    def keep(self) -> None:
        """What was spent since the last time goes to the store."""
        if rows := self._budgets.changes():
            self._store.keep(rows)

    async def look(self) -> None:
        """What others changed, and what they spent."""
        try:
            if self._book.ring.closed:
                await self._book.open()
            elif await self._book.refresh() and self.changed is not None:
                await self.changed()
            if self._budgets:
                self._budgets.others(await self._store.spent(self._periods(), False))
        except GatewayError as error:
            self._failed(error)
        else:
            self._failing = False

    def _periods(self) -> tuple[str, str]:
        return periods(self._clock.wall())

    def _failed(self, error: GatewayError) -> None:
        if not self._failing:
            log.error("client keys and budgets of the store cannot be read: %s", error.message)
        self._failing = True

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                self.keep()
                await self.look()
            except Exception:
                log.exception("keys and budgets could not be looked after")
