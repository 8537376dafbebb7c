"""Tables come from numbered scripts: each runs once, and a fresh file equals one that grew up."""
import sqlite3

import aiosqlite
import pytest

from gateway.store.migrate import FOLDER, Unfit, migrate, migrations, statements, user_version


async def tables(db):
    async with db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name") as rows:
        return [tuple(row) for row in await rows.fetchall()]


def test_numbers_are_dense_and_every_file_is_one():
    known = migrations()
    assert [one.number for one in known] == list(range(1, len(known) + 1))
    assert {one.name for one in known} == {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert all(one.statements for one in known)


@pytest.mark.parametrize("names", [["002_late.sql"], ["001_a.sql", "001_b.sql"], ["1_short.sql"], ["001_A.sql"]])
def test_a_gap_or_a_wrong_name_is_refused(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(Unfit):
        migrations(tmp_path)


async def test_a_fresh_file_equals_one_that_was_migrated_step_by_step():
    known = migrations()
    async with aiosqlite.connect(":memory:", isolation_level=None) as fresh, \
            aiosqlite.connect(":memory:", isolation_level=None) as grown:
        await migrate(fresh, known)
        for n in range(1, len(known) + 1):
            await migrate(grown, known[:n])
        assert await tables(fresh) == await tables(grown) != []
        assert await user_version(fresh) == await user_version(grown) == len(known)


async def test_what_has_run_does_not_run_again():
    async with aiosqlite.connect(":memory:", isolation_level=None) as db:
        for _ in range(2):
            await migrate(db, migrations())


async def test_a_script_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "001_a.sql").write_text("CREATE TABLE a (x);\nCREATE TABLE b (;\n")
    async with aiosqlite.connect(":memory:", isolation_level=None) as db:
        with pytest.raises(sqlite3.OperationalError):
            await migrate(db, migrations(tmp_path))
        assert await tables(db) == []
        assert await user_version(db) == 0


async def test_a_file_of_a_newer_version_is_refused():
    async with aiosqlite.connect(":memory:", isolation_level=None) as db:
        await db.execute("PRAGMA user_version = 999")
        with pytest.raises(Unfit, match="newer version"):
            await migrate(db, migrations())


def test_a_script_is_cut_at_the_ends_of_its_statements():
    script = ("-- one; two\nCREATE TABLE a (x TEXT DEFAULT ';');\n\nCREATE TRIGGER t AFTER DELETE ON a BEGIN\n"
              "  DELETE FROM a;\n  DELETE FROM a;\nEND;\n")
    assert [one.split()[-1] for one in statements(script)] == ["';');", "END;"]


async def test_responses_of_the_first_version_keep_their_items():
    known = migrations()
    async with aiosqlite.connect(":memory:", isolation_level=None) as db:
        await migrate(db, known[:1])
        await db.execute("INSERT INTO responses VALUES ('r1', 'ann', 1.0, '', 'a/m', '{}', '[]', 4)")
        await db.execute("INSERT INTO response_items VALUES ('i1', 'r1'), ('i2', 'r1')")
        await migrate(db, known)
        async with db.execute("SELECT items FROM responses") as rows:
            assert [row[0] for row in await rows.fetchall()] == ['["i1","i2"]']
        await db.execute("DELETE FROM responses")
        async with db.execute("SELECT count(*) FROM response_items") as rows:
            assert (await rows.fetchone())[0] == 0
