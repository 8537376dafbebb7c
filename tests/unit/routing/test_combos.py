"""Combos: places by name, nesting, patterns, keys of execution, and walks through combos inside of combos."""
import random

import pytest

from gateway.core.errors import GatewayError
from gateway.providers.registry import Model
from gateway.routing.ask import Ask
from gateway.routing.combos import Plan, Settings, StepPlan
from gateway.routing.explain import explain
from gateway.routing.health import Health
from gateway.routing.memory import Bound
from gateway.routing.resolve import resolve
from gateway.routing.walk import Walk
from tests.unit.routing.scene import NOW, WALL, catalog, drain, error, labels, provider, request


def plan(name, *steps, strategy="priority", **settings):
    made = tuple(s if isinstance(s, StepPlan) else StepPlan(combo=s[1:]) if s.startswith(">") else StepPlan(target=s) for s in steps)
    return Plan(name=name, strategy=strategy, steps=made, settings=Settings(**settings))


def house(*plans, **settings):
    return catalog(provider("a", "m", "w", keys=2), provider("b", "m", "big", order=1),
                   provider("c", "m", Model("x", vision=False), order=2), combos=plans, **settings)


NOBODY = Ask()


def walk(found, name="best", health=None, ask=NOBODY, ttl_s=0.0, now=NOW, **facts):
    return Walk(resolve(name, found), request(**facts), health or Health(dice=random.Random(1)), 10, now, ask, ttl_s)


def test_a_combo_is_found_by_its_name_and_below_combo():
    found = house(plan("best", "b/m", "a/m"))
    for name in ("best", "combo/best"):
        meant = resolve(name, found)
        assert (labels(meant.targets), meant.kind, meant.requested) == (["b/m", "a/m"], "combo", name)
    with pytest.raises(GatewayError, match="no combo 'worst'") as caught:
        resolve("combo/worst", found)
    assert caught.value.status == 404


def test_a_combo_wins_over_a_model_and_yields_to_a_target():
    found = house(plan("m", "b/big"), plan("a/m", "b/big"))
    assert labels(resolve("m", found).targets) == ["b/big"]
    assert labels(resolve("a/m", found).targets) == ["a/m"]
    assert labels(resolve("combo/a/m", found).targets) == ["b/big"]


def test_patterns_and_bare_models_become_places():
    found = house(plan("best", "c/*", "a/w*"), plan("two", "m"))
    assert labels(resolve("best", found).targets) == ["c/m", "c/x", "a/w"]
    assert labels(resolve("two", found).targets) == ["a/m", "b/m", "c/m"]


def test_inner_combos_are_flattened_in_place_with_keys_that_tell_the_way():
    found = house(plan("best", ">inner", "c/m"), plan("inner", "a/m", "b/m"))
    meant = resolve("best", found)
    assert labels(meant.targets) == ["a/m", "b/m", "c/m"]
    assert [leg.key for leg in meant.legs] == ["best-ref-1-inner>inner-model-1-a-m", "best-ref-1-inner>inner-model-2-b-m",
                                               "best-model-2-c-m"]
    assert [leg.step for leg in meant.legs] == ["best-ref-1-inner", "best-ref-1-inner", "best-model-2-c-m"]


def test_a11_a_cycle_yields_nothing_and_depth_is_cut():
    found = house(plan("best", "a/m", ">other"), plan("other", ">best", "b/m"))
    assert labels(resolve("best", found).targets) == ["a/m", "b/m"]
    deep = house(*(plan(f"c{n}", f">c{n + 1}", "a/m" if n % 2 else "b/m") for n in range(1, 6)), plan("c6", "c/m"))
    assert labels(resolve("c1", deep).targets) == ["a/m", "b/m"]
    assert len(resolve("c1", deep).legs) == 3


def test_a11_execute_runs_an_inner_combo_by_its_own_strategy_when_its_turn_comes():
    found = house(plan("best", "c/m", ">inner", nested="execute"), plan("inner", "a/m", "b/m", strategy="round-robin"))
    health = Health()
    assert drain(walk(found, health=health), "truncated") == ["c/m#1", "a/m#1", "a/m#2", "b/m#1"]
    assert health.memory.turns == {"inner": 1}
    assert walk(found, health=health).next(NOW).target.label == "c/m"
    assert health.memory.turns == {"inner": 1}, "an inner combo that nobody reached keeps its turn"
    assert drain(walk(found, health=health), "truncated")[:2] == ["c/m#1", "b/m#1"]


