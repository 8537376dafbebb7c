"""Who is asked in one request, in which order, and who is left out."""
import pytest

from gateway.core.request import ToolChoice
from gateway.providers.registry import Ceiling, Model
from gateway.routing.health import Health
from gateway.routing.rows import words
from tests.unit.routing.scene import NOW, WALL, catalog, drain, error, provider, walk

HOUSE = catalog(provider("a", "m", "w", keys=2), provider("b", "m", order=1), provider("c", "m", "w", order=2))


def test_targets_come_in_configured_order_and_keys_one_after_the_other():
    assert drain(walk(HOUSE), "rate_limited") == ["a/m#1", "a/m#2", "b/m#1", "c/m#1"]


def test_keys_take_turns_from_request_to_request():
    health = Health()
    firsts = [walk(HOUSE, health=health).next(NOW).account.ordinal for _ in range(4)]
    assert firsts == [1, 2, 1, 2]


def test_the_turn_is_taken_once_a_request():
    health = Health()
    one = walk(HOUSE, health=health)
    assert drain(one, "rate_limited")[:2] == ["a/m#1", "a/m#2"]
    assert drain(walk(HOUSE, health=health), "rate_limited")[:2] == ["a/m#2", "a/m#1"]


@pytest.mark.parametrize(("kind", "asked"), [
    ("rate_limited", ["a/m#1", "a/m#2", "a/w#1", "a/w#2", "b/m#1"]),
    ("auth", ["a/m#1", "a/m#2", "b/m#1"]),
    ("out_of_credits", ["a/m#1", "a/m#2", "b/m#1"]),
    ("forbidden_upstream", ["a/m#1", "a/m#2", "a/w#1", "a/w#2", "b/m#1"]),
    ("model_not_found", ["a/m#1", "a/w#1", "b/m#1"]),
    ("context_too_large", ["a/m#1", "a/w#1", "b/m#1"]),
    ("unsupported", ["a/m#1", "a/w#1", "b/m#1"]),
    ("server_error", ["a/m#1", "b/m#1"]),
    ("timeout", ["a/m#1", "b/m#1"]),
    ("truncated", ["a/m#1", "a/m#2", "a/w#1", "a/w#2", "b/m#1"]),
])
def test_a_failure_leaves_out_its_key_its_model_or_its_provider(kind, asked):
    house = catalog(provider("a", "m", "w", keys=2), provider("b", "m", order=1))
    assert drain(walk(house, "auto"), kind) == asked


def test_a_provider_that_knows_none_of_three_models_is_left_out():
    house = catalog(provider("a", "m1", "m2", "m3", "m4", "m5"), provider("b", "m", order=1))
    assert drain(walk(house, "auto"), "model_not_found") == ["a/m1#1", "a/m2#1", "a/m3#1", "b/m#1"]


def test_who_rests_is_not_asked_and_may_be_asked_again_when_the_time_is_over():
    health = Health()
    one = walk(HOUSE, health=health)
    first = one.next(NOW)
    health.failed(first, error("rate_limited", 2), NOW, WALL)
    other = walk(HOUSE, "a/m", health=health)
    assert other.next(NOW).account.ordinal == 2
    again = walk(catalog(provider("a", "m")), "a/m", health=health)
    assert again.next(NOW + 1) is None
    assert again.soonest_retry(NOW + 1) == 1
    assert again.next(NOW + 2).target.label == "a/m"


def test_whose_own_limits_are_full_is_passed_over_without_blame():
    one = walk(HOUSE, "b/m")
    one.busy(one.next(NOW), NOW + 12)
    assert one.next(NOW) is None
    assert one.soonest_retry(NOW) == 12
    error = one.exhaustion(NOW, WALL)
    assert (error.status, error.retry_after_s) == (429, 12)


@pytest.mark.parametrize(("model", "facts", "tokens", "fits"), [
    (Model("m", tools=False), {"tools": {"f": None}}, 10, False),
    (Model("m", tools=False), {"tools": {"f": None}, "tool_choice": ToolChoice(mode="none")}, 10, True),
    (Model("m", tools=None), {"tools": {"f": None}}, 10, True),
    (Model("m", tools=False), {}, 10, True),
    (Model("m", vision=False), {"images": 1}, 10, False),
    (Model("m", vision=None), {"images": 1}, 10, True),
    (Model("m", context=4096), {}, 3096, True),
    (Model("m", context=4096), {}, 3097, False),
    (Model("m", context=4096), {"max_tokens": 16}, 4080, True),
    (Model("m", context=4096), {"max_tokens": 100_000}, 2096, True),
    (Model("m", context=4096), {"max_tokens": 100_000}, 2097, False),
    (Model("m", context=None), {}, 10**9, True),
    (Model("m"), {"n": 2}, 10, True),
])
def test_a_target_must_fit_the_request_as_far_as_is_known(model, facts, tokens, fits):
    found = walk(catalog(provider("a", model)), tokens=tokens, **facts).next(NOW)
    assert (found is not None) is fits


def test_a_request_that_one_account_could_never_take_goes_elsewhere():
    house = catalog(provider("a", "m", limits=Ceiling(tpm=2000)), provider("b", "m", limits=Ceiling(tpd=9000), order=1))
    assert walk(house, tokens=1000).next(NOW).target.label == "a/m"
    assert walk(house, tokens=1001).next(NOW).target.label == "b/m"
    assert walk(house, tokens=9000).exhaustion(NOW, WALL).status == 413


def test_several_choices_go_only_to_formats_that_can_say_so():
    house = catalog(provider("a", "m", wire="anthropic"), provider("b", "m", order=1))
    assert drain(walk(house, n=2), "timeout") == ["b/m#1"]


def test_who_does_not_fit_is_passed_over_and_the_reason_is_known():
    health = Health()
    house = catalog(provider("a", Model("m", tools=False)), provider("b", Model("m", context=1000), order=1),
                    provider("c", "m", keys=0, order=2), provider("d", "m", order=3), provider("e", "m", order=4))
    [resting] = house.targets[3].candidates
    health.failed(resting, error("timeout"), NOW, WALL)
    one = walk(house, health=health, tools={"f": None})
    assert one.next(NOW).target.label == "e/m"
    assert [(row.target.label, row.reason, words(row, NOW)) for row in one.rows(NOW) if row.reason] == [
        ("a/m", "tools", "cannot call tools"),
        ("b/m", "too_large", "takes 1000 tokens at most"),
        ("c/m", "no_account", "its provider has no key"),
        ("d/m", "cooldown", "rests for 90 s after timeout"),
    ]


def test_looking_at_the_rows_takes_nobodys_turn():
    health = Health()
    one = walk(HOUSE, health=health)
    rows = list(one.rows(NOW))
    assert [row.candidate.account.ordinal for row in rows] == [1, 2, 1, 1]
    assert one.next(NOW).account.ordinal == 1
    assert [row.candidate.account.ordinal for row in walk(HOUSE, health=health).rows(NOW)][:2] == [2, 1]
    assert [row.reason for row in one.rows(NOW)] == ["", "", "", ""]


def test_a_failed_hop_is_a_row_that_says_so():
    one = walk(HOUSE)
    one.failed(one.next(NOW), error("server_error"))
    assert [row.reason for row in one.rows(NOW)] == ["failed", "failed", "", ""]


def test_a_walk_over_nobody_ends_at_once():
    one = walk(catalog(provider("a", "m", keys=0)))
    assert one.next(NOW) is None
    assert one.soonest_retry(NOW) is None
    assert one.exhaustion(NOW, WALL).code == "no_providers_configured"
