"""Where do rotated refresh tokens survive a restart, where the store is a server? In a table of their own, sealed if there is a key.

Each is committed before it is used. Rotations are rare: every call has a connection of its own.
"""
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from gateway.store.postgres import FAILURES, connected
from gateway.store.seal import Sealer
from gateway.store.vault import opened, sealed
from gateway.store.writer import reason

MAKE: Final = "CREATE TABLE IF NOT EXISTS gateway_tokens (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
PUT: Final = """INSERT INTO gateway_tokens (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""


class PostgresVault:
    """``upstream.tokens.Vault`` on a server."""

    def __init__(self, address: str, sealer: Sealer) -> None:
        self._address = address
        self._sealer = sealer

    async def load(self) -> dict[str, str]:
        async with self._table() as db:
            rows = await db.fetch("SELECT name, value FROM gateway_tokens")
        return {name: token for name, value in rows if (token := opened(self._sealer, name, value)) is not None}

    async def keep(self, name: str, value: str) -> None:
        async with self._table() as db:
            await db.execute(PUT, name, sealed(self._sealer, name, value) if self._sealer else value)

    async def reseal(self) -> int:
        async with self._table() as db, db.transaction():
            rows = await db.fetch("SELECT name, value FROM gateway_tokens FOR UPDATE")
            for name, value in rows:
                await db.execute(PUT, name, sealed(self._sealer, name, opened(self._sealer, name, value, strict=True) or ""))
        return len(rows)

    @asynccontextmanager
    async def _table(self) -> "AsyncIterator[asyncpg.Connection[Any]]":
        try:
            db = await connected(self._address)
            try:
                await db.execute(MAKE)
                yield db
            finally:
                await db.close()
        except FAILURES as error:
            if isinstance(error, ValueError) and not isinstance(error, asyncpg.InterfaceError):
                raise
            raise OSError(f"the store cannot be used: {reason(error)}") from None
