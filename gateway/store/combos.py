"""Where are combos kept that were made while running? ``core.ports.ComboStore`` in SQLite."""
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.core.ports import ComboRow
from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

MAX_ROWS: Final = 10_000
ROWS: Final = "SELECT name, place, body, changed FROM combos ORDER BY place, name LIMIT ?"
PUT: Final = """INSERT INTO combos (name, place, body, changed) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET place = excluded.place, body = excluded.body, changed = excluded.changed"""
DROP: Final = "DELETE FROM combos WHERE name = ?"
REVISION: Final = "SELECT number FROM combo_revision WHERE id = 1"
CHANGED: Final = "UPDATE combo_revision SET number = number + 1 WHERE id = 1"


class SqliteCombos:
    """A change is on the disk when it returns, all of it or nothing."""

    def __init__(self, writer: Writer, read: Read) -> None:
        self._writer = writer
        self._read = read

    async def revision(self) -> int:
        return next((int(number) for number, in await self._read(REVISION, ())), 0)

    async def rows(self) -> list[ComboRow]:
        return [ComboRow(name=name, place=place, body=body, changed=changed)
                for name, place, body, changed in await self._read(ROWS, (MAX_ROWS,))]

    async def change(self, put: Sequence[ComboRow], drop: Sequence[str] = ()) -> None:
        rows = [Row(DROP, (name,), droppable=False) for name in drop]
        rows += [Row(PUT, (row.name, row.place, row.body, row.changed), droppable=False) for row in put]
        for row in (*rows, Row(CHANGED, (), droppable=False)):
            if not self._writer.put(row):
                raise GatewayError("internal", "The store of this gateway is closed.", status=503)
        if not await self._writer.flush():
            raise GatewayError("internal", "The store of this gateway cannot be written now; the change takes effect when it can.",
                               status=503)
