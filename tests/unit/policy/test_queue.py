"""Whoever wants a place at a full account waits in line, for a while, and pays nothing if there is none."""
import asyncio

import pytest

from gateway.core.errors import GatewayError
from gateway.policy.limits import Limits
from gateway.providers.registry import Ceiling

ONE = [("a", Ceiling(concurrency=1, tpm=1000))]
NOW = 1000.0


async def waiting(limits, wanted=ONE, wait_s=5.0, depth=20):
    if not await limits.place(wanted, wait_s, depth):
        return None
    return limits.promised(wanted, 10, NOW)


async def settle(n=3):
    for _ in range(n):
        await asyncio.sleep(0)


async def test_places_are_given_in_the_order_of_coming():
    limits, order = Limits(), []
    first = limits.take_accounts(ONE, 10, NOW)

    async def one(name):
        mine = await waiting(limits)
        order.append(name)
        await asyncio.sleep(0)
        mine.release(NOW)

    tasks = [asyncio.create_task(one(n)) for n in range(4)]
    await settle()
    first.release(NOW)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]
    assert limits.snapshot(NOW)[0]["running"] == 0


async def test_a_promised_place_is_taken_by_nobody_who_comes_later():
    limits = Limits()
    first = limits.take_accounts(ONE, 10, NOW)
    task = asyncio.create_task(waiting(limits))
    await settle()
    first.release(NOW)
    with pytest.raises(GatewayError, match="1 requests at once"):
        limits.take_accounts(ONE, 10, NOW)
    assert await task is not None


async def test_a_wait_ends_and_leaves_nothing_behind():
    limits = Limits()
    first = limits.take_accounts(ONE, 10, NOW)
    assert await waiting(limits, wait_s=0.01) is None
    assert limits.snapshot(NOW)[0]["waiting"] == 0
    first.release(NOW)
    limits.take_accounts(ONE, 10, NOW).release(NOW)


async def test_the_line_is_bounded():
    limits = Limits()
    limits.take_accounts(ONE, 10, NOW)
    tasks = [asyncio.create_task(waiting(limits, depth=2)) for _ in range(2)]
    await settle()
    assert await waiting(limits, depth=2) is None
    assert await waiting(limits, depth=0) is None
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert limits.snapshot(NOW)[0]["waiting"] == 0


async def test_who_leaves_while_a_place_is_promised_gives_it_to_the_next():
    limits = Limits()
    first = limits.take_accounts(ONE, 10, NOW)
    gone, stays = asyncio.create_task(waiting(limits)), asyncio.create_task(waiting(limits))
    await settle()
    first.release(NOW)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    mine = await asyncio.wait_for(stays, 1)
    assert mine is not None
    mine.release(NOW)
    limits.take_accounts(ONE, 10, NOW)


async def test_another_limit_that_is_full_passes_the_place_on():
    limits = Limits()
    first = limits.take_accounts(ONE, 990, NOW)
    task = asyncio.create_task(limits.place(ONE, 5.0, 20))
    await settle()
    first.release(NOW)
    assert await task
    with pytest.raises(GatewayError, match="tokens a minute"):
        limits.promised(ONE, 500, NOW)
    limits.take_accounts(ONE, 1, NOW)


def test_several_keys_are_taken_together_or_not_at_all():
    limits = Limits()
    both = [("a", Ceiling(rpm=5)), ("b", Ceiling(rpm=1))]
    limits.take_accounts(both, 10, NOW).release(NOW)
    with pytest.raises(GatewayError):
        limits.take_accounts(both, 10, NOW)
    limits.take_accounts([("a", Ceiling(rpm=5))], 10, NOW)
    assert limits.shares(["a", "nobody"], NOW) == [pytest.approx(.4), 0]
    assert limits.take_accounts([("x", Ceiling())], 10, NOW).tokens == 0
