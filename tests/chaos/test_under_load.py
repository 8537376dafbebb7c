"""While anybody is well, no client sees an error: providers die, flap and refuse under load, and come back without a stampede."""
import asyncio
import itertools

import pytest

from gateway.mock import script as say
from tests.acceptance.house import DOWN, MANY, SLOW_DOWN, House, combo, three

# Twenty at once in the loop that also runs the upstreams: what is well must not seem silent on a slow machine.
PATIENT = "[timeouts]\nconnect_s = 5\nfirst_byte_s = 2\nfirst_token_s = 4\nidle_s = 2\ntotal_s = 10\n"
AT_ONCE = 20
ENDS = {
    "resets": say.reset_before_headers(),
    "is refused by its front": say.html(502),
    "fails": DOWN,
    "falls silent": say.stall(),
    "says an error in its stream": say.script(say.Head(200, say.SSE), say.Send(say.frame(error={"message": "overloaded"}, choices=[]))),
}


async def load(house, times, during=None, **more):
    """So many requests, a bounded number at once; ``during(n)`` happens before the n-th."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(n):
        async with places:
            if during is not None:
                during(n)
            return await house.ask(**more)
    return await asyncio.gather(*(one(n) for n in range(times)))


def troubled(answers):
    """Those that were no whole turn."""
    return [got for got in answers if (got.status, got.done, got.finishes, got.error, got.broken) != (200, 1, ["stop"], None, "")]


async def first(answers, n):
    """The first n of them."""
    for got in itertools.islice(asyncio.as_completed(answers), n):
        yield await got


@pytest.fixture
async def house(gateway, upstream):
    return await House.open(gateway, upstream, three(), models=MANY, more=combo("priority") + combo("round-robin", name="turns") + PATIENT)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
async def test_a_provider_that_dies_costs_no_client_an_answer(house, end):
    def die(n):
        if n == 30:
            house.say(a=end)
    assert troubled(await load(house, 90, die, model="turns")) == []
    asked = house.asked("a")
    assert troubled(await load(house, 20)) == []
    assert house.asked("a") == asked, "it rests"
    house.clock.by += 100
    assert troubled(await load(house, 40)) == []
    most = 2 if end is ENDS["resets"] else 1         # a kept connection that dies unanswered is tried once more on a fresh one
    assert asked < house.asked("a") <= asked + most, "its time is over: one tries, the others go on"


async def test_two_of_three_may_be_dead(house):
    house.say(a=ENDS["resets"], c=ENDS["falls silent"])
    answers = await load(house, 40, model="turns")
    assert troubled(answers) == []
    assert {got.text for got in answers} == {"from b"}


async def test_a_provider_that_flaps_costs_no_client_an_answer(house):
    def flap(n):
        if n % 10 == 0:
            house.clock.by += 100
            house.say(a=DOWN if n % 20 else say.stream("from a"))
    assert troubled(await load(house, 200, flap, model="turns")) == []
    house.say(a=say.stream("from a"))
    house.clock.by += 1_000
    await house.ask()
    assert {got.text for got in await load(house, 30, model="turns")} == {"from a", "from b", "from c"}


async def test_an_hour_of_429_is_asked_about_less_and_less_and_then_it_serves_again(house):
    house.say(a=SLOW_DOWN)
    at_first = len(await load(house, 10))
    assert house.asked("a") <= at_first
    asked = house.asked("a")
    for _ in range(30):
        house.clock.by += 120
        assert troubled(await load(house, 5)) == []
    probes = house.asked("a") - asked
    assert 4 <= probes <= 9, "90 s, then twice that each time, ten minutes at most"
    house.say(a=say.stream("from a"))
    house.clock.by += 601
    await house.ask()
    assert {got.text for got in await load(house, 20)} == {"from a"}


async def recovering(house, by_breaker):
    """One whose rest ends in this moment."""
    if by_breaker:
        await house.trip("a")
        house.clock.by += 31
    else:
        house.say(a=DOWN)
        await house.ask()
        house.clock.by += 91


@pytest.mark.parametrize("by_breaker", [False, True], ids=["of a cooldown", "of an open breaker"])
async def test_one_tries_who_comes_back_and_then_all_follow(house, by_breaker):
    await recovering(house, by_breaker)
    house.say(a=say.stream("from a", delay_s=0.5))
    asked = house.asked("a")
    answers = [asyncio.ensure_future(house.ask()) for _ in range(20)]
    others = [got.text async for got in first(answers, 19)]
    assert house.asked("a") == asked + 1
    assert set(others) == {"from b"}, "all but the one that tries"
    house.say(a=say.stream("from a"))
    assert troubled(await asyncio.gather(*answers)) == []
    assert {got.text for got in await load(house, 20)} == {"from a"}


@pytest.mark.parametrize("by_breaker", [False, True], ids=["of a cooldown", "of an open breaker"])
async def test_a_trial_that_fails_or_whose_client_leaves_hurts_nobody(house, by_breaker):
    await recovering(house, by_breaker)
    house.say(a=say.hang())
    asked = house.asked("a")
    first = asyncio.ensure_future(house.ask())
    await house.ups["a"].until(lambda: house.asked("a") == asked + 1)
    first.cancel()
    await house.ups["a"].until(lambda: not house.ups["a"].busy)
    house.say(a=DOWN.later(0.05))
    answers = await asyncio.gather(*(house.ask() for _ in range(40)))
    assert troubled(answers) == []
    assert house.asked("a") == asked + 2, "the client of the first trial left: the next request is the trial, alone"
    assert troubled(await load(house, 20)) == []
    assert house.asked("a") == asked + 2
