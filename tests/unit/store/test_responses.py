"""Stored responses, in memory and in SQLite: chains, owners, bounds. The same sentences hold for both."""
import pytest

from gateway.store.bounds import Bounds
from gateway.store.memory import MemoryResponses
from gateway.store.responses import SqliteResponses
from gateway.store.sqlite import Reader
from gateway.store.sqlite_file import SqliteFile
from gateway.store.writer import Writer
from tests.unit.store.scene import StillClock, ids, kept

SMALL = Bounds(ttl_s=100, max_count=3, max_bytes=1_000)


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture(params=["memory", "unwritten", "written"])
async def shelf(request, clock, tmp_path, stack):
    """``responses`` and a way to let what was put get to where it is read from."""
    if request.param == "memory":
        shelf = MemoryResponses(clock, SMALL)

        async def settle():
            """Nothing to wait for."""
    else:
        writer = Writer(SqliteFile(tmp_path / "x.db"), flush_s=3_600)
        reader = Reader(writer.place)
        await writer.open()
        stack.push_async_callback(writer.close)
        stack.push_async_callback(reader.close)
        shelf = SqliteResponses(writer, reader.rows, clock, SMALL)

        async def settle():
            if request.param == "written":
                shelf.trim()
                assert await writer.flush()
                assert not len(shelf._unwritten)
    shelf.settle = settle
    return shelf


async def test_a_response_is_found_by_its_owner_only(shelf):
    shelf.put(kept("r1"))
    await shelf.settle()
    assert ids(await shelf.chain("ann", "r1", 5)) == ["r1"]
    assert await shelf.chain("bob", "r1", 5) == []
    assert await shelf.chain("ann", "r2", 5) == []


async def test_all_of_a_response_comes_back(shelf):
    one = kept("r1", previous="r0", items=("i1",))
    shelf.put(one)
    await shelf.settle()
    [found] = await shelf.chain("ann", "r1", 5)
    assert (found.id, found.owner, found.previous, found.body, found.input, found.created, found.target) == \
        (one.id, one.owner, one.previous, one.body, one.input, one.created, one.target)


async def test_a_chain_is_newest_first_and_ends_at_its_depth(shelf):
    for n in range(3):
        shelf.put(kept(f"r{n}", previous=f"r{n - 1}" if n else "", created=1_000_000.0 + n))
    await shelf.settle()
    assert ids(await shelf.chain("ann", "r2", 10)) == ["r2", "r1", "r0"]
    assert ids(await shelf.chain("ann", "r2", 2)) == ["r2", "r1"]
    assert ids(await shelf.chain("ann", "r1", 10)) == ["r1", "r0"]


async def test_a_chain_does_not_pass_through_what_is_somebody_elses(shelf):
    shelf.put(kept("r0"))
    shelf.put(kept("r1", owner="bob", previous="r0"))
    shelf.put(kept("r2", previous="r1"))
    await shelf.settle()
    assert ids(await shelf.chain("ann", "r2", 10)) == ["r2"]


async def test_a_chain_that_bites_its_tail_ends(shelf):
    shelf.put(kept("r1", previous="r2"))
    shelf.put(kept("r2", previous="r1"))
    await shelf.settle()
    assert len(await shelf.chain("ann", "r2", 6)) == 6


async def test_what_was_deleted_is_gone_at_once_and_for_good(shelf):
    for n in range(3):
        shelf.put(kept(f"r{n}", previous=f"r{n - 1}" if n else "", items=(f"i{n}",)))
    await shelf.settle()
    shelf.delete("ann", "r1")
    for _ in range(2):
        assert await shelf.chain("ann", "r1", 5) == []
        assert ids(await shelf.chain("ann", "r2", 5)) == ["r2"]
        assert await shelf.holding("ann", ["i1"]) == []
        await shelf.settle()


async def test_nobody_deletes_what_is_not_theirs(shelf):
    shelf.put(kept("r1"))
    await shelf.settle()
    shelf.delete("bob", "r1")
    assert ids(await shelf.chain("ann", "r1", 5)) == ["r1"]
    await shelf.settle()
    assert ids(await shelf.chain("ann", "r1", 5)) == ["r1"]


async def test_what_is_put_again_after_its_deletion_is_there(shelf):
    shelf.put(kept("r1"))
    shelf.delete("ann", "r1")
    shelf.put(kept("r1"))
    assert ids(await shelf.chain("ann", "r1", 5)) == ["r1"]
    await shelf.settle()
    assert ids(await shelf.chain("ann", "r1", 5)) == ["r1"]


async def test_a_response_is_found_by_its_items(shelf):
    shelf.put(kept("r1", items=("i1", "i2")))
    shelf.put(kept("r2", items=("i3",), created=1_000_001.0))
    await shelf.settle()
    assert ids(await shelf.holding("ann", ["i2", "i3", "i9"])) == ["r2", "r1"]
    assert await shelf.holding("bob", ["i2"]) == []


async def test_old_responses_are_not_found(shelf, clock):
    shelf.put(kept("r1", items=("i1",)))
    await shelf.settle()
    clock.at += 101
    assert await shelf.chain("ann", "r1", 5) == []
    assert await shelf.holding("ann", ["i1"]) == []


@pytest.mark.parametrize("shelf", ["memory", "written"], indirect=True)
async def test_the_oldest_go_when_there_are_too_many(shelf):
    for n in range(5):
        shelf.put(kept(f"r{n}", created=1_000_000.0 + n))
    await shelf.settle()
    assert [n for n in range(5) if await shelf.chain("ann", f"r{n}", 1)] == [2, 3, 4]


@pytest.mark.parametrize("shelf", ["memory", "written"], indirect=True)
async def test_the_oldest_go_when_they_are_too_large(shelf):
    for n in range(3):
        shelf.put(kept(f"r{n}", created=1_000_000.0 + n, size=440))
    await shelf.settle()
    assert [n for n in range(3) if await shelf.chain("ann", f"r{n}", 1)] == [1, 2]


async def test_memory_counts_what_it_holds(clock):
    shelf = MemoryResponses(clock, SMALL)
    for n in range(9):
        shelf.put(kept(f"r{n % 4}", size=100, items=(f"i{n}",)))
        shelf.delete("ann", f"r{n % 3}")
    shelf.put(kept("huge", size=2_000))
    assert shelf.n_bytes == sum(one.n_bytes for one in shelf._kept.values())
    assert set(shelf._by_item.values()) <= set(shelf._kept)
    clock.at += 1_000
    shelf.put(kept("new", created=clock.at))
    assert list(shelf._kept) == ["new"]


async def test_a_file_stays_within_its_limits_by_itself(clock, tmp_path, stack):
    writer = Writer(SqliteFile(tmp_path / "x.db"), flush_s=3_600)
    await writer.open()
    reader = Reader(writer.place)
    stack.push_async_callback(writer.close)
    stack.push_async_callback(reader.close)
    for begin in (0, 50):
        shelf = SqliteResponses(writer, reader.rows, clock, Bounds(max_count=20, max_bytes=10_000))
        await shelf.open()
        for n in range(begin, begin + 50):
            shelf.put(kept(f"r{n}", created=1_000_000.0 + n, size=200))
        await writer.flush()
        [(count, n_bytes)] = await reader.rows("SELECT count(*), total(n_bytes) FROM responses")
        assert 18 <= count <= 20 and n_bytes <= 10_000 and shelf._count >= count
        assert await shelf.chain("ann", f"r{begin + 49}", 1)
