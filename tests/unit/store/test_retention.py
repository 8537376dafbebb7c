"""What is too old goes, a little at a time: bodies first, rows when the operator says, sums much later."""
import pytest

from gateway.pipeline.captured import Bodies
from gateway.store import reading, retention, totals
from gateway.store.opening import store_at
from tests.unit.store.scene import WALL, StillClock, finished

DAY_S = 86_400


@pytest.fixture(params=["sqlite:", "postgresql:"])
async def store(request, address_of, monkeypatch):
    monkeypatch.setattr(retention, "PAUSE_S", 0)
    kept = store_at(await address_of(request.param), StillClock())
    await kept.open()
    yield kept
    await kept.close()


async def aged(store, *days):
    for n, day in enumerate(days):
        store.ledger.add(finished(n, at=WALL - day * DAY_S, bodies=Bodies((), b"asked", 5, b"answered", 8)))
    await store.ledger.settle()
    await store.writer.flush()


async def names(store):
    return [row.request for row in (await reading.requests(store.ledger.read, limit=500)).requests]


async def counted(store, table):
    return next(n for n, in await store.ledger.read(f"SELECT count(*) FROM {table}", ()))


async def test_rows_live_as_long_as_they_should_and_their_sums_longer(store):
    await aged(store, 2_000, 100, 40, 10, 6, 0)
    await store.ledger.expire(WALL, 30)
    assert await names(store) == ["req-5", "req-4", "req-3"] and await counted(store, "attempts") == 3
    assert await counted(store, "artifacts") == 4, "bodies a week"
    assert [await counted(store, table) for table in ("usage_hourly", "attempts_hourly", "usage_daily")] == [4, 4, 5]
    assert (await totals.totals(store.ledger.read)).requests == 4


async def test_it_goes_bit_by_bit(store, monkeypatch):
    monkeypatch.setattr(retention, "CHUNK", 10)
    await aged(store, *[60] * 25)
    assert await store.ledger.expire(WALL, 30) == 3 + 3 + 3 and await names(store) == []
    assert await store.ledger.expire(WALL, 30) == 0
    monkeypatch.setattr(retention, "MAX_CHUNKS", 1)
    await aged(store, *[60] * 25)
    await store.ledger.expire(WALL, 30)
    assert len(await names(store)) == 25, "a round is bounded; the rest goes with the next"


async def test_bodies_are_bounded_by_number_and_by_size(store, monkeypatch):
    await aged(store, *[0] * 10)
    monkeypatch.setattr(retention, "MAX_ARTIFACTS", 8)
    await store.ledger.expire(WALL, 30)
    await store.writer.flush()
    left = [found for name in reversed(await names(store)) if (found := (await reading.request(store.ledger.read, name)).artifacts)]
    assert len(left) == 4 and (await reading.request(store.ledger.read, "req-9")).artifacts, "the newest stay"
    monkeypatch.setattr(retention, "MAX_ARTIFACT_BYTES", 1)
    await store.ledger.expire(WALL, 30)
    await store.writer.flush()
    assert await counted(store, "artifacts") == 0


async def test_a_disk_that_takes_nothing_ends_the_round(store):
    await aged(store, 60)

    async def broken(batch):
        raise OSError("no room")

    store.writer.place.commit = broken
    assert await store.ledger.expire(WALL, 30) == 0
