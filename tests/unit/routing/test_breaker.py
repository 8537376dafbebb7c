"""A provider in trouble is left alone, tried by one, and remembered; models that are gone and limits that were told."""
import random

import pytest

from gateway.providers.hints import LimitsHint
from gateway.providers.registry import Ceiling, Model
from gateway.routing.health import DEGRADED_AFTER_S, NORMAL_AFTER_S, Health, Usable
from gateway.routing.keep import changes, restore
from gateway.routing.resolve import resolve
from gateway.routing.walk import Walk
from tests.unit.routing.scene import NOW, WALL, catalog, drain, error, provider, request, walk

HOUSE = catalog(provider("a", *(f"m{n}" for n in range(20))), provider("b", "m0", order=1), provider("o", "m", auth="oauth", order=2))
A, B, O = HOUSE.targets[0], HOUSE.targets[20], HOUSE.targets[21]  # noqa: E741


def trip(health, now=NOW, times=12, target=A):
    """Failures six seconds apart, the last one at ``now``."""
    for n in range(times):
        health.failed(target.candidates[0], error("server_error"), now - 6 * (times - 1 - n), WALL)


def state(health, now=NOW, target=A):
    return health.breaker(target, now)


def test_a18_twelve_failures_open_it_seven_degrade_it():
    health = Health()
    trip(health, times=6)
    assert state(health) == "closed"
    trip(health, NOW + 6, times=1)
    assert state(health, NOW + 6) == "degraded"
    trip(health, NOW + 36, times=5)
    assert state(health, NOW + 36) == "open"
    other = HOUSE.targets[19].candidates[0]
    assert health.blocked(other, NOW + 36) == (NOW + 66, "server_error")
    assert state(health, NOW + 66) == "half-open"


def test_a18_one_account_counts_once_in_five_seconds():
    health = Health()
    for n in range(50):
        health.failed(A.candidates[0], error("timeout"), NOW + n / 20, WALL)
    assert health.breakers["a"].count == 1


def test_quota_answers_and_stated_times_trip_nothing():
    health = Health()
    for n in range(30):
        health.failed(A.candidates[0], error("rate_limited"), NOW + 6 * n, WALL)
        health.failed(A.candidates[0], error("overloaded", 2), NOW + 6 * n, WALL)
    assert state(health) == "closed"


def test_signed_in_providers_open_sooner_and_for_longer():
    health = Health()
    trip(health, times=8, target=O)
    assert state(health, target=O) == "open"
    assert health.blocked(O.candidates[0], NOW)[0] >= NOW + 60


def lone(health, target, now):
    return Walk(resolve(target.label, HOUSE), request(), health, 10, now).next(now)


def test_a18_one_probe_in_half_open_whoever_else_comes():
    health = Health()
    trip(health)
    later = NOW + 31
    fresh = HOUSE.targets[19]
    assert lone(health, fresh, NOW + 29) is None
    assert lone(health, fresh, later) is fresh.candidates[0]
    assert [lone(health, HOUSE.targets[n], later + n / 10) for n in range(15, 20)] == [None] * 5
    other = Walk(resolve("auto", HOUSE), request(), health, 10, later)
    assert other.next(later).target.provider.id == "b"
    health.succeeded(fresh.candidates[0], later + 3)
    assert state(health, later + 3) == "closed"
    assert all(lone(health, HOUSE.targets[n], later + 4) for n in range(15, 20))


def test_a_failed_probe_opens_it_again_and_longer_after_three_cycles():
    health, now, spans = Health(), NOW, []
    trip(health)
    for _ in range(6):
        until = health.breakers["a"].until
        spans.append(until - now)
        now = until + 1
        health.asked(HOUSE.targets[19].candidates[0], now)
        health.failed(HOUSE.targets[19].candidates[0], error("timeout"), now, WALL)
    assert spans == [30, 30, 30, 60, 120, 120]


def test_a_client_that_leaves_gives_the_probe_back():
    health = Health()
    trip(health)
    candidate = lone(health, HOUSE.targets[19], NOW + 31)
    assert lone(health, HOUSE.targets[19], NOW + 32) is None
    health.released(candidate)
    assert lone(health, HOUSE.targets[19], NOW + 32) is candidate


def test_a_probe_that_says_nothing_holds_up_nobody_for_long():
    health = Health()
    trip(health)
    assert lone(health, HOUSE.targets[19], NOW + 31)
    assert lone(health, HOUSE.targets[18], NOW + 40) is None
    assert lone(health, HOUSE.targets[18], NOW + 52)


def test_successes_count_down_slowly():
    health = Health()
    trip(health, times=7)
    health.succeeded(A.candidates[0], NOW)
    assert (health.breakers["a"].count, state(health)) == (6, "closed")


