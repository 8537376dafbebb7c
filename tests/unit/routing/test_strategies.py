"""Each strategy's exact order, state and ties."""
import random
from collections import Counter

import pytest

from gateway.providers.registry import Model, Price
from gateway.routing.ask import Ask
from gateway.routing.combos import Plan, Settings, StepPlan
from gateway.routing.health import Health
from gateway.routing.resolve import resolve
from gateway.routing.strategies import ALIASES, STRATEGIES, named
from gateway.routing.strategies.scoring import PACKS, WEIGHTS, normalised, scores, sheet
from gateway.routing.strategies.view import View
from gateway.routing.walk import Walk
from tests.unit.routing.scene import NOW, WALL, catalog, error, labels, provider, request


class Scene:
    """A combo over providers a, b, c … and what happens to it."""

    def __init__(self, strategy, *models, keys=1, shares=None, seed=1, **settings):
        models = models or (Model("m"),) * 3
        ids = "abcdefgh"[:len(models)]
        house = [provider(id, model, keys=keys, order=at) for at, (id, model) in enumerate(zip(ids, models, strict=True))]
        steps = tuple(StepPlan(target=f"{id}/{model.id}", weight=w)
                      for id, model, w in zip(ids, models, shares or (1.0,) * len(models), strict=True))
        self.house = catalog(*house, combos=[Plan(name="best", strategy=strategy, steps=steps, settings=Settings(**settings))])
        self.health = Health(dice=random.Random(seed))
        self.candidates = {t.provider.id: t.candidates for t in self.house.targets}
        self.ask = Ask()

    def walk(self, now=NOW, **facts):
        return Walk(resolve("best", self.house), request(**facts), self.health, 10, now, self.ask)

    def order(self, now=NOW):
        return "".join(leg.target.provider.id for leg in self.walk(now).legs)

    def serve(self, *fail, now=NOW):
        """One request; providers in ``fail`` fail it without a cooldown. Who was asked, in order."""
        walk, asked = self.walk(now), ""
        while (candidate := walk.next(now)) is not None:
            asked += candidate.target.provider.id
            if candidate.target.provider.id in fail:
                walk.failed(candidate, error("truncated"))
                continue
            self.health.succeeded(candidate, now)
            walk.succeeded(candidate, now)
            return asked
        return asked

    def rest(self, id, kind="rate_limited", retry_s=600, now=NOW):
        for candidate in self.candidates[id]:
            self.health.failed(candidate, error(kind, retry_s), now, WALL)

    def open(self, id, now=NOW):
        for n in range(12):
            self.health.failed(self.candidates[id][0], error("server_error"), now - 67 + 6 * n, WALL)
        assert self.health.breaker(self.candidates[id][0].target, now) == "open"


@pytest.mark.parametrize("name", ["priority", "fill-first", "context-relay"])
def test_the_list_is_the_order(name):
    assert Scene(name).order() == "abc"


@pytest.mark.parametrize(("given", "meant"), [*ALIASES.items(), ("nonsense", "priority"), ("p2c", "p2c")])
def test_names_of_strategies(given, meant):
    assert named(given) == meant


def test_a02_weighted_shares_are_those_of_the_weights():
    scene = Scene("weighted", shares=(70, 20, 10))
    first = Counter(scene.order()[0] for _ in range(10_000))
    for id, share in (("a", .7), ("b", .2), ("c", .1)):
        assert first[id] / 10_000 == pytest.approx(share, abs=.02)


def test_a02_who_cannot_be_asked_has_no_share_and_no_weight_means_alike():
    scene = Scene("weighted", shares=(70, 20, 10))
    scene.rest("a")
    first = Counter(scene.order()[0] for _ in range(6_000))
    assert first["a"] == 0
    assert first["b"] / 6_000 == pytest.approx(2 / 3, abs=.02)
    alike = Scene("weighted", shares=(0, 0, 0))
    assert all(n / 6_000 == pytest.approx(1 / 3, abs=.03) for n in Counter(alike.order()[0] for _ in range(6_000)).values())


