"""Where are cached answers kept? ``core.ports.AnswerStore`` in SQLite."""
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

PUT: Final = """INSERT INTO answers (id, value, until) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET value = excluded.value, until = excluded.until"""
DELETE: Final = "DELETE FROM answers WHERE id = ?"
EXPIRE: Final = "DELETE FROM answers WHERE until <= ?"
LOAD: Final = "SELECT id, value FROM answers WHERE until > ? ORDER BY until DESC LIMIT ?"


class SqliteAnswers:
    """Rows go through the one writer; ``read`` runs a query on a connection that cannot write."""

    def __init__(self, writer: Writer, read: Read) -> None:
        self._writer = writer
        self._read = read

    async def load(self, wall: float, max_count: int, max_bytes: int) -> list[tuple[bytes, bytes]]:
        self._writer.put(Row(EXPIRE, (wall,)))
        found: list[tuple[bytes, bytes]] = []
        for key, value in await self._read(LOAD, (wall, max_count)):
            max_bytes -= len(value)
            if max_bytes < 0:
                break
            found.append((bytes(key), bytes(value)))
        found.reverse()
        return found

    def put(self, key: bytes, value: bytes, until: float) -> None:
        self._writer.put(Row(PUT, (key, value, until), len(value)))

    def delete(self, key: bytes) -> None:
        self._writer.put(Row(DELETE, (key,)))
