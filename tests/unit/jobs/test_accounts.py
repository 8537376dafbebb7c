"""Provider keys of the store: sealed there, used like the configuration's, gone when they are removed; never shown."""
import asyncio
import logging

import aiohttp
import pytest

from gateway.config.load import loads
from gateway.core.errors import GatewayError
from gateway.core.secret import Secret
from gateway.jobs.accounts import Accounts
from gateway.mock.script import reply
from gateway.store.memory_keys import MemoryKeys
from gateway.store.seal import Sealer
from tests.conftest import provider
from tests.unit.store.scene import StillClock

OLD, NEW = Secret("11" * 32), Secret("22" * 32)
A = '[[providers]]\nid = "a"\nbase_url = "https://a.example/v1"\napi_keys = ["sk-own"]\nmodels = ["m"]\n'
TABLE = {"base_url": "https://x.example/v1", "models": ["m", {"id": "n", "context": 8000}]}


@pytest.fixture
def store():
    return MemoryKeys()


@pytest.fixture
def accounts(store):
    return Accounts(store, Sealer([OLD]), StillClock())


async def applied(accounts, text=""):
    await accounts.refresh()
    return accounts.apply(loads(text))


def keys(snapshot):
    return {provider.id: [account.key.reveal() for account in provider.accounts] for provider in snapshot.providers}


async def test_a_stored_key_is_one_more_account_of_its_provider(accounts, store):
    assert await accounts.add("a", "sk-more", configured=True) == {"provider": "a", "label": "stored1"}
    await accounts.add("a", "sk-third", "third", configured=True)
    snapshot = await applied(accounts, A)
    assert keys(snapshot) == {"a": ["sk-own", "sk-more", "sk-third"]}
    assert [(one.ordinal, one.label) for one in snapshot.providers[0].accounts] == [(1, "key1"), (2, "stored1"), (3, "third")]
    assert {"sk-more", "sk-third"} <= set(snapshot.secrets)
    assert not any(b"sk-" in row.sealed for row in await store.accounts())


async def test_a_key_that_the_configuration_has_too_is_one_account(accounts):
    await accounts.add("a", "sk-own", configured=True)
    assert keys(await applied(accounts, A)) == {"a": ["sk-own"]}


async def test_a_provider_of_the_catalogue_comes_with_its_key(accounts):
    await accounts.add("groq", "gsk-1")
    snapshot = await applied(accounts, A)
    assert keys(snapshot) == {"a": ["sk-own"], "groq": ["gsk-1"]}
    assert snapshot.providers[1].base_url.startswith("https://api.groq.com") and snapshot.providers[1].order == 1


async def test_a_provider_of_one_s_own_comes_with_its_table(accounts):
    await accounts.add("x", "sk-x", table=TABLE)
    snapshot = await applied(accounts)
    assert list(snapshot.providers[0].models) == ["m", "n"] and snapshot.providers[0].models["n"].context == 8000


async def test_without_stored_keys_the_configuration_is_the_very_same(accounts):
    snapshot = loads(A)
    await accounts.refresh()
    assert accounts.apply(snapshot) is snapshot


@pytest.mark.parametrize(("id", "key", "more", "param"), [
    ("no/slash", "sk", {}, "provider"), ("nobody", "sk", {}, "table.base_url"), ("groq", "two words", {}, "key"), ("groq", "", {}, "key"),
    ("groq", "sk", {"label": "a b"}, "label"), ("x", "sk", {"table": {**TABLE, "api_keys": ["k"]}}, "api_keys"),
    ("x", "sk", {"table": {**TABLE, "headers": {"x": "y"}}}, "headers"),
    ("x", "sk", {"table": {"base_url": "https://${file:/etc/passwd}/v1", "models": ["m"]}}, "table"),
    ("x", "sk", {"table": {**TABLE, "wire": "smoke"}}, "wire"),
])
async def test_what_cannot_be_used_is_refused_by_its_field(accounts, store, id, key, more, param):
    with pytest.raises(GatewayError) as caught:
        await accounts.add(id, key, **more)
    assert caught.value.param == param and not await store.accounts()


