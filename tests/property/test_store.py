"""Responses in SQLite behave as responses in memory do, whatever is put, deleted and asked for, written or not."""
import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.store.bounds import Bounds
from gateway.store.memory import MemoryResponses
from gateway.store.responses import SqliteResponses
from gateway.store.sqlite import Reader
from gateway.store.sqlite_file import SqliteFile
from gateway.store.writer import Writer
from tests.unit.store.scene import StillClock, ids, kept

IDS = st.sampled_from(["r0", "r1", "r2", "r3"])
OWNERS = st.sampled_from(["ann", "bob"])
PUT = st.tuples(st.just("put"), IDS, OWNERS, st.sampled_from(["", "r0", "r1", "r2", "r3"]), st.sets(st.sampled_from("xyz"), max_size=2))
DELETE = st.tuples(st.just("delete"), OWNERS, IDS)
CHAIN = st.tuples(st.just("chain"), OWNERS, IDS, st.integers(1, 4))
HOLDING = st.tuples(st.just("holding"), OWNERS, st.lists(st.sampled_from("xyz"), max_size=3))
FLUSH = st.tuples(st.just("flush"))


async def lived(steps, path):
    clock = StillClock()
    writer = Writer(SqliteFile(path), flush_s=3_600)
    reader = Reader(writer.place)
    await writer.open()
    both = (MemoryResponses(clock, Bounds()), SqliteResponses(writer, reader.rows, clock))
    owners = {}
    try:
        for n, (what, *how) in enumerate(steps):
            if what == "flush":
                assert await writer.flush() and not len(both[1]._unwritten)
            elif what == "put":
                id_, owner, previous, items = how
                owner = owners.setdefault(id_, owner)           # ids are random: nobody has another's
                for shelf in both:
                    shelf.put(kept(id_, owner, previous, created=1_000_000.0 + n, items=tuple(f"{id_}{item}" for item in sorted(items))))
            elif what == "delete":
                for shelf in both:
                    shelf.delete(*how)
            elif what == "chain":
                one, other = [ids(await shelf.chain(*how)) for shelf in both]
                assert one == other
            else:
                asked = [f"{id_}{item}" for item in how[1] for id_ in ("r0", "r1")]
                one, other = [ids(await shelf.holding(how[0], asked)) for shelf in both]
                assert one == other
    finally:
        await reader.close()
        await writer.close()


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.one_of(PUT, PUT, DELETE, CHAIN, HOLDING, FLUSH), max_size=20))
def test_both_stores_tell_the_same(steps):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(lived(steps, Path(folder) / "x.db"))