def test_weighted_puts_the_rest_by_weight():
    orders = {Scene("weighted", shares=(1, 5, 3), seed=seed).order() for seed in range(20)}
    assert orders <= {"abc", "bca", "cba"}


def test_weighted_keeps_a_step_for_a_batch_and_lets_go_when_it_rests():
    scene = Scene("weighted", shares=(1, 1, 1), sticky_limit=3)
    first = scene.serve()[0]
    assert [scene.serve() for _ in range(2)] == [first, first]
    scene = Scene("weighted", shares=(1, 1, 1), sticky_limit=100)
    first = scene.serve()[0]
    scene.rest(first)
    assert all(scene.serve()[0] != first for _ in range(10))


def test_a03_round_robin_starts_with_the_next_each_time_whatever_failed():
    scene = Scene("round-robin")
    assert [scene.serve(*("b" if n == 1 else "")) for n in range(6)] == ["a", "bc", "c", "a", "b", "c"]


def test_a03_batches_count_successes_and_a_failover_moves_the_batch():
    scene = Scene("round-robin", sticky_limit=2)
    assert [scene.serve() for _ in range(5)] == ["a", "a", "b", "b", "c"]
    scene = Scene("round-robin", sticky_limit=3)
    assert scene.serve() == "a"
    assert scene.serve("a") == "ab"
    assert [scene.serve() for _ in range(3)] == ["b", "b", "c"]


def test_round_robin_drops_a_batch_of_somebody_who_rests():
    scene = Scene("round-robin", sticky_limit=5)
    scene.serve()
    scene.rest("a")
    assert scene.serve() == "b"


def test_a04_each_is_drawn_once_before_anybody_is_again_and_the_rest_is_shuffled():
    scene = Scene("strict-random", *(Model("m"),) * 5)
    for _ in range(4):
        assert sorted(scene.order()[0] for _ in range(5)) == list("abcde")
    assert len({scene.order()[1:] for _ in range(30)}) > 10


def test_random_is_a_fair_shuffle():
    scene = Scene("random")
    seen = Counter(scene.order() for _ in range(6_000))
    assert len(seen) == 6
    assert all(n == pytest.approx(1000, abs=150) for n in seen.values())


def test_a05_p2c_never_prefers_an_open_one():
    scene = Scene("p2c")
    scene.open("a")
    assert all(scene.order()[0] != "a" for _ in range(200))


def test_p2c_prefers_who_succeeds_and_who_is_quick():
    scene = Scene("p2c", Model("m"), Model("m"))
    for n in range(20):
        scene.health.stats.add(scene.candidates["a"][0], n % 2 == 0, NOW, first_s=3)
        scene.health.stats.add(scene.candidates["b"][0], True, NOW, first_s=.2)
    assert {scene.order() for _ in range(20)} == {"ba"}


def test_a01_least_used_counts_each_account_at_each_place():
    scene = Scene("least-used", Model("m"), Model("m"), keys=2)
    walk_keys = []
    for _ in range(4):
        walk = scene.walk()
        candidate = walk.next(NOW)
        walk_keys.append(candidate.key)
        walk.succeeded(candidate, NOW)
    assert len(set(walk_keys)) == 4
    assert sorted(scene.health.memory.uses.values()) == [1, 1, 1, 1]


def test_a06_unknown_price_is_last_zero_first_and_equals_as_listed():
    free, dear, same = Price(input=0), Price(input=5, output=1), Price(input=5, output=9)
    scene = Scene("cost-optimized", Model("m"), Model("m", price=dear), Model("m", price=free), Model("m", price=same))
    assert scene.order() == "cbda"


def test_a06_the_largest_context_is_first_and_unknown_last():
    assert Scene("context-optimized", Model("m"), Model("m", context=10), Model("m", context=99)).order() == "cba"
    assert Scene("context-optimized").order() == "abc"


def test_a07_headroom_puts_most_left_first_and_keeps_ties():
    scene = Scene("headroom")
    scene.health.quotas.set(scene.candidates["a"][0].account_key, "session", .9, 100, NOW)
    scene.health.quotas.set(scene.candidates["a"][0].account_key, "weekly", .1, 100, NOW)
    assert scene.order() == "bca"
    scene.health.quotas.set(scene.candidates["b"][0].account_key, "weekly", .2, 100, NOW)
    assert scene.order() == "cba"


