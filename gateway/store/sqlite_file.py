"""How is a file written? SQLite with a write-ahead log: many may read while one writes."""
import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final, cast

import aiosqlite

from gateway.store.migrate import migrate, migrations
from gateway.store.writer import Row, log, reason

BUSY_MS: Final = 5_000
# Rows by one statement. Each step of a statement gives the interpreter's lock away and waits for it again, with the event loop on the
# other side (benchmarks/load/watched.py). Few sizes, so that statements stay prepared.
WIDTHS: Final = (16, 4)
_ROW: Final = re.compile(r"VALUES (\(\?(?:, \?)*\))")
MAX_VALUES: Final = 999                          # of one statement, in SQLite before 3.32


class SqliteFile:
    """``writer.Place`` in a file, which is made, with its folder, for the owner's eyes only."""

    row_errors: tuple[type[Exception], ...] = (
        sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError, OverflowError,
        UnicodeEncodeError)
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = False
        self._db: aiosqlite.Connection | None = None

    @property
    def blind(self) -> bool:
        return not self.opened and self.path.exists()

    async def connect(self) -> None:
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

    async def disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            try:
                await db.close()
            except (sqlite3.Error, ValueError) as error:
                log.warning("the store did not close properly: %s", reason(error))

    async def commit(self, batch: list[Row]) -> None:
        """As one call in the thread of the connection: each way there and back costs 50 µs, and the loop its turn."""
        db = self._db
        assert db is not None
        await cast(Any, db)._execute(_commit, db._conn, batch)


def _commit(db: sqlite3.Connection, batch: list[Row]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for sql, rows in groupby(batch, key=_sql):
            _put(db, sql, [row.values for row in rows])
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _put(db: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """As many together as may be, the rest one by one; in their order."""
    at = 0
    for width in WIDTHS:
        if len(rows) - at < width or width * len(rows[0]) > MAX_VALUES or not (wide := _wide(sql, width)):
            continue
        while len(rows) - at >= width:
            db.execute(wide, tuple(chain.from_iterable(rows[at:at + width])))
            at += width
    db.executemany(sql, rows[at:])


@lru_cache(maxsize=64)
def _wide(sql: str, width: int) -> str:
    """The statement for so many rows; "" where it is not one of a row's values."""
    found = _ROW.search(sql)
    return sql[:found.start(1)] + ", ".join([found[1]] * width) + sql[found.end(1):] if found else ""


def _sql(row: Row) -> str:
    return row.sql