def test_what_an_inner_combo_learns_stays_with_it():
    found = house(plan("best", ">inner", nested="execute"), plan("inner", "a/w", "b/m", strategy="lkgp"))
    health = Health()
    one = walk(found, health=health)
    one.failed(one.next(NOW), error("timeout"))
    one.succeeded(one.next(NOW), NOW)
    assert health.memory.good["inner"][0] == "b"
    assert walk(found, health=health).next(NOW).target.label == "b/m"


def test_auto_may_be_a_step_and_is_ordered_by_its_axis():
    found = house(plan("best", "c/x", ">auto/fast"))
    asked = drain(walk(found), "truncated")
    assert asked[0] == "c/x#1"
    assert len(asked) == len(set(asked)) == 8


def test_a_combo_without_targets_is_everybody():
    found = house(plan("best", strategy="auto", exploration=0.0))
    assert len(resolve("best", found).targets) == 6


def test_a_place_may_be_held_to_single_keys():
    found = house(plan("best", StepPlan(target="a/m", accounts=("2",)), "b/m"))
    assert drain(walk(found), "truncated") == ["a/m#2", "b/m#1"]


def test_an_allow_list_narrows_combos_inside_of_combos():
    found = house(plan("best", ">inner", "c/m", nested="execute"), plan("inner", "a/m", "b/m"))
    meant = resolve("best", found)
    kept = meant.only([t for t in meant.targets if t.provider.id != "a"])
    assert drain(Walk(kept, request(), Health(), 10, NOW), "truncated") == ["b/m#1", "c/m#1"]


def test_retries_ask_the_same_one_again_before_the_next():
    found = house(plan("best", "b/m", "c/m", max_retries=2))
    assert drain(walk(found), "timeout") == ["b/m#1"] * 3 + ["c/m#1"] * 3
    assert drain(walk(found), "auth") == ["b/m#1", "c/m#1"]


def test_tags_choose_places_and_unknown_tags_mean_nothing():
    found = house(plan("best", "a/m", StepPlan(target="b/m", tags=frozenset({"eu", "fast"})), StepPlan(target="c/m",
                                                                                                      tags=frozenset({"eu"}))))
    assert drain(walk(found, ask=Ask(tags=frozenset({"eu"}))), "truncated") == ["b/m#1", "c/m#1"]
    assert drain(walk(found, ask=Ask(tags=frozenset({"eu", "fast"}), tags_all=True)), "truncated") == ["b/m#1"]
    assert len(drain(walk(found, ask=Ask(tags=frozenset({"moon"}))), "truncated")) == 4