def test_a07_soonest_reset_first_unknown_last_and_near_ones_take_turns():
    scene = Scene("reset-window")
    for id, reset_s in (("a", 5000), ("b", 1000)):
        scene.health.quotas.set(scene.candidates[id][0].account_key, "weekly", .5, reset_s, NOW)
    assert scene.order() == "cba", "who was never asked leads: the answer tells its quota"
    scene.health.stats.add(scene.candidates["c"][0], True, NOW)
    assert scene.order() == "bac", "asked and still unknown"
    scene.health.quotas.set(scene.candidates["c"][0].account_key, "weekly", .5, 1030, NOW)
    assert [scene.order()[0] for _ in range(4)] == ["b", "c", "b", "c"]
    scene.health.quotas.set(scene.candidates["b"][0].account_key, "weekly", 1.0, 1000, NOW)
    assert scene.order() == "cab"


def test_a07_reset_aware_scores_what_is_left_and_soon_lapses():
    scene = Scene("reset-aware")
    for id, share, reset_s in (("a", .95, 500_000), ("b", .3, 300_000), ("c", 1.0, 10)):
        scene.health.quotas.set(scene.candidates[id][0].account_key, "weekly", share, reset_s, NOW)
        scene.health.quotas.set(scene.candidates[id][0].account_key, "session", share, 9000, NOW)
    assert scene.order() == "bac"


def test_a07_without_any_data_accounts_take_turns():
    assert [Scene("reset-aware").order() for _ in range(2)] == ["abc", "abc"]
    scene = Scene("reset-aware")
    assert [scene.order()[0] for _ in range(4)] == ["a", "b", "c", "a"]


def test_a09_who_answered_last_leads_and_is_skipped_without_an_attempt_when_it_rests():
    scene = Scene("lkgp")
    assert scene.serve("a") == "ab"
    assert scene.order() == "bac"
    scene.rest("b")
    assert scene.serve() == "a"


def test_lkgp_takes_another_account_of_the_same_provider_when_the_account_is_gone():
    scene = Scene("lkgp", Model("m"), Model("m"), keys=2)
    scene.health.memory.good.put("best", ("b", "m", "gone"))
    assert scene.walk().legs[0].target.provider.id == "b"


def test_cache_optimized_follows_the_prompt_while_it_is_warm():
    scene = Scene("cache-optimized")
    scene.ask = Ask(prefix="p", session="s")
    scene.serve("a")
    assert scene.order() == "bac"
    assert scene.order(NOW + 301) == "abc"
    scene.rest("b")
    assert scene.order() == "abc"


def test_a08_weights_sum_to_one_and_nonsense_is_left_out():
    assert sum(normalised({}, "").values()) == pytest.approx(1)
    assert normalised({"cost": 3, "latency": float("nan"), "bogus": 9, "health": -1}, "") == {**dict.fromkeys(WEIGHTS, 0.0), "cost": 1.0}
    assert all(sum(normalised({}, pack).values()) == pytest.approx(1) for pack in PACKS)


def sheet_scores(legs, view):
    return scores(sheet(legs, view), view)


def test_a08_nan_telemetry_reorders_nobody():
    scene = Scene("auto", exploration=0.0, weights={"latency": 1.0})
    for each in scene.candidates.values():
        for _ in range(12):
            scene.health.stats.add(each[0], True, NOW, first_s=float("nan"))
    combo = scene.house.combos["best"]
    found = sheet_scores(combo.items, View(scene.health, NOW, "best", combo.settings))
    assert len(set(found)) == 1


