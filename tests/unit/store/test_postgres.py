"""Everything that a file keeps, a PostgreSQL server keeps as well: the same ports, the same answers, the same patience."""
import asyncio
import re

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import GatewayError
from gateway.core.keys import AccountRow, GroupRow, KeyRow, Rules, SpentRow
from gateway.core.ports import Change, ComboRow, StateRow
from gateway.store import reading, responses, totals
from gateway.store.lookup import looking
from gateway.store.migrate import migrations
from gateway.store.opening import store_at
from gateway.store.postgres_sql import OWN, script, translated
from gateway.store.seal import Sealer
from gateway.store.vault import vault_at
from gateway.store.writer import Row
from tests.unit.store.scene import StillClock, finished, ids, kept


@pytest.fixture
async def address(pg_server, address_of):
    return await address_of("postgresql:")


@pytest.fixture
async def opened(address, stack):
    async def made(clock=None):
        store = store_at(address, clock or StillClock())
        await store.open()
        assert not store.writer.failing, store.writer.failing
        stack.push_async_callback(store.close)
        return store
    return made


async def written(store):
    assert await store.writer.flush(), store.writer.failing


# ---------------------------------------------------------------- the ports
async def test_responses_are_chained_found_by_items_replaced_and_deleted(opened):
    one = await opened()
    for n in range(3):
        one.responses.put(kept(f"r{n}", previous=f"r{n - 1}" if n else "", items=(f"i{n}", "shared"), created=1_000_000.0 + n))
    one.responses.put(kept("other", owner="bob", items=("i0",)))
    await written(one)
    two = await opened()
    assert ids(await two.responses.chain("ann", "r2", 9)) == ["r2", "r1", "r0"] and ids(await two.responses.chain("ann", "r2", 2)) == ["r2", "r1"]
    assert ids(await two.responses.holding("ann", ["shared", "nothing"])) == ["r2", "r1", "r0"]
    assert await two.responses.chain("bob", "r2", 9) == []
    one.responses.put(kept("r1", previous="r0", items=("new",)))
    one.responses.delete("ann", "r0")
    await written(one)
    assert ids(await two.responses.holding("ann", ["new"])) == ["r1"] and ids(await two.responses.chain("ann", "r1", 9)) == ["r1"]


async def test_responses_stay_within_their_limits(opened):
    store = await opened()
    for n in range(10):
        store.responses.put(kept(f"r{n}", created=1_000_000.0 + n, items=(f"i{n}",)))
    store.writer.put(Row(responses.TRIM, (4, 1 << 30)))
    await written(store)
    assert [len(await store.responses.chain("ann", f"r{n}", 1)) for n in range(10)] == [0] * 6 + [1] * 4
    assert len(list(await store.reader.rows("SELECT 1 FROM response_items"))) == 4, "items go along"


async def test_what_routing_learned_is_there_again(opened):
    one = await opened()
    await one.state.save([StateRow("cool", "a", {"until": 1.5, "why": "x"}, 2_000_000.0), StateRow("cool", "b", {"n": 1}, 2_000_000.0)])
    await one.state.save([StateRow("cool", "a", {"until": 2.5}, 2_000_000.0), StateRow("cool", "b", None, 0.0), StateRow("old", "c", {}, 5.0)])
    await written(one)
    assert await (await opened()).state.load() == [StateRow("cool", "a", {"until": 2.5}, 2_000_000.0)]


async def test_changes_of_operators_are_listed(opened):
    store = await opened()
    for n in range(5):
        store.audit.add(Change(at=float(n), who="session", action="reload", ok=bool(n % 2)))
    await written(store)
    last = await store.audit.last(2)
    assert [(change.number, change.at, change.ok) for change in last] == [(5, 4.0, False), (4, 3.0, True)]
    assert [change.number for change in await store.audit.last(9, before=3)] == [2, 1]


async def test_keys_groups_accounts_and_what_was_spent(opened):
    one, two = await opened(), await opened()
    before = await two.keys.revision()
    row = KeyRow(id="k1", name="ann", sha256="0" * 64, hint="gw-1", created=1.0, rules=Rules())
    await one.keys.put_key(row)
    await one.keys.put_group(GroupRow(name="team", budget_usd_day=5.0))
    await one.keys.put_accounts([AccountRow(provider="a", label="x", key_id="m", nonce=b"\x00n", sealed=b"\xff", created=1.0)])
    assert await two.keys.revision() > before and [found.name for found in await two.keys.keys()] == ["ann"]
    assert [group.name for group in await two.keys.groups()] == ["team"] and (await two.keys.accounts())[0].nonce == b"\x00n"
    await one.keys.drop_group("team")
    await one.keys.drop_account("a", "x")
    assert await two.keys.groups() == [] and await two.keys.accounts() == []
    one.spent.keep([SpentRow("key:ann", "2026-11-30", 5)])
    two.spent.keep([SpentRow("key:ann", "2026-11-30", 7)])
    await written(one)
    await written(two)
    assert [found.nanos for found in await one.spent.spent(["2026-11-30"], mine=False)] == [7]
    assert [found.nanos for found in await one.spent.spent(["2026-11-30"], mine=True)] == [12]


