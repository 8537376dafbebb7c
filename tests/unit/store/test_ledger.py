"""Every finished request becomes a row, its attempts become rows, and sums are kept that agree with them."""
import asyncio
import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.store import batch, reading, records, rollups, totals
from gateway.store.batch import Ids
from gateway.store.memory_ledger import MemoryLedger
from gateway.store.opening import store_at
from gateway.store.reading import Wanted
from tests.unit.store.scene import DAY, HOUR, WALL, StillClock, attempt, finished

TWO = (attempt("b", "m", error="rate_limited"), attempt(usage=Usage(input=100, output=10), cost=0.002))


async def noted(store, *calls):
    for call in calls:
        store.ledger.add(call)
    if hasattr(store, "writer"):
        assert await store.writer.flush()
    return store.ledger.read


# ---------------------------------------------------------------- rows
async def test_a_request_and_its_attempts_can_be_read_back(store):
    read = await noted(store, finished(1, *TWO, session="s1", decision="by list", error=None, stream=True))
    story = await reading.request(read, "req-1")
    one = story.request
    assert (one.request, one.provider, one.model, one.routed, one.key, one.client) == ("req-1", "a", "m", "a/m", "ann", "curl")
    assert (one.input, one.output, one.cached, one.reasoning, one.cost_usd, one.estimated) == (100, 10, 40, 3, 0.002, False)
    assert (one.latency_ms, one.upstream_ms, one.overhead_ms, one.attempts, one.stream) == (500.0, 800.0, 0.0, 2, True)
    assert one.ttft_ms == pytest.approx(200.0, abs=0.01) and (one.session, one.decision, one.bytes_out) == ("s1", "by list", 7)
    first, second = story.attempts
    assert (first.n, first.provider, first.outcome, first.error, first.message) == (1, "b", "failed", "rate_limited", "it was rate_limited")
    assert (second.n, second.outcome, second.account, second.ended_ms, second.cost_usd) == (2, "ok", "key1", 500.0, 0.002)
    assert await reading.request(read, one.id) == story and await reading.request(read, "nobody") is None


async def test_pages_go_back_in_time_and_end(store):
    read = await noted(store, *[finished(n, at=WALL + n) for n in range(7)])
    names, cursor, pages = [], "", 0
    while True:
        page = await reading.requests(read, cursor=cursor, limit=3)
        names += [row.request for row in page.requests]
        cursor, pages = page.next, pages + 1
        if not cursor:
            break
    assert names == [f"req-{n}" for n in range(6, -1, -1)] and pages == 3


@pytest.mark.parametrize(("wanted", "found"), [
    (Wanted(key="bob"), [2]), (Wanted(outcome="failed"), [1]), (Wanted(since=WALL + 2), [2]), (Wanted(until=WALL + 1), [0]),
    (Wanted(provider="b"), [1]), (Wanted(error="server_error", key="ann"), [1]), (Wanted(request="req-0"), [0]), (Wanted(model="x"), []),
    (Wanted(since=WALL + 1, until=WALL + 2), [1]), (Wanted(), [2, 1, 0]),
])
async def test_requests_are_found_by_what_one_knows_of_them(store, wanted, found):
    failed = attempt("b", error="server_error")
    read = await noted(store, finished(0), finished(1, failed, outcome="failed", at=WALL + 1, usage=None, cost=0.0, error=failed.error),
                       finished(2, at=WALL + 2, principal="bob"))
    assert [row.request for row in (await reading.requests(read, wanted)).requests] == [f"req-{n}" for n in found]


async def test_text_that_no_database_takes_is_taken(store):
    read = await noted(store, finished(1, session="a\x00b\ud800c", finish="x" * 10_000))
    one = (await reading.requests(read)).requests[0]
    assert one.session == "a\ufffdb\ufffdc" and len(one.finish) <= records.NAME_CHARS


