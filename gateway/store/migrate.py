"""How does a file get the tables of this version? Numbered scripts, each once, all in one transaction."""
import re
import sqlite3
from pathlib import Path
from typing import Final

import aiosqlite
import msgspec

FOLDER: Final = Path(__file__).parent / "migrations"
_NAME: Final = re.compile(r"(\d{3})_[a-z0-9_]+\.sql")


class Migration(msgspec.Struct, frozen=True):
    """``number`` is the file's user_version once it has run."""
    number: int
    name: str
    statements: tuple[str, ...]


class Unfit(Exception):
    """A file that this version cannot use."""


def migrations(folder: Path = FOLDER) -> list[Migration]:
    """All of them, in order; numbers are dense from 001."""
    out = []
    for number, path in enumerate(sorted(folder.glob("*.sql")), 1):
        found = _NAME.fullmatch(path.name)
        if found is None or int(found[1]) != number:
            raise Unfit(f"{path.name} should be number {number:03d}")
        out.append(Migration(number, path.name, statements(path.read_text(encoding="utf-8"))))
    return out


def statements(script: str) -> tuple[str, ...]:
    """The single statements of a script. (``executescript`` would commit the transaction that it is called in.)"""
    out, lines = [], ""
    for line in script.splitlines(keepends=True):
        lines += line
        if sqlite3.complete_statement(lines):
            out.append(lines.strip())
            lines = ""
    return tuple(out)


async def migrate(db: aiosqlite.Connection, known: list[Migration]) -> None:
    """Run what is missing. Whoever else opens the file at the same time waits, and finds it done. Raises Unfit."""
    await db.execute("BEGIN IMMEDIATE")
    try:
        version = await user_version(db)
        if version > len(known):
            raise Unfit(f"was made by a newer version of the gateway (its tables are version {version}, "
                        f"this version knows {len(known)})")
        for migration in known[version:]:
            for statement in migration.statements:
                await db.execute(statement)
        if version < len(known):
            await db.execute(f"PRAGMA user_version = {len(known)}")
    except BaseException:
        await db.execute("ROLLBACK")
        raise
    await db.execute("COMMIT")


async def user_version(db: aiosqlite.Connection) -> int:
    async with db.execute("PRAGMA user_version") as rows:
        row = await rows.fetchone()
    return int(row[0]) if row is not None else 0
