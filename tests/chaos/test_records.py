"""Does a look into the file after `kill -9` find all that was counted, and would it say so if it did not?"""
import sqlite3
from contextlib import closing

import pytest

from benchmarks.soak.records import killed, wrong


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a gateway leaves that was killed under load: the file, and the rows that it had counted."""
    folder = tmp_path_factory.mktemp("killed")
    return folder / "gateway.db", killed(str(folder), 200)


def test_what_was_counted_before_a_kill_is_there(left):
    file, n_counted = left
    n_rows, problems = wrong(str(file), n_counted)
    assert not problems and n_rows >= n_counted >= 200


@pytest.mark.parametrize("change, said", [
    ("DELETE FROM requests", "are there"),
    ("DELETE FROM attempts WHERE request_id = (SELECT max(id) FROM requests)", "attempts"),
    ("UPDATE usage_hourly SET input = input + 1", "the sums of usage_hourly"),
    ("UPDATE usage_daily SET requests = requests - 1", "the sums of usage_daily"),
    ("UPDATE requests SET request = 'twice' WHERE id IN (SELECT id FROM requests LIMIT 2)", "twice"),
])
def test_what_is_missing_or_added_is_told(left, tmp_path, change, said):
    file, n_counted = left
    copy = tmp_path / "gateway.db"
    with closing(sqlite3.connect(file)) as db, closing(sqlite3.connect(copy)) as changed:
        db.backup(changed)
        changed.execute(change)
        changed.commit()
    assert any(said in line for line in wrong(str(copy), n_counted)[1])
