"""What routing learned is there again after a restart, and a store that fails stops nobody."""
from gateway.routing.health import Health
from gateway.server.keep import Keeper
from gateway.store.memory import MemoryState
from gateway.store.sqlite import SqliteStore
from tests.unit.routing.scene import WALL, catalog, error, provider

HOUSE = catalog(provider("a", "m"))
[CANDIDATE] = HOUSE.targets[0].candidates


class Hands:
    """A clock that is set."""

    def __init__(self, now):
        self.at = now

    def now(self):
        return self.at

    def wall(self):
        return WALL + self.at


async def test_a_cooldown_outlives_the_process():
    store, before = MemoryState(), Health()
    keeper = Keeper(before, store, Hands(1000.0))
    await keeper.open()
    before.failed(CANDIDATE, error("rate_limited", 600), 1000.0, WALL + 1000)
    await keeper.close()
    after = Health()
    clock = Hands(1100.0)
    again = Keeper(after, store, clock)
    await again.open()
    assert after.blocked(CANDIDATE, 1100.0) == (1600.0, "rate_limited")
    after.cleared(CANDIDATE)
    await again.close()
    assert not [row for row in store.rows.values() if row.book == "cooldown"]


async def test_what_could_not_be_written_is_written_later():
    class Broken(MemoryState):
        broken = True

        async def load(self):
            raise OSError("no disk")

        async def save(self, rows):
            if self.broken:
                raise OSError("no disk")
            await super().save(rows)

    store, health = Broken(), Health()
    keeper = Keeper(health, store, Hands(1000.0))
    await keeper.open()
    health.failed(CANDIDATE, error("auth"), 1000.0, WALL)
    await keeper.save()
    assert not store.rows
    store.broken = False
    await keeper.close()
    assert [row.book for row in store.rows.values()] == ["cooldown"]


async def test_a_file_keeps_it_too(tmp_path):
    clock = Hands(1000.0)
    store, before = SqliteStore(tmp_path / "g.db", clock), Health()
    await store.open()
    keeper = Keeper(before, store.state, clock)
    await keeper.open()
    before.failed(CANDIDATE, error("out_of_credits"), 1000.0, WALL)
    await keeper.close()
    await store.close()
    later, after = SqliteStore(tmp_path / "g.db", clock), Health()
    await later.open()
    again = Keeper(after, later.state, clock)
    await again.open()
    assert after.blocked(CANDIDATE, 1000.0)[1] == "out_of_credits"
    after.cleared(CANDIDATE)
    await again.close()
    await later.close()