async def test_a_call_that_cannot_be_told_keeps_nobody_from_being_recorded(store, caplog):
    read = await noted(store, finished(1, attempts=[attempt(usage="no usage at all")]))
    await noted(store, finished(2))
    assert [row.request for row in (await reading.requests(read)).requests] == ["req-2"]
    assert "cannot be recorded" in caplog.text


def test_rows_have_the_columns_that_are_read():
    assert reading.RequestRow.__struct_fields__ == records.REQUEST
    assert reading.AttemptRow.__struct_fields__ == records.ATTEMPT[1:]
    assert totals.UsageRow.__struct_fields__ == (*rollups.USAGE_KEY, *rollups.USAGE)
    assert len(records.request_values(1, finished())) == len(records.REQUEST)
    assert len(records.attempt_values(1, 1, attempt(), 0.0)) == len(records.ATTEMPT)


def test_ids_grow_with_time_and_never_repeat():
    one, two = Ids(1), Ids(2)
    given = [ids.next(WALL) for _ in range(1_000) for ids in (one, two)]
    assert len(set(given)) == 2_000 and max(given) < 1 << 63
    later = one.next(WALL + 10)
    assert later > max(given) and one.next(WALL) > later, "a clock that goes back gives no number twice"
    assert batch.first_id(WALL + 10) <= later < batch.first_id(WALL + 10.001)


# ---------------------------------------------------------------- sums
async def test_what_was_refused_or_wrong_itself_is_no_failure(store):
    wrong, lost = finished(1, attempt(error="rejected"), outcome="failed"), finished(2, attempt(error="timeout"), outcome="failed")
    wrong.error, lost.error = GatewayError("rejected", "no", status=400), GatewayError("exhausted", "no", status=502)
    read = await noted(store, finished(0, outcome="refused"), wrong, lost)
    for step in ("hour", "day"):
        row, = await totals.usage(read, step=step)
        assert (row.requests, row.refused, row.failed) == (3, 2, 1)


async def test_sums_are_those_of_the_rows(store):
    read = await noted(store, finished(0), finished(1, at=WALL + 3_600, principal="bob"), finished(2, *TWO, client="codex"))
    await noted(store, finished(3, attempt(error="timeout"), outcome="client_gone", usage=None, cost=None))
    whole = await totals.totals(read)
    assert (whole.requests, whole.ok, whole.gone, whole.failed, whole.attempts) == (4, 3, 1, 0, 5)
    assert (whole.input, whole.output, whole.cached, whole.unpriced, whole.bytes_out) == (300, 30, 120, 1, 28)
    assert whole.cost_usd == pytest.approx(0.006) and whole.latency_ms == pytest.approx(2_000)
    by_key = await totals.usage(read, ["key"])
    assert [(row.key, row.requests) for row in by_key] == [("ann", 3), ("bob", 1)]
    by_hour = await totals.usage(read, step="hour")
    assert [(row.at, row.requests) for row in by_hour] == [(HOUR, 3), (HOUR + 3_600, 1)]
    assert [(row.at, row.requests) for row in await totals.usage(read, step="day")] == [(DAY, 4)]
    assert [(row.client, row.model) for row in await totals.usage(read, ["model", "client"], only={"client": "codex"})] == [("codex", "m")]
    assert await totals.usage(read, since=WALL + 7_200) == [] and (await totals.totals(read, until=WALL - 7_200)).requests == 0


async def test_what_failed_where_is_told_attempt_by_attempt(store):
    read = await noted(store, finished(0, *TWO), finished(1))
    for step in ("", "hour", "day"):
        rows = await totals.fared(read, step=step)
        assert [(row.provider, row.error, row.attempts) for row in rows] == [("a", "", 2), ("b", "rate_limited", 1)]
        assert rows[0].at == {"": 0, "hour": HOUR, "day": DAY}[step]