def test_auto_prefers_the_cheap_the_quick_and_the_healthy_as_its_weights_say():
    cheap, dear = Model("m", price=Price(input=1, output=1)), Model("m", price=Price(input=9, output=9))
    assert Scene("auto", dear, cheap, exploration=0.0, mode_pack="cost-saver").order() == "ba"
    scene = Scene("auto", exploration=0.0, mode_pack="ship-fast")
    for id, first_s in (("a", 4.0), ("b", .1), ("c", 2.0)):
        for _ in range(12):
            scene.health.stats.add(scene.candidates[id][0], True, NOW, first_s=first_s)
    assert scene.order() == "bca"
    scene = Scene("auto", exploration=0.0)
    scene.open("a")
    assert scene.order()[-1] == "a"


def test_a08_nothing_is_explored_while_most_breakers_are_open():
    scene = Scene("auto", exploration=1.0, mode_pack="cost-saver")
    scene.open("a")
    assert len({scene.order()[0] for _ in range(30)}) == 2
    scene.open("b")
    assert {scene.order()[0] for _ in range(30)} == {"c"}


def test_a08_the_choice_of_a_router_stays_first():
    models = [Model("m", price=Price(input=n, output=n)) for n in (3, 1, 2)]
    scene = Scene("auto", *models, router="cost", weights={"task_fit": 1})
    assert scene.order()[0] == "b"
    quick = Scene("auto", *models, router="latency")
    for _ in range(12):
        quick.health.stats.add(quick.candidates["c"][0], True, NOW, first_s=.05)
    assert quick.order()[0] == "c"
    last = Scene("auto", *models, router="lkgp", exploration=0.0)
    last.serve()
    last.health.memory.good.put("best", last.candidates["c"][0].key)
    assert last.order()[0] == "c"


def test_sla_takes_who_keeps_the_promise_first():
    scene = Scene("auto", router="sla", sla_p95_ms=500, sla_hard=True)
    for id, first_s in (("a", 3.0), ("b", .4), ("c", 1.0)):
        for _ in range(12):
            scene.health.stats.add(scene.candidates[id][0], True, NOW, first_s=first_s)
    assert scene.order()[0] == "b"


def test_a_budget_cap_leaves_the_affordable_or_the_cheapest():
    models = [Model("m", price=Price(input=n, output=n)) for n in (30, 20, 10)]
    assert Scene("auto", *models, budget_cap_usd=.02, exploration=0.0, weights={"quota": 1}).order()[0] in "bc"
    assert Scene("auto", *models, budget_cap_usd=.001, exploration=0.0, weights={"quota": 1}).order()[0] == "c"


def test_self_healing_excludes_for_longer_each_time_and_readmits_who_scores_well():
    scene = Scene("auto", exploration=0.0)
    scene.open("a")
    scene.order()
    until, span, _ = scene.health.memory.exclusions["best", "a"]
    assert (until, span) == (NOW + 300, 300)
    assert "a" != scene.order(NOW + 200)[0]
    scene.health.failed(scene.candidates["a"][0], error("server_error"), NOW + 310, WALL)
    scene.order(NOW + 311)
    assert scene.health.memory.exclusions["best", "a"][1] == 600


def test_the_bandit_learns_who_answers():
    scene = Scene("bandit")
    for n in range(60):
        scene.health.stats.add(scene.candidates["a"][0], n % 3 == 0, NOW)
        scene.health.stats.add(scene.candidates["b"][0], n % 2 == 0, NOW)
        scene.health.stats.add(scene.candidates["c"][0], True, NOW)
    first = Counter(scene.order()[0] for _ in range(300))
    assert first["c"] > 270


def test_the_table_has_the_seventeen_and_two_more():
    assert set(STRATEGIES) == {
        "priority", "weighted", "round-robin", "context-relay", "fill-first", "p2c", "random", "least-used", "cost-optimized",
        "reset-aware", "reset-window", "headroom", "strict-random", "auto", "lkgp", "context-optimized", "fusion",
        "cache-optimized", "bandit"}


def test_a_resolution_by_strategy_orders_models_of_several_providers():
    house = catalog(provider("a", "m"), provider("b", "m", order=1), strategy="round-robin")
    health = Health()
    assert [labels(Walk(resolve("m", house), request(), health, 1, NOW).targets)[0] for _ in range(3)] == ["a/m", "b/m", "a/m"]
