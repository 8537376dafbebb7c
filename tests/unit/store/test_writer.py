"""Rows get onto the disk in batches; a disk that does not take them fails nobody."""
import asyncio
import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from gateway.store import sqlite_file
from gateway.store import writer as writing
from gateway.store.opening import store_at
from gateway.store.responses import DELETE, PUT
from gateway.store.sqlite_file import SqliteFile
from gateway.store.writer import Row, Writer
from tests.unit.store.scene import StillClock, ids, kept


def row(id_, body=b"{}", droppable=True, done=None):
    return Row(PUT, (id_, "ann", 1.0, "", "a/m", body, b"[]", len(body), "[]"), len(body), droppable, done)


def on_disk(path):
    with sqlite3.connect(path) as db:
        return [one for (one,) in db.execute("SELECT id FROM responses ORDER BY rowid")]


async def opened(path, stack, **more):
    writer = Writer(SqliteFile(path), **{"flush_s": 3_600, **more})
    await writer.open()
    stack.push_async_callback(writer.close)
    return writer


async def test_rows_wait_until_the_batch_is_written(tmp_path, stack):
    writer = await opened(tmp_path / "x.db", stack)
    told = []
    for n in range(5):
        writer.put(row(f"r{n}", done=lambda n=n: told.append(n)))
    assert on_disk(writer.place.path) == [] and told == [] and writer.waiting == 5
    assert await writer.flush()
    assert on_disk(writer.place.path) == [f"r{n}" for n in range(5)] and told == [0, 1, 2, 3, 4]
    assert (writer.waiting, writer.written, writer._n_bytes) == (0, 5, 0)


async def test_the_task_writes_by_itself(tmp_path, stack):
    writer = await opened(tmp_path / "x.db", stack, flush_s=0.001)
    written = asyncio.Event()
    writer.put(row("r1", done=written.set))
    await asyncio.wait_for(written.wait(), 10)
    assert on_disk(writer.place.path) == ["r1"]


async def test_order_is_kept_between_statements(tmp_path, stack):
    writer = await opened(tmp_path / "x.db", stack)
    for id_ in ("a", "b"):
        writer.put(row(id_))
    writer.put(Row(DELETE, ("a", "ann")))
    writer.put(Row(DELETE, ("b", "ann")))
    writer.put(row("b"))
    await writer.flush()
    assert on_disk(writer.place.path) == ["b"]


async def test_more_than_a_batch_is_several(tmp_path, stack, monkeypatch):
    monkeypatch.setattr(writing, "BATCH_ROWS", 3)
    writer = await opened(tmp_path / "x.db", stack)
    for n in range(8):
        writer.put(row(f"r{n}"))
    await writer.flush()
    assert len(on_disk(writer.place.path)) == 8


async def test_closing_writes_what_waits(tmp_path):
    writer = Writer(SqliteFile(tmp_path / "x.db"), flush_s=3_600)
    await writer.open()
    writer.put(row("r1"))
    await writer.close()
    assert on_disk(writer.place.path) == ["r1"]
    assert not writer.put(row("late")) and writer.dropped == 1


async def test_above_the_bound_droppable_rows_are_dropped_and_counted_and_others_never(tmp_path, stack):
    writer = await opened(tmp_path / "x.db", stack, max_rows=2, max_bytes=100)
    assert writer.put(row("r1")) and writer.put(row("r2"))
    assert not writer.put(row("r3"))
    assert writer.put(row("ledger", droppable=False))
    assert writer.dropped == 1
    await writer.flush()
    assert on_disk(writer.place.path) == ["r1", "r2", "ledger"]
    assert not writer.put(row("large", b"x" * 101)) and writer.dropped == 2


async def test_a_row_that_cannot_be_written_takes_nobody_along(tmp_path, stack):
    writer = await opened(tmp_path / "x.db", stack)
    told = []
    writer.put(row("r1", done=lambda: told.append("r1")))
    writer.put(Row(PUT, (None,) * 9, 7, done=lambda: told.append("bad")))
    writer.put(row("r2", done=lambda: told.append("r2")))
    assert await writer.flush()
    assert on_disk(writer.place.path) == told == ["r1", "r2"]
    assert (writer.dropped, writer._n_bytes, writer.failing) == (1, 0, "")


