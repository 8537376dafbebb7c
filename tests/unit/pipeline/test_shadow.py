"""A copy goes to another target; the client neither waits nor pays nor hears of it."""
import asyncio
import json

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ASK, ask
from tests.unit.config.files import good, refused
from tests.unit.config.files import upstream as one
from tests.unit.pipeline.test_explaining import Kept

RULE = '[[routing.shadow]]\ntarget = "b/n"\n'


async def house(gateway, upstream, shadow, rule=RULE, main=None, **settings):
    """``a`` serves m, ``b`` gets the copies."""
    a, b = await upstream(main or say.stream("from a")), await upstream(shadow)
    base_url = await gateway(client_key() + rule + provider(a, "a", keys='["sk-a-123456"]')
                             + provider(b, "b", '["n"]', keys='["sk-b-123456"]', **settings))
    kept = gateway.listener.desk.ground.journal = Kept()
    return a, b, base_url, kept.calls


async def until(true, seconds=2.0):
    for _ in range(int(seconds * 100)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come")


@pytest.mark.parametrize("stream", [True, False])
async def test_the_copy_is_asked_as_the_client_asked_and_recorded_apart(gateway, upstream, stream):
    a, b, base_url, calls = await house(gateway, upstream, say.stream("from b") if stream else say.reply("from b"))
    got = await ask(base_url, stream=stream)
    assert got.status == 200 and b"from b" not in got.body and got.headers["X-Routed-Via"] == "a/m"
    await until(lambda: len(calls) == 2)
    main, copy = calls
    asked = json.loads(b.requests[0].body)
    assert (asked["model"], asked["messages"], asked.get("stream", False)) == ("n", ASK["messages"], stream)
    assert (main.role, copy.role, copy.id, copy.principal) == ("", "shadow", f"{main.id}-shadow", "")
    assert (copy.outcome, copy.routed, copy.finish, copy.usage.total, copy.status) == ("ok", "b/n", "stop", 12, 200)
    assert [attempt.label for attempt in main.attempts] == ["a/m"]
    await until(lambda: not gateway.listener.parts.extras.shadows)


async def test_what_becomes_of_it_is_nobodys_business(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.error(503))
    for _ in range(3):
        assert (await ask(base_url, stream=True)).text == "from a"
    await until(lambda: len(calls) == 6)
    assert {call.error.kind for call in calls if call.role} == {"overloaded"}
    health, target = gateway.listener.parts.health, gateway.listener.desk.ground.catalog.targets[1]
    assert target.label == "b/n" and health.stats.get(target.candidates[0].key) is None
    assert health.cooldown(target.candidates[0], asyncio.get_running_loop().time()) is None


async def test_a_silent_one_holds_nobody_up_and_ends_in_time(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.hang(), RULE + "timeout_s = 0.3\n")
    assert (await ask(base_url, stream=True)).text == "from a"
    await until(lambda: len(calls) == 2)
    assert calls[1].error.kind == "timeout"
    await b.until(lambda: not b.open_connections)


async def test_there_are_only_so_many_at_a_time(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.hang(), RULE + "concurrency = 2\n")
    for _ in range(5):
        assert (await ask(base_url, stream=True)).text == "from a"
    await b.until(lambda: b.busy == 2)
    assert len(gateway.listener.parts.extras.shadows) == 2


async def test_a_stopping_gateway_leaves_them_at_once(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.hang())
    await ask(base_url, stream=True)
    await b.until(lambda: b.busy == 1)
    await gateway.listener.parts.extras.close()
    await b.until(lambda: not b.open_connections)
    assert calls[1].error.kind == "shed" and not gateway.listener.parts.extras.shadows


@pytest.mark.parametrize(("rule", "n"), [
    ('models = ["m"]\n', 1), ('models = ["gpt-*"]\n', 0), ('models = ["gpt-*", "M"]\n', 1), ("share = 0.0\n", 0)])
async def test_only_what_was_meant_is_copied(gateway, upstream, rule, n):
    a, b, base_url, calls = await house(gateway, upstream, say.stream("from b"), RULE + rule)
    await ask(base_url, stream=True)
    await until(lambda: len(calls) == 1 + n)
    await asyncio.sleep(0.05)
    assert len(b.requests) == n


async def test_a_share_is_a_share(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.stream("from b"), RULE + "share = 0.5\n")

    class Dice:
        rolls = [0.4, 0.6, 0.5, 0.1]

        def random(self):
            return self.rolls.pop(0)
    gateway.listener.parts.health.dice = Dice()
    for _ in range(4):
        await ask(base_url, stream=True)
    await until(lambda: len(calls) == 6)


async def test_an_account_that_clients_need_is_left_to_them(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.stream("from b"), limits="{rpm = 4}")
    for _ in range(6):
        assert (await ask(base_url, stream=True)).text == "from a"
        await until(lambda: not gateway.listener.parts.extras.shadows)
    assert 1 <= len(b.requests) <= 3


async def test_who_rests_gets_no_copy(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, [say.error(401, "bad key"), say.stream("from b")])
    assert (await ask(base_url, {**ASK, "model": "b/n"})).status == 502
    await until(lambda: not gateway.listener.parts.extras.shadows)
    asked = len(b.requests)
    await ask(base_url, stream=True)
    await until(lambda: not gateway.listener.parts.extras.shadows)
    assert len(b.requests) == asked


async def test_a_refused_request_is_not_copied(gateway, upstream):
    a, b, base_url, calls = await house(gateway, upstream, say.stream("from b"))
    assert (await ask(base_url, headers={})).status == 401
    assert (await ask(base_url, {"model": "nobody"})).status in (400, 404)
    assert not gateway.listener.parts.extras.shadows and not b.requests


def test_a_copy_must_lead_somewhere():
    assert list(refused(one() + '[[routing.shadow]]\ntarget = "a/unknown"\n')) == ["routing.shadow[0].target"]
    assert list(refused(one() + '[[routing.shadow]]\ntarget = "a/m"\nmodels = [""]\n')) == ["routing.shadow[0].models[0]"]
    assert good(one() + '[[routing.shadow]]\ntarget = "a/m"\n').routing.shadow[0].share == 1.0
    assert [path for path, _ in good(one() + '[[routing.shadow]]\ntarget = "a/m"\nshare = 0\n').warnings] == ["routing.shadow[0]"]
