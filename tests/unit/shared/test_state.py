"""What two processes know together: limits are never passed, what one tells the other hears, and a value is found by both."""
import asyncio

import pytest

from gateway.core.errors import GatewayError
from gateway.core.ports import LeaseAsk
from gateway.policy.budget import Budgets, Scope
from gateway.policy.leases import Leases
from gateway.policy.limits import Limits
from gateway.providers.registry import Ceiling
from tests.unit.shared.conftest import until


async def take(state, kind="minute", limit=10, want=10, least=1, **more):
    (grant,) = await state.lease([LeaseAsk(f"x-{kind}", kind, limit, want, least, **more)])
    return grant


@pytest.mark.parametrize("kind", ["minute", "day", "held"])
async def test_all_together_get_the_limit_and_no_more(join, kind):
    one, two = await join(), await join()
    first, second = await take(one, kind, want=7), await take(two, kind, want=7)
    assert (first.given, second.given, second.left) == (7, 3, 0)
    refused = await take(one, kind, want=1, holding=7)
    assert refused.given == 0
    assert 0 < refused.wait_s <= 86_400


@pytest.mark.parametrize("kind", ["minute", "day"])
async def test_what_was_not_used_is_free_again(join, kind):
    one, two = await join(), await join()
    await take(one, kind, want=10)
    await take(one, kind, want=0, least=0, back=4)
    assert (await take(two, kind, want=10)).given == 4


@pytest.mark.parametrize("kind", ["minute", "day"])
async def test_more_than_was_estimated_counts_too(join, kind):
    one = await join()
    await take(one, kind, want=5)
    await take(one, kind, want=0, least=0, back=-3)
    assert (await take(one, kind, want=10)).given == 2


@pytest.mark.parametrize("kind", ["minute", "day", "held"])
async def test_less_than_is_of_use_is_not_given(join, kind):
    one, two = await join(), await join()
    await take(one, kind, want=8)
    assert (await take(two, kind, want=5, least=5)).given == 0
    assert (await take(two, kind, want=5, least=2)).given == 2


async def test_a_minute_s_limit_comes_back_with_time(join):
    state = await join()
    await take(state, limit=6_000, want=6_000)
    await asyncio.sleep(0.1)
    assert 5 <= (await take(state, limit=6_000, want=6_000)).given < 600


async def test_money_that_is_gone_is_not_given_again(join):
    one, two = await join(), await join()
    assert (await take(one, "held", 100, want=60, base=10)).given == 60
    assert (await take(one, "held", 100, want=0, least=0, holding=20, gone=40, base=50)).left == 30
    assert (await take(two, "held", 100, want=100)).given == 30


async def test_who_leaves_holds_nothing_any_more(join):
    one, two = await join(), await join()
    await take(one, "held", want=10)
    await one.close()
    for _ in range(200):
        if (given := (await take(two, "held", want=10)).given):
            break
        await asyncio.sleep(0.01)
    assert given == 10


async def test_what_one_tells_the_others_hear_and_those_who_come_later(join):
    heard, later = [], []
    one = await join(told=lambda topic, rows: heard.append("self"))
    await join(told=lambda topic, rows: heard.append((topic, rows)))
    assert await one.tell("facts", [["a", 1], ["b", None]])
    await until(lambda: heard)
    await join(told=lambda topic, rows: later.append((topic, rows)))
    await until(lambda: later)
    assert heard == later == [("facts", [["a", 1], ["b", None]])]


async def test_a_value_is_found_by_all_until_it_is_dropped(join):
    one, two = await join(), await join()
    await one.put("answer", "k", b"body", 60.0)
    await until(lambda: True)
    for _ in range(200):
        if await two.get("answer", "k"):
            break
        await asyncio.sleep(0.005)
    assert await two.get("answer", "k") == b"body"
    assert await two.get("other", "k") is None
    await two.drop("answer", ["k"])
    assert await two.get("answer", "k") is None


# ---------------------------------------------------------------------- limits and budgets on top of it
def limits_on(state):
    limits = Limits()
    limits.leases = Leases(state, asyncio.get_running_loop().time)
    return limits


async def try_one(limits, ceiling, tokens=1):
    wanted = (("account", ceiling),)
    await limits.stock(wanted, tokens)
    now = asyncio.get_running_loop().time()
    try:
        return limits.take_accounts(wanted, tokens, now)
    except GatewayError:
        return None


@pytest.mark.parametrize("ceiling", [Ceiling(rpm=40), Ceiling(rpd=40), Ceiling(tpm=400), Ceiling(tpm=400, rpm=60, rpd=60)])
async def test_a_limit_is_used_up_and_never_passed_by_many_at_once(join, ceiling):
    several = [limits_on(await join()) for _ in range(3)]
    began = asyncio.get_running_loop().time()
    got = await asyncio.gather(*(try_one(several[n % 3], ceiling, 10) for n in range(150)))
    for limits in several:
        await limits.leases.tick()
    refill = (asyncio.get_running_loop().time() - began) * 40 / 60
    n_got = sum(each is not None for each in got)
    assert 40 - 3 * 5 <= n_got <= 40 + refill


async def test_places_are_shared_and_go_back_when_they_are_free(join):
    several = [limits_on(await join()) for _ in range(2)]
    got = [each for each in await asyncio.gather(*(try_one(several[n % 2], Ceiling(concurrency=3)) for n in range(10))) if each]
    assert len(got) == 3
    for each in got:
        each.release(asyncio.get_running_loop().time())
    await asyncio.sleep(0.12)
    for limits in several:
        await limits.leases.tick()
    got = [await try_one(several[1], Ceiling(concurrency=3)) for _ in range(4)]
    assert [each is not None for each in got] == [True, True, True, False]


async def test_a_budget_is_hard_for_all_together(join):
    scope = (Scope(name="key:x", title="key x", day=1_000),)
    several = []
    for _ in range(2):
        budgets = Budgets(lambda: 1_700_000_000.0)
        budgets.leases = Leases(await join(), asyncio.get_running_loop().time)
        several.append(budgets)

    async def spend(budgets):
        await budgets.stock(scope, 90)
        try:
            hold = budgets.reserve(scope, 90)
        except GatewayError:
            return 0
        await asyncio.sleep(0)
        hold.settle(80)
        return 80
    spent = sum(await asyncio.gather(*(spend(several[n % 2]) for n in range(40))))
    assert 600 <= spent <= 1_000


async def test_block_leases_are_given_back_when_nobody_uses_them(join):
    one, two = limits_on(await join()), limits_on(await join())
    ceiling = Ceiling(rpm=800)
    assert await try_one(one, ceiling)
    (account,) = one._accounts.values()
    block = account.requests[0]
    assert block.have > 0
    block.touched -= 5.0
    await one.leases.tick()
    assert block.have == 0
    assert await try_one(two, ceiling)
    (account,) = two._accounts.values()
    assert account.requests[0].remaining(asyncio.get_running_loop().time()) == 798
