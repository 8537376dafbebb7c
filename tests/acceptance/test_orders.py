"""What a router must do, by the numbers of its list: in which order targets are asked (A01 to A09, A11)."""
import math
import random
from collections import Counter

import pytest

from gateway.config.load import loads
from gateway.config.problems import ConfigError
from gateway.mock import script as say
from gateway.routing.catalog import Catalog
from gateway.routing.combos import Plan, StepPlan
from gateway.routing.resolve import resolve
from gateway.routing.strategies.scoring import MAX_PLACES, weights_of
from gateway.routing.walk import Walk
from tests.acceptance.house import DOWN, MANY, SLOW_DOWN, UNABLE, House, combo, three
from tests.unit.routing.scene import request


def firsts(house, times, model="best"):
    """Who leads, drawn many times inside the running gateway."""
    ground, now = house.ground, house.clock.now()
    return Counter(Walk(resolve(model, ground.catalog), request(), ground.health, 10, now).legs[0].target.provider.id
                   for _ in range(times))


async def test_a01_state_is_kept_by_place_and_account_not_by_the_model(gateway, upstream):
    house = await House.open(gateway, upstream, {"a": say.stream("hi")}, keys=2, more=(
        combo("least-used", "a/m", name="least") + combo("lkgp", "a/m", name="last") + combo("random", "a/m", name="stays")
        + combo("round-robin", '{target = "a/m", accounts = ["1"]}', '{target = "a/m", accounts = ["2"]}', name="batches", sticky_limit="2")))
    await house.via(4, "least")
    assert house.keys("a") == [1, 2, 1, 2]
    await house.via(5, "batches")
    assert house.keys("a")[4:] == [1, 1, 2, 2, 1]
    for name in ("one", "two", "three"):
        before = house.asked("a")
        await house.via(4, "stays", session=name)
        assert len(set(house.keys("a")[before:])) == 1, "a session keeps its account"
    before, bad = house.asked("a"), []

    def answer(asked):
        bad.append(asked.headers["authorization"])
        return SLOW_DOWN if len(bad) == 1 else say.stream("hi")
    house.say(a=answer)
    assert (await house.ask("last")).status == 200
    house.clock.by += 200
    await house.via(3, "last")
    failed, *answered = house.keys("a")[before:]
    assert answered == [3 - failed] * 4, "the account that answered last leads, not the model"


async def test_a02_weighted_shares_are_those_of_the_weights_among_who_may_be_asked(gateway, upstream):
    targets = [f'{{target = "{id}/m", weight = {weight}}}' for id, weight in (("a", 70), ("b", 20), ("c", 10))]
    house = await House.open(gateway, upstream, three(), more=combo("weighted", *targets) + combo(
        "weighted", *(f'{{target = "{id}/m", weight = 0}}' for id in "abc"), name="alike"))
    house.ground.health.dice = random.Random(7)
    drawn = firsts(house, 10_000)
    assert all(abs(drawn[id] / 10_000 - share) < .02 for id, share in (("a", .7), ("b", .2), ("c", .1)))
    assert all(abs(n / 6_000 - 1 / 3) < .03 for n in firsts(house, 6_000, "alike").values())
    house.say(a=SLOW_DOWN)
    await house.ask("a/m")
    without = firsts(house, 6_000)
    assert without["a"] == 0
    assert without["b"] / 6_000 == pytest.approx(2 / 3, abs=.02)
    assert set(await house.via(12)) <= {"b", "c"}
    assert house.asked("a") == 1


async def test_a03_round_robin_starts_one_further_each_time_and_batches_follow_who_served(gateway, upstream):
    house = await House.open(gateway, upstream, three(), more=combo("round-robin") + combo("round-robin", name="batch", sticky_limit="2"))
    assert await house.via(1) == "a"
    house.say(b=UNABLE)
    assert await house.via(1) == "c", "b refused, c took over"
    house.say(b=say.stream("b again"))
    assert await house.via(5) == "cabca"
    assert await house.via(5, "batch") == "aabbc"
    house.say(c=UNABLE)
    assert await house.via(1, "batch") == "a", "the batch of c moves to who served"
    house.say(c=say.stream("c again"))
    assert await house.via(2, "batch") == "ab"