def test_after_a_cooldown_one_tries_and_the_others_go_elsewhere_meanwhile():
    health = Health()
    house = catalog(provider("a", "m"), provider("b", "m", order=1))
    health.failed(house.targets[0].candidates[0], error("timeout"), NOW, WALL)
    back = NOW + 91
    assert [walk_at(house, health, back) for _ in range(3)] == ["a", "b", "b"]
    health.succeeded(house.targets[0].candidates[0], back)
    assert [walk_at(house, health, back) for _ in range(2)] == ["a", "a"]


def test_with_nobody_else_they_need_not_wait_for_the_one_who_tries():
    health = Health()
    house = catalog(provider("a", "m"))
    health.failed(house.targets[0].candidates[0], error("timeout"), NOW, WALL)
    assert [walk_at(house, health, NOW + 91) for _ in range(3)] == ["a", "a", "a"]


def test_the_only_provider_is_tried_by_one_after_half_of_a_guess():
    health = Health()
    house = catalog(provider("a", "m"))
    [candidate] = house.targets[0].candidates
    health.failed(candidate, error("timeout"), NOW, WALL)
    assert walk_at(house, health, NOW + 40) is None
    assert [walk_at(house, health, NOW + 46) for _ in range(3)] == ["a", None, None]
    health.failed(candidate, error("timeout"), NOW + 47, WALL)
    assert health.blocked(candidate, NOW + 47)[0] == NOW + 47 + 180, "a trial that fails is news"
    assert walk_at(house, health, NOW + 47 + 91) == "a"
    health.succeeded(candidate, NOW + 140)
    assert health.blocked(candidate, NOW + 140) is None, "an answer proves the guess wrong"


@pytest.mark.parametrize(("kind", "retry_s"), [("rate_limited", 100), ("auth", None), ("out_of_credits", None),
                                               ("daily_quota_exhausted", None)])
def test_what_was_stated_or_needs_a_human_is_not_tried(kind, retry_s):
    health = Health()
    house = catalog(provider("a", "m"))
    health.failed(house.targets[0].candidates[0], error(kind, retry_s), NOW, WALL)
    assert walk_at(house, health, NOW + 90) is None


def walk_at(house, health, now):
    found = Walk(resolve("m", house), request(), health, 10, now).next(now)
    return found and found.target.provider.id


def test_a_lockout_grows_with_repetition_and_shrinks_with_success():
    health, now, spans = Health(), NOW, []
    for _ in range(3):
        for n in range(3):
            health.failed(A.candidates[0], error("in_band"), now + n, WALL)
            health.levels.clear()
            if n < 2:
                health._cooldowns.clear()
        spans.append(health._cooldowns[A.key].until - now - 2)
        now = health._cooldowns[A.key].until + 1
        health._failures.clear()
        health._cooldowns.clear()
    assert spans == [600, 1200, 1800]
    health.succeeded(A.candidates[0], now)
    assert health._lockouts[A.key] == 1


@pytest.mark.parametrize(("status", "words", "times", "gone"), [
    (410, "no", 1, True), (404, "this model has been decommissioned", 1, True), (404, "model is no longer available", 1, False),
    (404, "model is no longer available", 2, True), (404, "not found", 9, False)])
def test_a_model_that_is_gone_for_good_is_out_for_a_day(status, words, times, gone):
    health = Health()
    for n in range(times):
        health.failed(A.candidates[0], error("model_not_found", message=words, upstream_status=status), NOW + 1000 * n, WALL)
    found = health._cooldowns.get(A.key)
    assert (found is not None and found.source == "retired") is gone


def told(kind, tokens=0, **numbers):
    made = error(kind)
    made.hint = LimitsHint(**numbers)
    return made, tokens


def test_a_stated_context_keeps_larger_requests_away():
    health = Health()
    failure, _ = told("context_too_large", context=8192, requested=9000)
    health.failed(A.candidates[0], failure, NOW, WALL, tokens=7000)
    one = Walk(resolve("m0", HOUSE), request(), health, 9000, NOW)
    assert one.next(NOW).target is B
    assert [row.reason for row in one.rows(NOW) if row.reason][:1] == ["too_large"]
    assert Walk(resolve("m0", HOUSE), request(), health, 6000, NOW).next(NOW).target is A


def test_where_all_are_said_to_be_too_small_they_are_asked_all_the_same():
    health = Health()
    for target in (A, B):
        health.failed(target.candidates[0], error("context_too_large"), NOW, WALL, tokens=5000)
    one = Walk(resolve("m0", HOUSE), request(), health, 9000, NOW)
    first = one.next(NOW)
    assert first is not None and first.target is A
    one.failed(first, error("context_too_large"))
    assert one.next(NOW).target is B


