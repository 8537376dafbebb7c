"""What does a file keep? SQLite: one writer, readers that cannot write."""
import asyncio
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiosqlite

from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.store.answers import SqliteAnswers
from gateway.store.audit import SqliteAudit
from gateway.store.combos import SqliteCombos
from gateway.store.keys import SqliteKeys, SqliteSpent
from gateway.store.ledger import Ledger
from gateway.store.responses import SqliteResponses
from gateway.store.sqlite_file import BUSY_MS, SqliteFile
from gateway.store.state import SqliteState
from gateway.store.writer import Writer, log, reason

Rows = Iterable[sqlite3.Row]
READ_S: Final = 10.0


class Reader:
    """A connection that can only read, made on first use."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._db: aiosqlite.Connection | None = None
        self._lock = asyncio.Lock()

    async def rows(self, sql: str, values: tuple[Any, ...] = ()) -> Rows:
        """[] as long as there is no file. Raises GatewayError where there is one that cannot be read."""
        if not self._file.opened:
            return []
        try:
            async with self._lock, asyncio.timeout(READ_S):
                db = self._db or await self._connect()
                return await db.execute_fetchall(sql, values)
        except (sqlite3.Error, OSError, ValueError, TimeoutError) as error:
            log.error("the store cannot be read: %s", reason(error))
            await self.close()
            raise GatewayError("internal", "The store of this gateway cannot be read now.", status=503) from None

    async def _connect(self) -> aiosqlite.Connection:
        self._db = db = await aiosqlite.connect(f"file:{quote(str(self._file.path))}?mode=ro", uri=True, isolation_level=None)
        await db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        return db

    async def close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            try:
                await db.close()
            except (sqlite3.Error, ValueError):
                log.warning("a reader of the store did not close properly")


class SqliteStore:
    """``sqlite:``."""

    def __init__(self, path: Path, clock: Clock) -> None:
        file = SqliteFile(path)
        self.writer = Writer(file)
        self.reader = Reader(file)
        self.responses = SqliteResponses(self.writer, self.reader.rows, clock)
        self.state = SqliteState(self.writer, self.reader.rows, clock)
        self.audit = SqliteAudit(self.writer, self.reader.rows)
        self.answers = SqliteAnswers(self.writer, self.reader.rows)
        self.keys = SqliteKeys(self.writer, self.reader.rows)
        self.combos = SqliteCombos(self.writer, self.reader.rows)
        self.spent = SqliteSpent(self.writer, self.reader.rows)
        self.pages = Reader(file)             # the operator's: nobody's request waits for what they look at
        self.ledger = Ledger(self.writer, self.pages.rows)

    @property
    def reachable(self) -> bool:
        return not self.writer.failing

    async def open(self) -> None:
        await self.writer.open()
        await self.responses.open()

    async def close(self) -> None:
        await self.ledger.settle()
        await self.reader.close()
        await self.pages.close()
        await self.writer.close()