async def test_a04_a_deck_leads_with_each_once_and_shuffles_the_others(gateway, upstream):
    house = await House.open(gateway, upstream, {id: say.stream(id) for id in "abcde"},
                             more=combo("strict-random", *(f"{id}/m" for id in "abcde")))
    house.ground.health.dice = random.Random(3)
    for _ in range(3):
        assert sorted(await house.via(5)) == list("abcde")
    orders = [await house.order() for _ in range(10)]
    assert all(sorted(order) == list("abcde") for order in orders)
    assert sorted(order[0] for order in orders[:5]) == list("abcde")
    assert len({order[1:] for order in orders}) > 5


async def test_a05_p2c_does_not_lead_with_an_open_one(gateway, upstream):
    house = await House.open(gateway, upstream, three(), models=MANY, more=combo("p2c"))
    assert set(firsts(house, 200)) == set("abc")
    await house.trip("a")
    asked = house.asked("a")
    assert set(firsts(house, 300)) == {"b", "c"}
    assert set(await house.via(10)) <= {"b", "c"}    # the quicker of two that are drawn, which may be one of them each time
    assert house.asked("a") == asked


async def test_a06_prices_and_contexts_order_and_the_unknown_is_last(gateway, upstream):
    facts = {"a": "", "b": ", price = {input = 5.0, output = 1.0}, context = 8000", "c": ", price = {input = 0.0, output = 0.0}, context = 64000",
             "d": ", price = {input = 5.0, output = 9.0}, context = 32000"}
    house = await House.open(gateway, upstream, {id: say.stream(id) for id in "abcd"}, more=(
        combo("cost-optimized", *(f"{id}/m" for id in "abcd")) + combo("context-optimized", *(f"{id}/m" for id in "abcd"), name="long")),
        facts={id: {"models": f'[{{id = "m"{more}}}]'} for id, more in facts.items()})
    assert await house.order() == "cbda"
    assert await house.order("long") == "cdba"


def quota(left, reset_s=600):
    """An answer whose headers tell what is left of a hundred."""
    return say.stream("hi", headers={**say.SSE, "x-ratelimit-limit-requests-day": "100", "x-ratelimit-remaining-requests-day": str(left),
                                     "x-ratelimit-reset-requests-day": f"{reset_s}s"})


async def test_a07_quotas_order_and_what_is_not_known_never_fails(gateway, upstream):
    names = ("headroom", "reset-aware", "reset-window")
    house = await House.open(gateway, upstream, three(), more="".join(combo(name, name=name) for name in names))
    assert [await house.order("headroom") for _ in range(3)] == ["abc"] * 3, "ties keep the order"
    for name in names[1:]:
        assert [(await house.order(name))[0] for _ in range(4)] == list("abca"), "ties take turns"
    nonsense = say.stream("hi", headers={**say.SSE, "x-ratelimit-limit-requests-day": "many", "x-ratelimit-remaining-requests-day": "-",
                                         "anthropic-ratelimit-unified-5h-utilization": "nan"})
    house.say(a=nonsense, b=nonsense, c=nonsense)
    for id in "abc":
        assert (await house.ask(f"{id}/m")).status == 200
    assert await house.order("headroom") == "abc"
    house.say(a=quota(20, 5000), b=quota(90, 9000), c=quota(50, 700))
    for id in "abc":
        await house.ask(f"{id}/m")
    assert await house.order("headroom") == "bca"
    assert await house.order("reset-window") == "cab"
    assert sorted(await house.order("reset-aware")) == list("abc")


