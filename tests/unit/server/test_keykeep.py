"""Keys that others changed and money that was spent go to and fro once a second, and a broken store is said once."""
import asyncio

import pytest

from gateway.core.errors import GatewayError
from gateway.core.keys import SpentRow
from gateway.policy.budget import Budgets, scope
from gateway.policy.keybook import KeyBook
from gateway.policy.keys import KeyRing
from gateway.server.keykeep import KeyKeeper
from gateway.store.memory_keys import MemoryKeys
from gateway.store.sqlite import SqliteStore
from tests.unit.store.scene import StillClock

KEY = (scope("key:a", "client key 'a'", 1.0, 0.0),)


class Spent:
    """A store of spending that another process uses too."""

    def __init__(self):
        self.rows, self.others, self.broken = [], [], False

    def keep(self, rows):
        self.rows += rows

    async def spent(self, periods, mine):
        if self.broken:
            raise GatewayError("internal", "cannot be read", status=503)
        return [SpentRow("key:a", period, nanos) for period, nanos in zip(periods, self.others, strict=False)]

    def forget(self, before):
        self.forgotten = before


@pytest.fixture
def scene():
    clock, spent, keys = StillClock(), Spent(), MemoryKeys()
    budgets, ring = Budgets(clock.wall), KeyRing(wall=clock.wall)
    book = KeyBook(keys, ring, clock, budgets)
    return KeyKeeper(book, budgets, spent, clock, every_s=3600), budgets, spent, KeyBook(keys, KeyRing(), clock), ring


async def test_what_was_spent_before_is_known_from_the_start(scene):
    keeper, budgets, spent, _, _ = scene
    spent.others = [7, 9]
    await keeper.open()
    assert budgets.spent("key:a") == (7, 9) and spent.forgotten == "1969-11"
    await keeper.close()


async def test_only_what_changed_is_kept_and_the_rest_at_the_end(scene):
    keeper, budgets, spent, _, _ = scene
    await keeper.open()
    budgets.reserve(KEY, 0).settle(5)
    keeper.keep()
    keeper.keep()
    assert [row.nanos for row in spent.rows] == [5, 5]               # of the day and of the month
    budgets.reserve(KEY, 0).settle(1)
    await keeper.close()
    assert [row.nanos for row in spent.rows] == [5, 5, 6, 6]


async def test_others_changes_and_spending_are_taken_over(scene):
    keeper, budgets, spent, elsewhere, ring = scene
    heard = []

    async def changed():
        heard.append(len(ring.principals))
    keeper.changed = changed
    await keeper.open()
    budgets.reserve(KEY, 0).settle(5)
    await elsewhere.create("ci")
    spent.others = [10, 20]
    await keeper.look()
    await keeper.look()
    assert heard == [1] and budgets.spent("key:a") == (15, 25)
    await keeper.close()


async def test_a_store_that_cannot_be_read_is_said_once(scene, caplog):
    keeper, budgets, spent, _, _ = scene
    budgets.reserve(KEY, 0).settle(5)
    spent.broken = True
    await keeper.open()
    await keeper.look()
    assert caplog.text.count("gateway.keys") == 1 and budgets.spent("key:a") == (5, 5)
    spent.broken = False
    await keeper.look()
    spent.broken = True
    await keeper.look()
    assert caplog.text.count("gateway.keys") == 2
    await keeper.close()


async def test_a_killed_process_loses_nothing_that_was_flushed(tmp_path):
    """The first store is never closed, as with kill -9."""
    clock = StillClock()
    first = SqliteStore(tmp_path / "gw.db", clock)
    await first.open()
    budgets = Budgets(clock.wall)
    keeper = KeyKeeper(KeyBook(first.keys, KeyRing(), clock), budgets, first.spent, clock)
    budgets.reserve(KEY, 0).settle(5)
    keeper.keep()
    await first.writer.flush()
    budgets.reserve(KEY, 0).settle(100)
    second = SqliteStore(tmp_path / "gw.db", clock)
    await second.open()
    again = Budgets(clock.wall)
    later = KeyKeeper(KeyBook(second.keys, KeyRing(), clock), again, second.spent, clock)
    await later.open()
    assert again.spent("key:a") == (5, 5)
    await later.close()
    await asyncio.gather(first.close(), second.close())