async def test_percentiles_are_right_to_a_twentieth(store):
    read = await noted(store, *[finished(n, took_s=(n + 1) / 1_000, first_token_at=10.0 + (n + 1) / 2_000) for n in range(1_000)])
    latency, overhead, ttft = await totals.timings(read, by=["provider", "model"])
    assert (latency.measure, ttft.measure, overhead.measure, latency.n, latency.model) == ("latency", "ttft", "overhead", 1_000, "m")
    for timing, scale in ((latency, 1.0), (ttft, 0.5)):
        for value, exact in ((timing.p50, 500), (timing.p90, 900), (timing.p95, 950), (timing.p99, 990)):
            assert value == pytest.approx(exact * scale, rel=0.051)
    assert [timing.at for timing in await totals.timings(read, step="hour", only={"provider": "a"})] == [HOUR] * 3
    assert await totals.timings(read, only={"provider": "z"}) == []


async def test_memory_keeps_the_last_and_the_sums_of_all():
    ledger = MemoryLedger(max_requests=300)
    for n in range(2_000):
        ledger.add(finished(n))
    assert len((await reading.requests(ledger.read, limit=500)).requests) == 300
    assert (await totals.totals(ledger.read)).requests == 2_000
    for n in range(300):
        ledger.add(finished(n))
    assert len((await reading.requests(ledger.read, limit=500)).requests) == 300
    assert len(list(await ledger.read("SELECT 1 FROM attempts", ()))) == 300
    assert (await totals.totals(ledger.read)).requests == 2_300
    await ledger.close()


# ---------------------------------------------------------------- trouble
async def test_a_disk_that_takes_nothing_costs_details_first_and_then_the_oldest_promise(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = store_at(f"sqlite:{tmp_path / 'file' / 'x.db'}", StillClock())
    store.writer._max_rows = 1_000
    await store.open()
    for n in range(20_000):
        store.ledger.add(finished(n))
    assert store.ledger.dropped > 10_000 and store.ledger.lost > 10_000 and store.writer.waiting < 4_000
    (tmp_path / "file").unlink()
    assert await store.writer.flush()
    kept = store.ledger.committed
    assert kept and kept + store.ledger.lost == 20_000 - len(store.ledger._pending)
    assert (await totals.totals(store.ledger.read)).requests == kept, "sums are those of the rows that are there"
    await store.close()


async def test_requests_and_their_sums_are_one_transaction(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.store.writer.BATCH_ROWS", 3)
    store = store_at(f"sqlite:{tmp_path / 'x.db'}", StillClock())
    await store.open()
    batches, commit = [], store.writer.place.commit

    async def counted(batch):
        batches.append(len(batch))
        await commit(batch)

    store.writer.place.commit = counted
    await noted(store, *[finished(n) for n in range(10)])
    assert len(batches) == 1 and batches[0] > 20
    await store.close()


KILLED = """
import asyncio, os, signal, sys
from gateway.core.clock import SystemClock
from gateway.store.opening import store_at
from tests.unit.store.scene import finished
async def main():
    store = store_at("sqlite:" + sys.argv[1], SystemClock())
    await store.open()
    n = 0
    while store.ledger.committed < 3_000:
        for _ in range(50):
            store.ledger.add(finished(n))
            n += 1
        await asyncio.sleep(0.001)
    print(store.ledger.committed, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def test_every_request_that_counted_as_committed_outlives_a_kill(tmp_path):
    path = tmp_path / "x.db"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=os.getcwd(), check=False, capture_output=True, timeout=50)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (rows,), (sums,) = (db.execute(sql).fetchone() for sql in ("SELECT count(*) FROM requests", "SELECT sum(requests) FROM usage_hourly"))
        assert rows == sums >= int(done.stdout) >= 3_000


async def test_looking_does_not_wait_for_writing(tmp_path):
    store = store_at(f"sqlite:{tmp_path / 'x.db'}", StillClock())
    await store.open()
    await noted(store, finished(1))
    other = sqlite3.connect(store.writer.place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    found = await asyncio.wait_for(reading.requests(store.ledger.read), 5)
    assert len(found.requests) == 1
    other.execute("ROLLBACK")
    other.close()
    await store.close()
