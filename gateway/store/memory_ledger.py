"""Who keeps the records where there is no file? The last requests in memory; a database is made of them when somebody looks.

A gateway that nobody looks at pays for the rows alone. What is asked is the same SQL as on disk, in a thread.
"""
import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.core.call import Call
from gateway.store.batch import MAX_PENDING, Ids, Records, records
from gateway.store.pressing import PUT_ARTIFACT, pressed
from gateway.store.records import PUT_ATTEMPT, PUT_REQUEST
from gateway.store.rollups import Sums, add

if TYPE_CHECKING:
    import sqlite3

MAX_REQUESTS: Final = 5_000
MAX_BODIES: Final = 50           # requests whose bodies are kept, where they are
MAX_SUMS: Final = 20_000
TRIM_REQUESTS: Final = "DELETE FROM requests WHERE id <= (SELECT id FROM requests ORDER BY id DESC LIMIT 1 OFFSET ?)"
TRIM_BODIES: Final = """DELETE FROM artifacts WHERE request_id <= (SELECT DISTINCT request_id FROM artifacts
ORDER BY request_id DESC LIMIT 1 OFFSET ?)"""
TRIM_ATTEMPTS: Final = "DELETE FROM attempts WHERE request_id < (SELECT min(id) FROM requests)"


class MemoryLedger:
    """``core.ports.Ledger`` for ``memory:``."""

    committed = dropped = lost = waiting = 0               # nothing is on a disk, and what is old goes as it should

    def __init__(self, max_requests: int = MAX_REQUESTS) -> None:
        self._max = max_requests
        self._pending: list[Call] = []
        self._groups: deque[Records] = deque()   # not in the database yet
        self._n_grouped = 0
        self._sums: dict[str, Sums] = {}         # of groups that went before anybody looked
        self._bodies: deque[tuple[int, Any]] = deque(maxlen=MAX_BODIES)
        self._ids = Ids()
        self._db: sqlite3.Connection | None = None
        self._lock = asyncio.Lock()

    def add(self, call: Call) -> None:
        self._pending.append(call)
        if len(self._pending) >= MAX_PENDING:
            self.gather()

    def gather(self) -> None:
        calls, self._pending = self._pending, []
        if not calls:
            return
        made = records(calls, self._ids)
        self._bodies += [(row[0], call.bodies) for call, row in zip(made.calls, made.requests, strict=True) if call.bodies is not None]
        made = msgspec.structs.replace(made, calls=[])       # they hold on to what was asked
        self._groups.append(made)
        self._n_grouped += len(made.requests)
        while self._n_grouped - len(self._groups[0].requests) >= self._max:
            self._let_go(self._groups.popleft())

    def _let_go(self, old: Records) -> None:
        """Its rows go, its sums stay."""
        self._n_grouped -= len(old.requests)
        for sql, key, sums in old.sums:
            table = self._sums.setdefault(sql, {})
            add(table, key, sums)
            if len(table) > MAX_SUMS:
                del table[next(iter(table))]

    async def read(self, sql: str, values: tuple[Any, ...] = ()) -> Iterable[Any]:
        async with self._lock:
            self.gather()
            groups, self._groups, self._n_grouped = self._groups, deque(), 0
            sums, self._sums = self._sums, {}
            bodies = list(self._bodies)
            self._bodies.clear()
            return await asyncio.to_thread(self._read, groups, sums, bodies, sql, values)

    def _read(self, groups: Iterable[Records], sums: dict[str, Sums], bodies: list[tuple[int, Any]], sql: str,
              values: tuple[Any, ...]) -> list[Any]:
        db = self._db = self._db or opened()
        with db:
            for statement, table in sums.items():
                db.executemany(statement, [(*key, *added) for key, added in table.items()])
            for group in groups:
                db.executemany(PUT_REQUEST, group.requests)
                db.executemany(PUT_ATTEMPT, group.attempts)
                for statement, key, added in group.sums:
                    db.execute(statement, (*key, *added))
            for id_, taped in bodies:
                db.executemany(PUT_ARTIFACT, pressed(id_, taped))
            db.execute(TRIM_BODIES, (MAX_BODIES,))
            db.execute(TRIM_REQUESTS, (self._max,))
            db.execute(TRIM_ATTEMPTS)
        return db.execute(sql, values).fetchall()

    async def expire(self, wall: float, days: int) -> int:
        """Bounded by number, not by age."""
        return 0

    async def close(self) -> None:
        async with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def opened() -> "sqlite3.Connection":
    """A database in memory with the tables of this version."""
    import sqlite3

    from gateway.store.migrate import migrations
    db = sqlite3.connect(":memory:", check_same_thread=False)
    for migration in migrations():
        for statement in migration.statements:
            db.execute(statement)
    return db
