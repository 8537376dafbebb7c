"""Where is kept who changed what? ``core.ports.Audit`` in SQLite, through the one writer; the oldest go."""
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from gateway.core.ports import Change
from gateway.store.bounds import MAX_CHANGES
from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

TRIM_EVERY: Final = 100
PUT: Final = "INSERT INTO audit (at, who, action, subject, detail, ok) VALUES (?, ?, ?, ?, ?, ?)"
TRIM: Final = "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?"
LAST: Final = "SELECT id, at, who, action, subject, detail, ok FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?"
NEWEST: Final = 1 << 62


class SqliteAudit:
    """A change that the disk has not taken yet is not listed."""

    def __init__(self, writer: Writer, read: Read) -> None:
        self._writer = writer
        self._read = read
        self._n = 0

    def add(self, change: Change) -> None:
        self._writer.put(Row(PUT, (change.at, change.who, change.action, change.subject, change.detail, change.ok), droppable=False))
        self._n += 1
        if self._n % TRIM_EVERY == 1:
            self._writer.put(Row(TRIM, (MAX_CHANGES,)))

    async def last(self, limit: int, before: int = 0) -> list[Change]:
        return [Change(number=id_, at=at, who=who, action=action, subject=subject, detail=detail, ok=bool(ok))
                for id_, at, who, action, subject, detail, ok in await self._read(LAST, (before or NEWEST, limit))]