async def test_without_a_master_key_nothing_is_stored(store):
    with pytest.raises(GatewayError, match="openssl rand"):
        await Accounts(store, Sealer(), StillClock()).add("groq", "gsk-1")
    assert not await store.accounts()


async def test_a_key_that_does_not_open_is_said_once_and_not_used(accounts, store, caplog):
    await accounts.add("groq", "gsk-1")
    locked = Accounts(store, Sealer([NEW]), StillClock())
    with caplog.at_level(logging.ERROR):
        assert keys(await applied(locked, A)) == {"a": ["sk-own"]}
        await applied(locked, A)
    assert caplog.text.count("not configured") == 1 and "gsk-1" not in caplog.text
    assert "not configured" in (await locked.listed())[0]["state"]


async def test_a_row_moved_to_another_provider_does_not_open(accounts, store):
    await accounts.add("groq", "gsk-1")
    row, = await store.accounts()
    import msgspec
    await store.put_accounts([msgspec.structs.replace(row, provider="openai")])
    states = {one["provider"]: one["state"] for one in await accounts.listed()}
    assert states["groq"] == "ok" and "belongs to something else" in states["openai"]


async def test_what_is_listed_holds_no_key(accounts):
    await accounts.add("groq", "gsk-secret-1")
    assert "gsk-secret-1" not in str(await accounts.listed())


async def test_all_are_sealed_anew_or_none(accounts, store):
    await accounts.add("groq", "gsk-1")
    both = Accounts(store, Sealer([NEW, OLD]), StillClock())
    assert await both.reencrypt() == 1
    assert keys(await applied(Accounts(store, Sealer([NEW]), StillClock())))["groq"] == ["gsk-1"]
    before = await store.accounts()
    with pytest.raises(GatewayError, match="nothing was changed"):
        await accounts.reencrypt()
    assert await store.accounts() == before


async def test_a_removed_key_is_gone(accounts):
    await accounts.add("groq", "gsk-1")
    await accounts.remove("groq", "stored1")
    assert keys(await applied(accounts)) == {}
    with pytest.raises(GatewayError, match="holds no key"):
        await accounts.remove("groq", "stored1")


async def test_a_running_gateway_uses_a_key_as_soon_as_it_is_kept(upstream, gateway, stack):
    up = await upstream(reply("Hello"))
    base = await gateway(provider(up) + f'[store]\nmaster_key = "{OLD.reveal()}"\n')
    parts = gateway.listener.parts
    http = await stack.enter_async_context(aiohttp.ClientSession())

    async def used():
        seen = set()
        for _ in range(4):
            async with http.post(base + "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "Hi"}]}) as answer:
                assert answer.status == 200
            seen.add(up.requests[-1].headers["authorization"])
        return seen
    assert await used() == {"Bearer sk-up-1"}
    await parts.accounts.add("up", "sk-stored", configured=True)
    assert await used() == {"Bearer sk-up-1", "Bearer sk-stored"}
    await parts.accounts.remove("up", "stored1")
    assert await used() == {"Bearer sk-up-1"}


async def test_a_key_that_another_process_kept_is_taken_over(upstream, gateway, tmp_path):
    from gateway.server.compose import with_store
    up = await upstream(reply("Hello"))
    await gateway(provider(up) + f'[store]\nurl = "sqlite:{tmp_path}/gw.db"\nmaster_key = "{OLD.reveal()}"\n')
    desk, keeper = gateway.listener.desk, gateway.listener.parts.keykeeper
    await with_store(desk.ground.snapshot, lambda store: store.accounts.add("groq", "gsk-1"))
    await asyncio.gather(keeper.look())
    assert desk.ground.catalog.providers["groq"].accounts[0].key.reveal() == "gsk-1"
