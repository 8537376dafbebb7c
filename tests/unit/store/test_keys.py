"""Both stores keep keys, groups, provider keys and spending alike; a file keeps them over a restart and between processes."""
import asyncio

import pytest

from gateway.core.errors import GatewayError
from gateway.core.keys import AccountRow, Former, GroupRow, KeyRow, Rules, SpentRow
from gateway.store.memory import MemoryStore
from gateway.store.sqlite import SqliteStore
from tests.unit.store.scene import StillClock

KEY = KeyRow(id="key_1", name="ci", sha256="aa" * 32, hint="gw-abcde", created=5.0, note="ünïcode",
             rules=Rules(models=("a/*", "b"), rpm=5, budget_usd_day=0.1, group="team", expires_at=9.5), former=(Former("bb" * 32, 7.0),))
ROW = AccountRow(provider="a", label="k", key_id="id", nonce=b"\0n", sealed=b"\xff\0", created=1.0, table='{"preset":"groq"}')


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    store = MemoryStore(StillClock()) if request.param == "memory" else SqliteStore(tmp_path / "gw.db", StillClock())
    await store.open()
    yield store
    await store.close()


async def test_a_key_comes_back_as_it_was_and_changes_by_id(store):
    await store.keys.put_key(KEY)
    assert await store.keys.keys() == [KEY]
    from msgspec.structs import replace
    changed = replace(KEY, sha256="cc" * 32, revoked=8.0, former=())
    await store.keys.put_key(changed)
    assert await store.keys.keys() == [changed]


async def test_every_change_is_another_revision(store):
    seen = [await store.keys.revision()]
    for change in (store.keys.put_key(KEY), store.keys.put_group(GroupRow(name="g")), store.keys.drop_group("g"),
                   store.keys.put_accounts([ROW]), store.keys.drop_account("a", "k")):
        await change
        seen.append(await store.keys.revision())
    assert sorted(set(seen)) == seen and 0 not in seen


async def test_groups_and_provider_keys_come_back(store):
    await store.keys.put_group(GroupRow(name="team", parent="org", budget_usd_day=0.1))
    await store.keys.put_group(GroupRow(name="team", parent="", budget_usd_month=2.0))
    assert await store.keys.groups() == [GroupRow(name="team", budget_usd_month=2.0)]
    await store.keys.put_accounts([ROW, AccountRow(provider="a", label="l", key_id="id", nonce=b"", sealed=b"", created=2.0)])
    assert [row.label for row in await store.keys.accounts()] == ["k", "l"] and (await store.keys.accounts())[0] == ROW
    await store.keys.drop_account("a", "l")
    assert await store.keys.accounts() == [ROW]


async def opened(path):
    store = SqliteStore(path, StillClock())
    await store.open()
    return store


async def test_two_processes_see_each_other_s_spending_and_not_their_own_twice(tmp_path):
    one, two = await opened(tmp_path / "gw.db"), await opened(tmp_path / "gw.db")
    day = "2026-11-30"
    for nanos in (5, 7):
        one.spent.keep([SpentRow("key:a", day, nanos)])
    two.spent.keep([SpentRow("key:a", day, 100)])
    await one.writer.flush()
    await two.writer.flush()
    assert await one.spent.spent((day,), False) == [SpentRow("key:a", day, 100)]
    assert await two.spent.spent((day, "2026-11"), False) == [SpentRow("key:a", day, 7)]
    await one.close()
    await two.close()
    later = await opened(tmp_path / "gw.db")
    assert await later.spent.spent((day,), True) == [SpentRow("key:a", day, 107)]
    later.spent.forget("2026-12")
    await later.writer.flush()
    assert await later.spent.spent((day,), True) == []
    await later.close()


async def test_a_file_that_cannot_be_opened_may_hold_keys(tmp_path):
    (tmp_path / "gw.db").write_bytes(b"this is no database" * 100)
    store = await opened(tmp_path / "gw.db")
    with pytest.raises(GatewayError):
        await store.keys.keys()
    with pytest.raises(GatewayError):
        await store.keys.put_key(KEY)
    await store.close()


async def test_changes_of_many_at_once_are_all_kept(tmp_path):
    from msgspec.structs import replace
    one, two = await opened(tmp_path / "gw.db"), await opened(tmp_path / "gw.db")
    rows = [replace(KEY, id=f"key_{n}", name=f"n{n}", sha256=f"{n:064x}") for n in range(40)]
    await asyncio.gather(*((one if n % 2 else two).keys.put_key(row) for n, row in enumerate(rows)))
    assert {row.id for row in await one.keys.keys()} == {row.id for row in rows}
    assert await one.keys.revision() == 41
    await one.close()
    await two.close()
