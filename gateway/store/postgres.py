"""What does a PostgreSQL server keep? The same ports as a file: one writer, readers that cannot write.

Several gateways may use one database: their rows have numbers and names of their own, sums are added, tables are made once.
"""
import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

import asyncpg
from asyncpg.exceptions import _base as client_side

from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.store.database import DatabaseStore
from gateway.store.migrate import Unfit, migrations
from gateway.store.postgres_sql import script, translated
from gateway.store.writer import Row, log, reason

CONNECT_S: Final = 10.0
COMMAND_S: Final = 10.0
LOCK: Final = 0x67617465          # of whoever makes the tables
FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError, ValueError)


async def connected(address: str, **settings: str) -> "asyncpg.Connection[Any]":
    return await asyncpg.connect(address, timeout=CONNECT_S, command_timeout=COMMAND_S,
                                 server_settings={"application_name": "gateway", **settings})


class Server:
    """``writer.Place`` on a server."""

    row_errors: tuple[type[Exception], ...] = (
        asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, client_side.DataError, OverflowError, UnicodeEncodeError)
    errors: tuple[type[Exception], ...] = FAILURES

    def __init__(self, address: str) -> None:
        self.address = address
        self.opened = False
        self._db: asyncpg.Connection[Any] | None = None

    @property
    def blind(self) -> bool:
        return not self.opened

    async def connect(self) -> None:
        if self._db is not None and not self._db.is_closed():
            return
        self._db = db = await connected(self.address)
        await migrate(db)
        self.opened = True

    async def disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            try:
                await db.close(timeout=COMMAND_S)
            except FAILURES as error:
                log.warning("the store did not close properly: %s", reason(error))

    async def commit(self, batch: list[Row]) -> None:
        db = self._db
        assert db is not None
        async with db.transaction():
            for sql, rows in groupby(batch, key=lambda row: row.sql):
                await db.executemany(translated(sql), [row.values for row in rows])


async def migrate(db: "asyncpg.Connection[Any]") -> None:
    """As for a file: what is missing, all or nothing; whoever else does it at the same time waits. Raises Unfit."""
    known = migrations()
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        await db.execute("CREATE TABLE IF NOT EXISTS gateway_tables (version BIGINT NOT NULL)")
        version = await db.fetchval("SELECT coalesce(max(version), 0) FROM gateway_tables")
        if version > len(known):
            raise Unfit(f"was made by a newer version of the gateway (its tables are version {version}, "
                        f"this version knows {len(known)})")
        for migration in known[version:]:
            await db.execute(script(migration))
        if version < len(known):
            await db.execute("DELETE FROM gateway_tables")
            await db.execute("INSERT INTO gateway_tables (version) VALUES ($1)", len(known))


class ServerReader:
    """A connection that can only read, made on first use and again when it was lost."""

    def __init__(self, address: str, server: Server | None = None) -> None:
        self._address = address
        self._server = server
        self._db: asyncpg.Connection[Any] | None = None
        self._lock = asyncio.Lock()

    async def rows(self, sql: str, values: tuple[Any, ...] = ()) -> Iterable[Any]:
        """[] as long as there are no tables. Raises GatewayError where they cannot be read."""
        if self._server is not None and not self._server.opened:
            return []
        try:
            async with self._lock:
                if self._db is None or self._db.is_closed():
                    self._db = await connected(self._address, default_transaction_read_only="on")
                return [tuple(row) for row in await self._db.fetch(translated(sql), *values)]
        except FAILURES as error:
            log.error("the store cannot be read: %s", reason(error))
            await self.close()
            raise GatewayError("internal", "The store of this gateway cannot be read now.", status=503) from None

    async def close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            try:
                await db.close(timeout=COMMAND_S)
            except FAILURES:
                log.warning("a reader of the store did not close properly")


class PostgresStore(DatabaseStore):
    """``postgresql://``."""

    def __init__(self, address: str, clock: Clock) -> None:
        server = Server(address)
        super().__init__(server, ServerReader(address, server), ServerReader(address, server), clock)