async def test_combos_and_cached_answers(opened):
    one, two = await opened(), await opened()
    await one.combos.change([ComboRow(name="best", place=1, body="{}", changed=1.0)])
    assert [row.name for row in await two.combos.rows()] == ["best"] and await two.combos.revision() == 2
    one.answers.put(b"\x00key", b"\xffvalue", 2_000_000.0)
    one.answers.put(b"old", b"x", 5.0)
    await written(one)
    assert await two.answers.load(1_000_000.0, 10, 1_000) == [(b"\x00key", b"\xffvalue")]


async def test_rotated_tokens_are_there_again_sealed_where_there_is_a_key(address):
    plain = vault_at(address, Sealer())
    assert await plain.load() == {}
    await plain.keep("a 1", "refresh-1")
    await plain.keep("a 1", "refresh-2")
    assert await vault_at(address, Sealer()).load() == {"a 1": "refresh-2"}
    with pytest.raises(OSError, match="cannot be used"):
        await vault_at("postgresql://nobody@/none?host=/nowhere", Sealer()).load()


# ---------------------------------------------------------------- several gateways, lost connections
async def test_two_gateways_make_the_tables_once_and_add_up(address, opened):
    one, two = await asyncio.gather(opened(), opened())
    for n in range(200):
        (one, two)[n % 2].ledger.add(finished(n))
        if n % 20 == 19:
            await asyncio.gather(written(one), written(two))
    assert (await totals.totals(one.ledger.read)).requests == 200
    assert len((await reading.requests(two.ledger.read, limit=500)).requests) == 200
    async with looking(address) as read:
        assert (await totals.totals(read)).requests == 200


async def test_a_connection_that_is_lost_loses_no_row(address, opened, pg_server):
    import asyncpg
    store = await opened()
    store.ledger.add(finished(0))
    await written(store)
    assert (await totals.totals(store.ledger.read)).requests == 1
    master = await asyncpg.connect(pg_server)
    await master.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gateway'")
    await master.close()
    store.ledger.add(finished(1))
    for _ in range(3):
        if await store.writer.flush():
            break
    try:
        await reading.requests(store.ledger.read)
    except GatewayError:
        pass                                     # the first to look after a loss may learn of it
    assert (await totals.totals(store.ledger.read)).requests == 2 and store.reachable


async def test_a_row_that_cannot_be_written_takes_nobody_along(opened):
    store = await opened()
    store.responses.put(kept("r1"))
    store.writer.put(Row(responses.PUT, (None,) * 9))
    store.writer.put(Row(responses.PUT, ("nul\0", "ann", 1.0, "", "", b"", b"", 0, "[]")))
    store.responses.put(kept("r2"))
    await written(store)
    assert store.writer.dropped == 2
    assert [id_ for id_, in await store.reader.rows("SELECT id FROM responses ORDER BY id")] == ["r1", "r2"]


async def test_a_server_that_is_not_there_fails_nothing():
    store = store_at("postgresql://gateway@/none?host=/nowhere", StillClock())
    await store.open()
    assert not store.reachable
    store.ledger.add(finished(0))
    store.responses.put(kept("r1"))
    assert ids(await store.responses.chain("ann", "r1", 9)) == ["r1"] and list(await store.ledger.read("SELECT 1", ())) == []
    with pytest.raises(GatewayError):
        await store.keys.keys()
    await store.close()


async def test_tables_of_a_newer_version_are_left_alone(address, opened):
    await opened()
    import asyncpg
    db = await asyncpg.connect(address)
    await db.execute("UPDATE gateway_tables SET version = 999")
    store = store_at(address, SystemClock())
    await store.open()
    assert "newer version" in store.writer.failing
    await store.close()
    await db.close()


async def test_readers_cannot_write(opened):
    store = await opened()
    with pytest.raises(GatewayError):
        await store.reader.rows("DELETE FROM responses")


# ---------------------------------------------------------------- statements
def test_placeholders_are_numbered_and_types_are_its_own():
    assert translated("SELECT ? WHERE a = ? AND b < ?") == "SELECT $1 WHERE a = $2 AND b < $3"
    for migration in migrations():
        said = re.sub(r"--[^\n]*", "", script(migration))
        assert not re.search(r"\b(INTEGER|REAL|BLOB|ROWID|AUTOINCREMENT)\b", said), migration.name


def test_a_migration_of_its_own_stands_beside_one_of_a_file():
    assert {file.name for file in OWN.iterdir()} <= {migration.name for migration in migrations()}