async def test_a08_auto_weighs_sanely_explores_in_good_times_only_and_keeps_a_router_s_choice(gateway, upstream):
    with pytest.raises(ConfigError, match="weights.latency"):
        loads('[[combos]]\nname = "x"\nstrategy = "auto"\nweights = {latency = nan}\n', {})
    price = {id: {"models": MANY[:-1] + f', {{id = "p", price = {{input = {n}.0, output = {n}.0}}}}]'}
             for id, n in zip("abcde", (3, 1, 2, 5, 5), strict=True)}
    every = [f"{id}/m" for id in "abcde"]
    house = await House.open(gateway, upstream, {id: say.stream(f"from {id}") for id in "abcde"}, models=MANY, facts=price, more=(
        combo("auto", *every, exploration="1.0", weights="{latency = 3.0}")
        + combo("auto", *every, name="still", exploration="0.0", weights="{latency = 1.0}")
        + combo("auto", "a/p", "b/p", "c/p", name="cheapest", router='"cost"', weights="{task_fit = 1.0}")))
    health, combos = house.ground.health, house.ground.catalog.combos
    health.dice = random.Random(5)
    for name in ("best", "still"):
        view = Walk(resolve(name, house.ground.catalog), request(), health, 10, house.clock.now()).view
        assert math.isclose(sum(weights_of(view).values()), 1.0)
    for leg in combos["still"].items:
        for _ in range(12):
            health.stats.add(leg.candidates[0], True, house.clock.now(), first_s=math.nan)
    orders = {"".join(leg.target.provider.id for leg in Walk(resolve("still", house.ground.catalog), request(), health, 10,
                                                             house.clock.now()).legs) for _ in range(10)}
    assert orders == {"abcde", "bacde", "cabde", "dabce", "eabcd"}, "equals take turns at the head; nobody is reordered by chance"
    assert await house.via(3, "cheapest") == "bbb"
    for id, first_s in (("d", .01), ("e", 5.0)):
        for _ in range(12):
            health.stats.add(combos["best"].items["abcde".index(id)].candidates[0], True, house.clock.now(), first_s=first_s)
    assert set(firsts(house, 100)) == set("abcde"), "explored"
    await house.trip("a", "b", "c")
    assert firsts(house, 60) == {"d": 60}, "most breakers are open: no time for experiments"
    assert await house.via(5) == "ddddd"
    assert resolve("auto", house.ground.catalog) is resolve("auto", house.ground.catalog), "candidates are built once"
    assert all(leg.each is leg.each for leg in combos["best"].items) and MAX_PLACES <= 2_000


async def test_a09_a_last_good_one_that_rests_is_skipped_without_an_attempt(gateway, upstream):
    house = await House.open(gateway, upstream, three(a=UNABLE), more=combo("lkgp"))
    assert await house.via(2) == "bb"
    house.say(a=say.stream("a again"))
    assert await house.via(2) == "bb", "who answered last leads"
    house.say(b=SLOW_DOWN)
    assert await house.via(1) == "a"
    asked = house.asked("b")
    assert await house.via(3) == "aaa"
    assert house.asked("b") == asked


async def test_a11_nesting_ends_whoever_wrote_it_and_shares_one_budget(gateway, upstream):
    with pytest.raises(ConfigError, match="targets"):
        loads(combo("priority", '{combo = "y"}', name="x") + combo("priority", '{combo = "x"}', name="y"), {})
    models = str([f"m{n}" for n in range(4)])
    house = await House.open(gateway, upstream, {"a": SLOW_DOWN, "b": SLOW_DOWN}, models=models, more=(
        combo("priority", '{combo = "x"}', '{combo = "y"}', nested='"execute"') + combo("random", "a/*", name="x")
        + combo("round-robin", "b/*", name="y") + "[routing]\nmax_attempts = 6\n"))
    got = await house.ask()
    assert (got.status, got.headers["X-Fallback-Attempts"]) == (429, "6")
    assert (house.asked("a"), house.asked("b")) == (4, 2), "one inner combo after the other, out of one budget"
    house.say(a=say.stream("a"), b=say.stream("b"))

    def steps(*names):
        return tuple(StepPlan(combo=name) if "/" not in name else StepPlan(target=name) for name in names)
    # A store may hold what the configuration would refuse.
    plans = [Plan(name="x", steps=steps("y", "a/m0")), Plan(name="y", steps=steps("x", "b/m0")),
             *(Plan(name=f"d{n}", steps=steps(f"d{n + 1}", f"a/m{n}")) for n in range(4)), Plan(name="d4", steps=steps("b/m0"))]
    catalog = house.ground.catalog = Catalog(list(house.ground.catalog.providers.values()), combos=plans)
    house.clock.by += 1000
    assert (await house.ask("x")).text == "b"
    assert [target.label for target in resolve("d0", catalog).targets] == ["a/m2", "a/m1", "a/m0"], "what is deeper is cut"
    house.say(a=DOWN, b=DOWN)
    assert (await house.ask("d0")).status >= 500
