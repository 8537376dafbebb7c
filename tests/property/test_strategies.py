"""Whatever the state: an order is a permutation of the accounts it was given, and the same again for the same seed and state."""
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.providers.registry import Model, Price
from gateway.routing.ask import Ask
from gateway.routing.catalog import Catalog
from gateway.routing.combos import Plan, Settings, StepPlan
from gateway.routing.health import Health
from gateway.routing.resolve import resolve
from gateway.routing.strategies import STRATEGIES
from gateway.routing.strategies.auto import ROUTERS
from gateway.routing.strategies.view import View, apart
from gateway.routing.walk import Walk
from tests.unit.routing.scene import NOW, WALL, provider, request

FEW = settings(max_examples=30, deadline=None)
NAMES = sorted(STRATEGIES)

prices = st.one_of(st.none(), st.builds(Price, input=st.floats(0, 50), output=st.floats(0, 90)))
models = st.builds(Model, st.sampled_from(["m", "gpt-5", "claude-sonnet-4-5", "tiny-8b"]), price=prices,
                   context=st.one_of(st.none(), st.integers(5_000, 2_000_000)), reasoning=st.sampled_from([None, True, False]))
happenings = st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["ok", "timeout", "rate_limited", "auth", "server_error"]),
                                st.floats(0.001, 90), st.floats(0, 1)), max_size=25)


@st.composite
def houses(draw):
    providers = [provider(f"p{at}", *draw(st.lists(models, min_size=1, max_size=2, unique_by=lambda m: m.id)),
                          keys=draw(st.integers(0, 3)), order=at, loopback=draw(st.booleans()))
                 for at in range(draw(st.integers(1, 5)))]
    strategy = draw(st.sampled_from(NAMES))
    tuned = Settings(sticky_limit=draw(st.integers(1, 3)), router=draw(st.sampled_from(sorted(ROUTERS))),
                     mode_pack=draw(st.sampled_from(["", "ship-fast", "cost-saver"])), exploration=draw(st.sampled_from([0.0, 0.5])),
                     budget_cap_usd=draw(st.sampled_from([0.0, 0.001])),
                     weights=draw(st.sampled_from([{}, {"latency": float("nan"), "cost": 2.0}, {"cache_affinity": 1.0}])))
    steps = tuple(StepPlan(target=f"{p.id}/{m}", weight=draw(st.sampled_from([0.0, 1.0, 5.0]))) for p in providers for m in p.models)
    house = Catalog(providers, combos=[Plan(name="best", strategy=strategy, steps=steps, settings=tuned)])
    return house, strategy


def lived(house, story, seed):
    """A health with a past."""
    health, now = Health(dice=random.Random(seed)), NOW
    everybody = [c for target in house.targets for c in target.candidates]
    for at, what, passed_s, share in story:
        if not everybody:
            break
        candidate, now = everybody[at % len(everybody)], now + passed_s
        health.quotas.set(candidate.account_key, "weekly", share, 1000 * share, now)
        if what == "ok":
            health.succeeded(candidate, now, first_s=share, rate=30)
            health.memory.good.put("best", candidate.key)
        else:
            health.failed(candidate, GatewayError(what, "x"), now, WALL)
    return health, now


def keys(legs):
    return [(leg.place, c.key) for leg in legs for c in leg.candidates]


@given(houses(), happenings, st.integers(0, 9))
@FEW
def test_an_order_is_a_permutation_and_can_be_replayed(scene, story, seed):
    house, strategy = scene
    combo = house.combos["best"]
    orders = []
    for _ in range(2):
        health, now = lived(house, story, seed)
        view = View(health, now, "best", combo.settings, Ask(text="write a story", session="s", prefix="p"))
        orders.append([keys(STRATEGIES[strategy](combo.items, view)) for _ in range(3)])
    assert orders[0] == orders[1]
    for order in orders[0]:
        assert sorted(order) == sorted(keys(combo.items))


@given(houses(), happenings, st.integers(0, 9))
@FEW
def test_a_walk_asks_each_candidate_once_at_most_and_never_one_that_rests(scene, story, seed):
    house, _ = scene
    health, now = lived(house, story, seed)
    walk = Walk(resolve("best", house), request(), health, 10, now, Ask(session="s", answered=True), 1800.0)
    free = {c.key for target in house.targets for c in target.candidates if health.cooldown(c, now) is None}
    asked = []
    while (candidate := walk.next(now)) is not None:
        assert candidate.key in free or not asked, "who rests is asked only as a trial, when nobody else is left"
        asked.append(candidate.key)
        walk.failed(candidate, GatewayError("truncated", "x"))
    assert len(asked) == len(set(asked))
    assert free <= set(asked)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_and_one_are_ordered_too(name):
    for keys_ in (0, 1):
        house = Catalog([provider("a", "m", keys=keys_)])
        legs = house.targets[0].leg,
        assert [leg.target.label for leg in STRATEGIES[name](legs, View(Health(), NOW, "x"))] == ["a/m"]
    assert list(STRATEGIES[name]((), View(Health(), NOW, "x"))) == []


def test_places_apart_are_one_an_account():
    house = Catalog([provider("a", "m", keys=3)])
    assert [len(leg.candidates) for leg in apart([house.targets[0].leg])] == [1, 1, 1]