class TestSessions:
    found = house(plan("best", "a/m", "b/m", "c/m"), plan("pinned", "a/m", "b/m", strategy="round-robin", context_pin=True))
    talk = Ask(session="s", prefix="p", answered=True)

    def turn(self, health, *fail, name="best", now=NOW, ask=talk):
        one = walk(self.found, name, health, ask, 1800.0, now)
        while (candidate := one.next(now)).target.provider.id in fail:
            one.failed(candidate, error("truncated"))
        one.succeeded(candidate, now)
        return f"{candidate.target.label}#{candidate.account.ordinal}"

    def test_who_answered_a_session_answers_it_again_by_the_same_key(self):
        health = Health()
        assert [self.turn(health, ask=Ask(session=f"s{n}", answered=True)) for n in range(2)] == ["a/m#1", "a/m#2"]
        assert [self.turn(health, ask=Ask(session=f"s{n}", answered=True)) for n in (1, 0, 1)] == ["a/m#2", "a/m#1", "a/m#2"]

    def test_a_failover_moves_the_session(self):
        health = Health()
        assert self.turn(health, "a") == "b/m#1"
        assert self.turn(health) == "b/m#1"
        assert self.turn(health, now=NOW + 1700) == "b/m#1"
        assert self.turn(health, now=NOW + 4000)[:3] == "a/m"

    def test_a_first_turn_has_nothing_to_stay_with(self):
        health = Health()
        self.turn(health, "a")
        assert self.turn(health, ask=Ask(session="s", answered=False))[:3] == "a/m"

    def test_health_and_quota_go_before_a_session(self):
        health = Health()
        self.turn(health, "a")
        candidate = self.found.targets[2].candidates[0]
        health.quotas.set(candidate.account_key, "weekly", .9, 1000, NOW)
        assert self.turn(health)[:3] == "a/m"
        health.failed(self.found.targets[0].candidates[0], error("rate_limited", 600), NOW, WALL)
        health.failed(self.found.targets[0].candidates[1], error("rate_limited", 600), NOW, WALL)
        assert self.turn(health) == "b/m#1"

    def test_a17_a_pin_skips_the_strategy_and_falls_through_when_it_is_durably_unwell(self):
        health = Health()
        health.memory.bind("pinned", "s", Bound(("b", "m", ""), "b/m", NOW))
        assert [self.turn(health, name="pinned") for _ in range(3)] == ["b/m#1"] * 3
        candidate = self.found.targets[2].candidates[0]
        health.failed(candidate, error("rate_limited", 10), NOW, WALL)
        assert walk(self.found, "pinned", health, self.talk, 1800.0).legs[0].target.label == "b/m", "a short rest ends no pin"
        health.failed(candidate, error("rate_limited", 600), NOW, WALL)
        assert self.turn(health, name="pinned")[:3] == "a/m"

    def test_each_candidate_is_asked_once_however_a_session_splits_its_place(self):
        health = Health()
        self.turn(health)
        one = walk(self.found, "best", health, self.talk, 1800.0)
        assert sorted(drain(one, "truncated")) == ["a/m#1", "a/m#2", "b/m#1", "c/m#1"]


def test_who_would_cut_the_answer_comes_last_and_never_out():
    found = catalog(provider("a", Model("m", max_output=100)), provider("b", "m", order=1),
                    provider("c", "m", order=2, drop_params=frozenset({"response_format"})))
    assert drain(walk(found, "m", max_tokens=200), "truncated") == ["b/m#1", "c/m#1", "a/m#1"]
    from gateway.core.request import Format
    assert drain(walk(found, "m", format=Format("json_object")), "truncated") == ["a/m#1", "b/m#1", "c/m#1"]
    assert drain(walk(found, "m", max_tokens=50), "truncated") == ["a/m#1", "b/m#1", "c/m#1"]


def test_explain_tells_the_way_the_order_and_the_reason():
    found = house(plan("best", "c/m", ">inner", nested="execute"), plan("inner", "a/w", "b/m", strategy="cost-optimized"))
    places = explain("best", found, Health(), None, 0, NOW)
    assert [p.label for p in places] == ["c/m", "a/w", "a/w", "b/m"]
    assert places[0].reason == "is part of this combo; priority order"
    assert places[1].reason == "is part of this combo; priority order, inner in cost-optimized order, price unknown, keys take turns"
    assert places[3].place == "inner-model-2-b-m"


def test_explain_uses_nobodys_turn():
    found = house(plan("best", "a/m", "b/m", strategy="round-robin"))
    health = Health(dice=random.Random(3))
    for _ in range(3):
        assert explain("best", found, health, None, 0, NOW)[0].label == "a/m"
    assert health.memory.turns == {}


def test_an_unknown_model_of_a_combo_has_siblings_and_a_plain_name_has_none():
    found = catalog(provider("a", "claude-opus-4-7", "claude-opus-4-6", "other"), provider("b", "z", order=1),
                    combos=[plan("best", "a/claude-opus-4-7", "b/z")])
    assert drain(walk(found), "model_not_found") == ["a/claude-opus-4-7#1", "a/claude-opus-4-6#1", "b/z#1"]
    assert drain(walk(found, "claude-opus-4-7"), "model_not_found") == ["a/claude-opus-4-7#1"]


def test_out_of_credits_there_is_a_spare_for_requests_without_tools():
    found = house(plan("best", "a/m"), emergency="b/big")
    assert drain(walk(found), "out_of_credits") == ["a/m#1", "a/m#2", "b/big#1"]
    assert drain(walk(found, tools={"f": None}), "out_of_credits") == ["a/m#1", "a/m#2"]
    assert drain(walk(found, "a/m"), "out_of_credits") == ["a/m#1", "a/m#2"]
    assert drain(walk(found), "truncated") == ["a/m#1", "a/m#2"]
