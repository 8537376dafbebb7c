"""Records from the command line: how much it was, copies that are whole, tables of this version."""
import asyncio
import json
import sqlite3
import time

import pytest
from click.testing import CliRunner

from gateway.cli import root
from gateway.core.clock import SystemClock
from gateway.store.migrate import migrations
from gateway.store.opening import store_at
from tests.unit.store.scene import attempt, finished


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    (tmp_path / "gateway.toml").write_text("")

    def said(*words, expect=0, input=None):
        done = CliRunner().invoke(root(), [words[0], "--config", str(tmp_path / "gateway.toml"), *map(str, words[1:])], input=input)
        assert done.exit_code == expect, done.output
        return done.output
    return said


def noted(tmp_path, *calls):
    async def work():
        store = store_at(f"sqlite:{tmp_path / 'gateway.db'}", SystemClock())
        await store.open()
        for call in calls:
            store.ledger.add(call)
        await store.close()
    asyncio.run(work())


def test_usage_adds_up_by_what_is_asked(run, tmp_path):
    now = time.time()
    noted(tmp_path, finished(0, at=now), finished(1, at=now, principal="bob", cost=None),
          finished(2, attempt("b", "n", error="timeout"), at=now - 40 * 86_400, outcome="failed"))
    table = run("usage")
    assert "total" in table and "0.0020+" in table and "n " not in table.split("total")[0].splitlines()[2]
    data = json.loads(run("usage", "--by", "key", "--by", "model", "--json"))
    assert [(row["key"], row["model"], row["requests"]) for row in data["rows"]] == [("ann", "m", 1), ("bob", "m", 1)]
    assert data["total"]["requests"] == 2 and data["total"]["unpriced"] == 1 and data["since"] and data["until"] is None
    assert json.loads(run("usage", "--since", "all", "--json"))["total"]["failed"] == 1
    by_day = json.loads(run("usage", "--since", "all", "--by", "day", "--json"))["rows"]
    assert [row["requests"] for row in by_day] == [1, 2] and by_day[0]["day"] < by_day[1]["day"]
    assert json.loads(run("usage", "--since", "all", "--provider", "b", "--by", "hour", "--json"))["total"]["requests"] == 1
    assert json.loads(run("usage", "--key", "nobody", "--json"))["total"]["requests"] == 0
    assert "is no time" in run("usage", "--since", "soon", expect=2)


def test_usage_says_where_there_is_nothing_to_read(run, tmp_path):
    assert "There is no store" in run("usage", expect=1)
    sqlite3.connect(tmp_path / "gateway.db").executescript("CREATE TABLE responses (id)")
    assert "gateway migrate" in run("usage", expect=1)
    (tmp_path / "gateway.toml").write_text('[store]\nurl = "memory:"\n')
    assert "in the gateway's memory" in run("usage", expect=1) and "there is no file" in run("backup", tmp_path / "copy", expect=1)


def test_a_copy_is_whole_private_and_comes_back(run, tmp_path):
    noted(tmp_path, finished(0, at=time.time()))
    copy = tmp_path / "copy.db"
    assert "checked" in run("backup", copy) and copy.stat().st_mode & 0o077 == 0
    assert "is there already" in run("backup", copy, expect=1)
    assert json.loads(run("backup", copy, "--force", "--json"))["version"] == len(migrations())
    noted(tmp_path, *[finished(n, at=time.time()) for n in range(5)])
    assert json.loads(run("usage", "--json"))["total"]["requests"] == 6
    run("restore", copy, input="n\n", expect=1)
    assert json.loads(run("usage", "--json"))["total"]["requests"] == 6
    run("restore", copy, input="y\n")
    assert json.loads(run("usage", "--json"))["total"]["requests"] == 1
    (tmp_path / "gateway.db").unlink()
    run("restore", copy)
    assert json.loads(run("usage", "--json"))["total"]["requests"] == 1


def test_a_copy_is_made_of_a_store_that_is_in_use_and_none_is_put_into_it(run, tmp_path):
    noted(tmp_path, finished(0, at=time.time()))
    run("backup", tmp_path / "copy.db")

    async def work():
        store = store_at(f"sqlite:{tmp_path / 'gateway.db'}", SystemClock())
        await store.open()
        store.ledger.add(finished(1, at=time.time()))
        await store.writer.flush()
        told = await asyncio.to_thread(run, "restore", tmp_path / "copy.db", "--yes", expect=1)
        await asyncio.to_thread(run, "backup", tmp_path / "second.db")
        store.ledger.add(finished(2, at=time.time()))
        await store.writer.flush()
        committed = store.ledger.committed
        await store.close()
        return told, committed
    told, committed = asyncio.run(work())
    assert "is using this store" in told and committed == 2
    with sqlite3.connect(tmp_path / "second.db") as db:
        assert db.execute("SELECT count(*) FROM requests").fetchone() == (2,)
    assert json.loads(run("usage", "--json"))["total"]["requests"] == 3


def test_what_is_no_copy_is_not_put_anywhere(run, tmp_path):
    noted(tmp_path, finished(0, at=time.time()))
    (tmp_path / "letters").write_text("dear friend, " * 1_000)
    assert "is no store" in run("restore", tmp_path / "letters", "--yes", expect=1)
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE letters (text); PRAGMA user_version = 3")
    assert "not a store of a gateway" in run("restore", tmp_path / "other.db", "--yes", expect=1)
    run("backup", tmp_path / "copy.db")
    sqlite3.connect(tmp_path / "copy.db").execute("PRAGMA user_version = 999")
    assert "newer version" in run("restore", tmp_path / "copy.db", "--yes", expect=1)
    assert "no file" in run("restore", tmp_path / "nothing", "--yes", expect=1)
    assert json.loads(run("usage", "--json"))["total"]["requests"] == 1


def test_tables_are_brought_up_to_date(run, tmp_path):
    path = tmp_path / "gateway.db"
    db = sqlite3.connect(path, isolation_level=None)
    for step in migrations()[:3]:
        for statement in step.statements:
            db.execute(statement)
    db.execute("PRAGMA user_version = 3")
    db.close()
    told = run("migrate", "--check", expect=1)
    assert "would run 004_audit" in told and "version 3 of" in told
    data = json.loads(run("migrate", "--json"))
    assert (data["from"], data["to"]) == (3, len(migrations())) and data["steps"][0] == "004_audit"
    assert "ran" not in run("migrate") and run("migrate", "--check")
    assert run("usage")
