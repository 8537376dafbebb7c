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
from gateway.store.database import DatabaseStore
from gateway.store.sqlite_file import BUSY_MS, SqliteFile
from gateway.store.writer import log, reason

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


class SqliteStore(DatabaseStore):
    """``sqlite:``."""

    def __init__(self, path: Path, clock: Clock) -> None:
        file = SqliteFile(path)
        super().__init__(file, Reader(file), Reader(file), clock)
