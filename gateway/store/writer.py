"""How do records get into the database? One task, one connection: what came within some 30 ms is one transaction.

74 µs a row when each commits alone, about 2 µs batched. Whoever puts a row never waits and never fails: a disk that is full,
gone or not writable is said in the log once, counted, and tried again. Meanwhile rows wait. Above the bound details are dropped
and counted, far above it the ledger's rows too; what may never be dropped (a deletion) is kept however many.
"""
import asyncio
import logging
from collections import deque
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Any, Final, Protocol

import msgspec

from gateway.store.migrate import Unfit

log = logging.getLogger("gateway.store")

FLUSH_S: Final = 0.03
RETRY_S: Final = 2.0
CLOSE_S: Final = 10.0                            # what the last batch may take
MAX_ROWS: Final = 20_000
MAX_BYTES: Final = 64 << 20
BATCH_ROWS: Final = 2_000
LEDGER_SHARE: Final = 3                          # of the bounds, up to which rows of the ledger wait


class Row(msgspec.Struct, frozen=True, eq=False):
    """One row to write: an SQL statement of this folder and its values. ``done`` is called once it is on the disk.

    ``joined``: in the same transaction as the row before it."""
    sql: str
    values: tuple[Any, ...]
    n_bytes: int = 0
    droppable: bool = True
    done: Callable[[], None] | None = None
    ledger: bool = False                         # waits longer than those that are droppable, but not for ever
    joined: bool = False


class Place(Protocol):
    """A database that rows go to, by one connection. All three may raise ``errors`` and ``Unfit``."""
    opened: bool                                 # it has its tables: it can be read
    row_errors: tuple[type[Exception], ...]      # that a single row is to blame for
    errors: tuple[type[Exception], ...]          # all others that a database has

    @property
    def blind(self) -> bool:
        """May it hold rows that cannot be read now?"""
        ...

    async def connect(self) -> None:
        """Connect unless that has been done, and make the tables."""
        ...

    async def commit(self, batch: list[Row]) -> None:
        """All of it or nothing."""
        ...

    async def disconnect(self) -> None:
        """Never raises."""
        ...


class Writer:
    """The only connection that writes."""

    def __init__(self, place: Place, *, flush_s: float = FLUSH_S, retry_s: float = RETRY_S, max_rows: int = MAX_ROWS,
                 max_bytes: int = MAX_BYTES) -> None:
        self.place = place
        self.dropped = self.lost = self.written = self.failures = 0      # lost: rows of the ledger
        self.gather: Callable[[], None] | None = None    # puts what is to be written with this batch
        self.failing = ""                            # why nothing can be written now
        self._flush_s, self._retry_s = flush_s, retry_s
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._rows: deque[Row] = deque()
        self._n_bytes = 0
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._closed = False
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def put(self, row: Row) -> bool:
        """Queue a row; False if it was dropped. Synchronous, never fails."""
        share = LEDGER_SHARE if row.ledger else 1
        full = len(self._rows) >= self._max_rows * share or self._n_bytes + row.n_bytes > self._max_bytes * share
        if full and (row.droppable or row.ledger) or self._closed:
            if row.ledger:
                self.lost += 1
            else:
                self.dropped += 1
            return False
        self._rows.append(row)
        self._n_bytes += row.n_bytes
        self._wake.set()
        return True

    def wake(self) -> None:
        """There is something to gather."""
        self._wake.set()

    @property
    def waiting(self) -> int:
        return len(self._rows)

    async def open(self) -> None:
        """Make the file and its tables, and begin to write. Does not raise: see ``failing``."""
        self._task = asyncio.create_task(self._run())
        await self.flush()

    async def close(self) -> None:
        """Write what waits, as far as that is possible."""
        self._closing.set()
        self._wake.set()
        try:
            async with asyncio.timeout(CLOSE_S):
                if self._task is not None:
                    await self._task
                await self.flush()
        except TimeoutError:
            log.error("the store took longer than %d s to close", CLOSE_S)
        self._closed = True
        if self._rows:
            self.dropped += len(self._rows)
            log.error("%d records were not written: %s", len(self._rows), self.failing or "no time was left")
        await self.place.disconnect()

    async def flush(self) -> bool:
        """Write all that waits now; False if that failed."""
        async with self._lock:
            if self.gather is not None:
                self.gather()                        # also where the disk takes nothing: what is pending holds on to more than its row
            try:
                await self.place.connect()
                while self._rows:
                    await self._write()
            except (OSError, TimeoutError, Unfit, ValueError) as error:
                await self._failed(error)
                return False
            except self.place.errors as error:
                await self._failed(error)
                return False
        if self.failing:
            self.failing = ""
            log.warning("the store can be written again")
        return True

    async def _run(self) -> None:
        while not self._closing.is_set():
            await self._wake.wait()
            self._wake.clear()
            await self._pause(self._flush_s)
            if not await self.flush():
                self._wake.set()
                await self._pause(self._retry_s)     # rows that come do not hurry a broken disk

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            pass

    async def _failed(self, error: Exception) -> None:
        self.failures += 1
        said = reason(error)
        if said != self.failing:
            self.failing = said
            log.error("the store cannot be written, records wait in memory: %s", said)
        await self.place.disconnect()

    async def _write(self) -> None:
        """One batch, whole or not at all; neighbours with the same statement together."""
        batch = list(islice(self._rows, BATCH_ROWS))
        if len(batch) == BATCH_ROWS:
            batch += takewhile(lambda row: row.joined, islice(self._rows, BATCH_ROWS, None))
        try:
            await self.place.commit(batch)
        except self.place.row_errors as error:
            log.error("a record cannot be written and is left out: %s", reason(error))
            batch = await self._one_by_one(batch)
            self.dropped += 1
        for row in batch:
            self._rows.popleft()
            self._n_bytes -= row.n_bytes
            if row.done is not None:
                row.done()
        self.written += len(batch)

    async def _one_by_one(self, batch: list[Row]) -> list[Row]:
        """Up to the row at fault, which is taken out of the queue."""
        for at, row in enumerate(batch):
            try:
                await self.place.commit([row])
            except self.place.row_errors:
                del self._rows[at]
                self._n_bytes -= row.n_bytes
                return batch[:at]
        return batch


def reason(error: Exception) -> str:
    """In words, without the path."""
    if isinstance(error, OSError):
        return (error.strerror or "the file cannot be used").lower()
    return str(error) or type(error).__name__