def test_an_unstated_one_is_latched_by_the_size_that_was_refused_until_a_larger_one_passes():
    health = Health()
    health.failed(A.candidates[0], error("context_too_large"), NOW, WALL, tokens=5000)
    assert health.learned.room(A, NOW) == 4999
    assert health.learned.room(A, NOW + 3601) == float("inf")
    health.failed(A.candidates[0], error("context_too_large"), NOW, WALL, tokens=5000)
    health.succeeded(A.candidates[0], NOW, tokens=6000)
    assert health.learned.room(A, NOW) == float("inf")


def test_a_stated_rate_becomes_a_ceiling_of_that_account():
    health = Health()
    failure, _ = told("rate_limited", metric="rpm", limit=30)
    health.failed(A.candidates[0], failure, NOW, WALL)
    assert health.learned.ceiling(A.candidates[0], NOW) == Ceiling(rpm=30)
    assert health.learned.ceiling(B.candidates[0], NOW) is None
    assert health.learned.ceiling(A.candidates[0], NOW + 86_401) is None


def test_the_house_is_degraded_after_a_minute_below_half_and_normal_two_minutes_above():
    usable = Usable()
    assert not usable.note(1, 4, 0)
    assert usable.note(1, 4, DEGRADED_AFTER_S)
    assert usable.note(3, 4, 100)
    assert not usable.note(3, 4, 100 + NORMAL_AFTER_S)
    assert not Usable().note(0, 2, 1000)


def test_a18_a_restart_forgets_nothing_and_keeps_no_clock():
    before = Health()
    trip(before)
    failure, _ = told("rate_limited", metric="tpm", limit=6000)
    before.failed(B.candidates[0], failure, NOW, WALL)
    before.failed(O.candidates[0], error("context_too_large"), NOW, WALL, tokens=900)
    rows = changes(before, NOW, WALL)
    assert rows and changes(before, NOW, WALL) == []
    after = Health()
    restore(after, rows, 5.0, WALL + 10)
    assert after.breaker(A, 5.0) == "open"
    assert after.breaker(A, 26.0) == "half-open"
    assert after.blocked(B.candidates[0], 5.0) == (pytest.approx(5 + 80), "rate_limited")
    assert after.level(B.candidates[0]) == 1
    assert after.learned.ceiling(B.candidates[0], 5.0) == Ceiling(tpm=6000)
    assert after.learned.room(O, 5.0) == 899
    gone = Health()
    restore(gone, rows, 5.0, WALL + 90_000)
    assert gone.blocked(B.candidates[0], 5.0) is None


def test_a_row_that_cannot_be_read_is_left_out():
    from gateway.core.ports import StateRow
    health = Health()
    restore(health, [StateRow("cooldown", "no json", {}, WALL + 9), StateRow("breaker", '["a","",""]', {"x": 1}, WALL + 9),
                     StateRow("cooldown", '["a","m",""]', None, WALL + 9), StateRow("moon", '["a","m",""]', {}, WALL + 9)], NOW, WALL)
    assert health.snapshot(NOW) == []


def test_a12_a13_who_is_skipped_costs_no_attempt_and_all_skipped_is_503_or_429():
    health = Health(dice=random.Random(0))
    house = catalog(provider("a", "m"), provider("b", "m", keys=0, order=1), provider("c", "m", order=2))
    health.failed(house.targets[0].candidates[0], error("timeout", 9), NOW, WALL)
    health.failed(house.targets[2].candidates[0], error("timeout", 5), NOW, WALL)
    one = walk(house, health=health)
    assert drain(one, "timeout") == []
    end = one.exhaustion(NOW, WALL)
    assert (end.status, end.retry_after_s) == (503, 5)


def test_a15_an_empty_purse_is_out_at_once_and_the_next_serves():
    house = catalog(provider("a", Model("m"), keys=2), provider("b", "m", order=1))
    health = Health()
    one = walk(house, health=health)
    first = one.next(NOW)
    health.failed(first, error("out_of_credits"), NOW, WALL)
    one.failed(first, error("out_of_credits"))
    assert one.next(NOW) is house.targets[0].candidates[1]
    assert health.blocked(first, NOW + 86_000) is not None


def test_an_answer_that_was_asked_for_before_the_rest_is_no_trial():
    health, first = Health(), A.candidates[0]
    health.failed(first, error("server_error"), NOW, WALL)
    health.succeeded(first, NOW + 1)
    later = NOW + 1_000
    assert health.cooldown(first, later) is None and health.trial(first, later) == "mine"
    health.asked(first, later)
    assert health.trial(first, later) == "soft"
    health.succeeded(first, later + 1)
    assert health.trial(first, later + 1) == "free"
