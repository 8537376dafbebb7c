"""Where is kept what routing learned? ``core.ports.StateStore`` in SQLite."""
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from gateway.core.clock import Clock
from gateway.core.ports import StateRow
from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

MAX_LOADED: Final = 50_000
PUT: Final = """INSERT INTO routing_state (book, key, value, until) VALUES (?, ?, ?, ?)
ON CONFLICT (book, key) DO UPDATE SET value = excluded.value, until = excluded.until"""
FORGET: Final = "DELETE FROM routing_state WHERE book = ? AND key = ?"
EXPIRE: Final = "DELETE FROM routing_state WHERE until <= ?"
LOAD: Final = "SELECT book, key, value, until FROM routing_state WHERE until > ? ORDER BY until DESC LIMIT ?"


class SqliteState:
    """Rows go through the one writer; ``read`` runs a query on a connection that cannot write."""

    def __init__(self, writer: Writer, read: Read, clock: Clock) -> None:
        self._writer = writer
        self._read = read
        self._clock = clock

    async def load(self) -> list[StateRow]:
        now = self._clock.wall()
        self._writer.put(Row(EXPIRE, (now,)))
        return [StateRow(book, key, msgspec.json.decode(value, type=dict[str, Any]), until)
                for book, key, value, until in await self._read(LOAD, (now, MAX_LOADED))]

    async def save(self, rows: Sequence[StateRow]) -> None:
        for row in rows:
            if row.value is None:
                self._writer.put(Row(FORGET, (row.book, row.key)))
            else:
                value = msgspec.json.encode(row.value)
                self._writer.put(Row(PUT, (row.book, row.key, value, row.until), len(value)))
