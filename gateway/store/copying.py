"""How is a file of records copied, put back, or brought up to date? Whole and checked, also while a gateway writes to it.

For commands: everything here blocks. Raises ``Unfit`` with what is wrong in words.
"""
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gateway.store.migrate import Unfit, migrations

PAGES: Final = 2_000             # copied at a time: what others write in between is copied too
BUSY_S: Final = 5.0
Progress = Callable[[int, int], None]


def version(path: Path) -> int:
    """The version of its tables; raises Unfit where this is no store of ours, or one of a newer gateway."""
    if not path.is_file():
        raise Unfit(f"there is no file {path}")
    try:
        with _opened(path, "ro") as db:
            (found,), = db.execute("PRAGMA user_version").fetchall()
            ours = found == 0 or db.execute("SELECT 1 FROM sqlite_master WHERE name = 'responses'").fetchall()
    except sqlite3.Error as error:
        raise Unfit(f"{path} is no store: {error}") from None
    finally:
        if "db" in locals():
            db.close()
    if not ours:
        raise Unfit(f"{path} is a database, but not a store of a gateway")
    if found > len(migrations()):
        raise Unfit(f"{path} was made by a newer version of the gateway (its tables are version {found}, this version knows "
                    f"{len(migrations())})")
    return int(found)


def backup(source: Path, target: Path, progress: Progress) -> int:
    """A copy that stands for one moment, for the owner's eyes only; returns its bytes. What was at ``target`` is replaced at the
    end, all at once."""
    version(source)
    draft = target.with_name(target.name + ".part")
    draft.unlink(missing_ok=True)
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _copy(source, draft, progress)
        sound(draft)
        draft.replace(target)
    except sqlite3.Error as error:
        raise Unfit(f"{source} cannot be copied: {error}") from None
    finally:
        draft.unlink(missing_ok=True)
    return target.stat().st_size


def restore(source: Path, target: Path, progress: Progress) -> None:
    """Put a copy in the place of a store that nobody uses. Either all of it is there afterwards, or what was there before."""
    version(source)
    sound(source)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if target.exists():
        alone(target)
    target.touch(0o600)
    try:
        _copy(source, target, progress)
    except sqlite3.Error as error:
        raise Unfit(f"the store cannot be written: {error}") from None


def alone(path: Path) -> None:
    """Raises Unfit where somebody has this store open: a database leaves the write-ahead log only for one who is alone."""
    db = _opened(path, "rw", timeout_s=0.2)
    try:
        (mode,), = db.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        if "not a database" in str(error):
            raise Unfit(f"{path} is no store, and is left as it is") from None
        mode = "locked"
    finally:
        db.close()
    if mode != "delete":
        raise Unfit("a gateway is using this store; stop it first")


def sound(path: Path) -> None:
    """Raises Unfit where the file is damaged."""
    db = _opened(path, "ro")
    try:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    except sqlite3.Error as error:
        found = [str(error)]
    finally:
        db.close()
    if found != ["ok"]:
        raise Unfit(f"{path} is damaged: {'; '.join(found)}")


def _copy(source: Path, target: Path, progress: Progress) -> None:
    one, other = _opened(source, "ro"), _opened(target, "rw")
    try:
        one.backup(other, pages=PAGES, progress=lambda status, left, total: progress(total - left, total))
    finally:
        one.close()
        other.close()


def _opened(path: Path, mode: str, timeout_s: float = BUSY_S) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=timeout_s, isolation_level=None)
