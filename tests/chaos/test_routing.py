"""Combos, sessions and full accounts over real sockets."""
import asyncio

from gateway.mock import script as say
from tests.chaos.test_failover import QUICK
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, ask


async def house(gateway, upstream, combo, a=None, b=None, more=""):
    """Providers a and b behind one combo; who answers says so."""
    up_a, up_b = await upstream(a or say.stream("from a")), await upstream(b or say.stream("from b"))
    base_url = await gateway(client_key() + provider(up_a, "a", keys='["sk-a-123456"]') + provider(up_b, "b", keys='["sk-b-123456"]')
                             + f'[[combos]]\nname = "best"\ntargets = ["a/m", "b/m"]\n{combo}\n' + QUICK + more)
    return base_url


def best(**more):
    return {**ASK, "model": "best", **more}


async def test_a_combo_answers_by_its_strategy_and_is_listed(gateway, upstream):
    base_url = await house(gateway, upstream, 'strategy = "round-robin"')
    seen = [(await ask(base_url, best(), stream=True)).headers["X-Routed-Via"] for _ in range(4)]
    assert seen == ["a/m", "b/m", "a/m", "b/m"]
    listed = await ask(base_url, path="/v1/models", method="GET")
    assert "best" in [row["id"] for row in listed.json["data"]]


async def test_a_session_stays_with_who_answered_it(gateway, upstream):
    base_url = await house(gateway, upstream, 'strategy = "random"')
    for name in ("one", "two", "three"):
        seen = {(await ask(base_url, best(), stream=True, headers={**AUTH, "X-Session-Id": name})).headers["X-Routed-Via"]
                for _ in range(5)}
        assert len(seen) == 1


async def test_a_target_has_its_own_time(gateway, upstream):
    base_url = await house(gateway, upstream, "target_timeout_s = 0.1", a=say.hang())
    got = await ask(base_url, best(), stream=True)
    assert (got.text, got.headers["X-Fallback-Trail"]) == ("from b", "a/m key1=timeout")


async def test_where_nobody_else_is_left_a_place_is_waited_for(gateway, upstream):
    up = await upstream(say.stream("slow", delay_s=0.05))
    base_url = await gateway(client_key() + provider(up, "a", keys='["sk-a-123456"]', limits="{concurrency = 1}"))
    got = await asyncio.gather(*(ask(base_url, {**ASK, "model": "a/m"}, stream=True) for _ in range(5)))
    assert [one.status for one in got] == [200] * 5
    assert len(up.requests) == 5


async def test_virtual_names_are_served_on_every_door(gateway, upstream):
    base_url = await house(gateway, upstream, "")
    for name in ("auto:reliable", "auto/fast", "combo/best"):
        chat = await ask(base_url, {**ASK, "model": name}, stream=False)
        told = await ask(base_url, {**ASK, "model": name, "max_tokens": 9}, path="/v1/messages", stream=False)
        assert (chat.status, told.status) == (200, 200)
    assert (await ask(base_url, {**ASK, "model": "auto:bogus"}, stream=False)).status == 404
