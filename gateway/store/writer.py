"""How do records get onto the disk? One task, one connection: what came within some 30 ms is one transaction.

74 µs a row when each commits alone, about 2 µs batched. Whoever puts a row never waits and never fails: a disk that is full,
gone or not writable is said in the log once, counted, and tried again. Meanwhile rows wait. Above the bound details are dropped
and counted, far above it the ledger's rows too; what may never be dropped (a deletion) is kept however many.
"""
import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from itertools import groupby, islice, takewhile
from pathlib import Path
from typing import Any, Final

import aiosqlite
import msgspec

from gateway.store.migrate import Unfit, migrate, migrations

log = logging.getLogger("gateway.store")

FLUSH_S: Final = 0.03
RETRY_S: Final = 2.0
CLOSE_S: Final = 10.0                            # what the last batch may take
BUSY_MS: Final = 5_000
MAX_ROWS: Final = 20_000
MAX_BYTES: Final = 64 << 20
BATCH_ROWS: Final = 2_000
LEDGER_SHARE: Final = 3                          # of the bounds, up to which rows of the ledger wait
# Errors of one row; every other error is the file's.
_ROW: Final = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError, OverflowError,
               UnicodeEncodeError)


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


class Writer:
    """The only connection that writes."""

    def __init__(self, path: Path, *, flush_s: float = FLUSH_S, retry_s: float = RETRY_S, max_rows: int = MAX_ROWS,
                 max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.dropped = self.lost = self.written = self.failures = 0      # lost: rows of the ledger
        self.gather: Callable[[], None] | None = None    # puts what is to be written with this batch
        self.failing = ""                            # why nothing can be written now
        self.opened = False                          # the file has its tables: it can be read
        self._flush_s, self._retry_s = flush_s, retry_s
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._rows: deque[Row] = deque()
        self._n_bytes = 0
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._closed = False
        self._lock = asyncio.Lock()
        self._db: aiosqlite.Connection | None = None
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
        await self._disconnect()

    async def flush(self) -> bool:
        """Write all that waits now; False if that failed."""
        async with self._lock:
            try:
                await self._connect()
                if self.gather is not None:
                    self.gather()
                while self._rows:
                    await self._write()
            except (sqlite3.Error, OSError, Unfit, ValueError) as error:
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
        await self._disconnect()

    # ------------------------------------------------------------------ the file
    async def _connect(self) -> None:
        if self._db is not None:
            return
        known = migrations()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.touch(0o600)                       # conversations are nobody else's business
        self._db = db = await aiosqlite.connect(self.path, isolation_level=None)
        await db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        await db.execute("PRAGMA journal_mode = WAL")
        await db.execute("PRAGMA synchronous = NORMAL")
        await migrate(db, known)
        self.opened = True

    async def _disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            try:
                await db.close()
            except (sqlite3.Error, ValueError) as error:
                log.warning("the store did not close properly: %s", reason(error))

    async def _write(self) -> None:
        """One batch, whole or not at all; neighbours with the same statement together."""
        batch = list(islice(self._rows, BATCH_ROWS))
        if len(batch) == BATCH_ROWS:
            batch += takewhile(lambda row: row.joined, islice(self._rows, BATCH_ROWS, None))
        try:
            await self._commit(batch)
        except _ROW as error:
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
                await self._commit([row])
            except _ROW:
                del self._rows[at]
                self._n_bytes -= row.n_bytes
                return batch[:at]
        return batch

    async def _commit(self, batch: list[Row]) -> None:
        db = self._db
        assert db is not None
        await db.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in groupby(batch, key=lambda row: row.sql):
                await db.executemany(sql, [row.values for row in rows])
            await db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                await db.execute("ROLLBACK")
            raise


def reason(error: Exception) -> str:
    """In words, without the path."""
    if isinstance(error, OSError):
        return (error.strerror or "the file cannot be used").lower()
    return str(error) or type(error).__name__