async def test_a_place_that_cannot_be_written_is_told_and_tried_again(tmp_path, stack, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    writer = await opened(blocked / "x.db", stack)
    assert writer.failing and not writer.place.opened
    writer.put(row("r1"))
    assert not await writer.flush() and writer.waiting == 1
    assert caplog.text.count("cannot be written") == 1, "said once, however often it is tried"
    assert str(tmp_path) not in caplog.text
    blocked.unlink()
    assert await writer.flush() and not writer.failing
    assert on_disk(writer.place.path) == ["r1"]


async def test_a_full_disk_keeps_rows_until_there_is_room(tmp_path, stack):
    writer = await opened(tmp_path / "x.db", stack)
    (pages,) = await (await writer.place._db.execute("PRAGMA page_count")).fetchone()
    await writer.place._db.execute(f"PRAGMA max_page_count = {pages}")
    for n in range(4):
        writer.put(row(f"r{n}", b"x" * 5_000))
    assert not await writer.flush()
    assert "full" in writer.failing and writer.waiting == 4
    assert await writer.flush(), "a new connection has no such limit"
    assert len(on_disk(writer.place.path)) == 4


async def test_somebody_elses_lock_is_waited_out(tmp_path, stack, monkeypatch):
    monkeypatch.setattr("gateway.store.sqlite_file.BUSY_MS", 1)
    writer = await opened(tmp_path / "x.db", stack)
    other = sqlite3.connect(writer.place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer.put(row("r1"))
    assert not await writer.flush() and "locked" in writer.failing
    other.execute("COMMIT")
    other.close()
    assert await writer.flush()


async def test_a_file_that_is_no_database_stays_as_it_is(tmp_path, stack):
    path = tmp_path / "x.db"
    path.write_bytes(b"somebody's letters, not a database at all" * 100)
    writer = await opened(path, stack)
    assert "not a database" in writer.failing
    writer.put(row("r1"))
    assert not await writer.flush()
    assert path.read_bytes().startswith(b"somebody's letters")


async def test_two_writers_can_open_the_same_new_file(tmp_path, stack):
    one, two = await asyncio.gather(opened(tmp_path / "x.db", stack), opened(tmp_path / "x.db", stack))
    one.put(row("r1"))
    two.put(row("r2"))
    assert all(await asyncio.gather(one.flush(), two.flush()))
    assert sorted(on_disk(one.place.path)) == ["r1", "r2"]


async def test_the_file_is_the_owners_alone(tmp_path, stack):
    writer = await opened(tmp_path / "new" / "x.db", stack)
    assert writer.place.path.stat().st_mode & 0o077 == 0
    assert writer.place.path.parent.stat().st_mode & 0o077 == 0


KILLED = """
import asyncio, os, signal, sys
from gateway.store.sqlite_file import SqliteFile
from gateway.store.writer import Writer
from tests.unit.store.test_writer import row
async def main():
    from pathlib import Path
    writer = Writer(SqliteFile(Path(sys.argv[1])), flush_s=3600)
    await writer.open()
    writer.put(row("flushed"))
    await writer.flush()
    writer.put(row("waiting"))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def test_a_killed_process_loses_at_most_what_was_not_flushed(tmp_path):
    path = tmp_path / "x.db"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=os.getcwd(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert on_disk(path) == ["flushed"]
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_responses_survive_a_restart(tmp_path):
    clock = StillClock()
    for n in range(2):
        store = store_at(f"sqlite:{tmp_path / 'gateway.db'}", clock)
        await store.open()
        store.responses.put(kept(f"r{n}", previous=f"r{n - 1}" if n else "", items=(f"i{n}",)))
        await store.close()
    store = store_at(f"sqlite:{tmp_path / 'gateway.db'}", clock)
    await store.open()
    assert ids(await store.responses.chain("ann", "r1", 9)) == ["r1", "r0"]
    assert ids(await store.responses.holding("ann", ["i0"])) == ["r0"]
    await store.close()


async def test_responses_are_served_from_memory_while_the_disk_takes_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = store_at(f"sqlite:{tmp_path / 'file' / 'x.db'}", StillClock())
    await store.open()
    assert not store.reachable
    store.responses.put(kept("r1"))
    assert ids(await store.responses.chain("ann", "r1", 9)) == ["r1"]
    assert await store.responses.chain("ann", "r2", 9) == []
    await store.close()


async def test_readers_cannot_write(tmp_path):
    store = store_at(f"sqlite:{tmp_path / 'x.db'}", StillClock())
    await store.open()
    try:
        await store.reader.rows("SELECT 1")
        async with store.reader._db.execute("PRAGMA query_only") as rows:
            await rows.fetchone()
        try:
            await store.reader._db.execute("DELETE FROM responses")
        except sqlite3.OperationalError as error:
            assert "readonly" in str(error)
        else:
            raise AssertionError("a reader deleted something")
    finally:
        await store.close()


@pytest.mark.parametrize("n", [1, 3, 4, 16, 23, 85])
def test_rows_put_together_are_the_same_as_one_by_one(n):
    adds = "INSERT INTO t AS old (k, n) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET n = old.n + excluded.n"
    found = []
    for put in (sqlite_file._put, lambda db, sql, rows: db.executemany(sql, rows)):
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER)")
        put(db, adds, [(at % 7, at) for at in range(n)])
        found.append(db.execute("SELECT k, n FROM t ORDER BY k").fetchall())
    assert found[0] == found[1] and len(found[0]) == min(n, 7)


def test_a_statement_that_is_no_row_of_values_is_put_row_by_row():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (k INTEGER)")
    sqlite_file._put(db, "INSERT INTO t (k) SELECT ? + 1", [(at,) for at in range(20)])
    assert db.execute("SELECT sum(k) FROM t").fetchone() == (210,)
