"""When nobody is left, the status says honestly why."""
import pytest

from gateway.core.errors import GatewayError
from gateway.providers.registry import Model
from gateway.routing.exhaust import exhausted
from gateway.routing.health import Health
from tests.unit.routing.scene import NOW, WALL, catalog, error, hop, provider, walk


class Waits:
    """A walk in which somebody may be asked again after so many seconds."""

    def __init__(self, seconds=None):
        self.seconds = seconds

    def soonest_retry(self, now):
        return self.seconds


def ended(*kinds, retry_s=57.2, timed_out=False):
    hops = [hop(f"p{n}/m", n + 1, kind) for n, kind in enumerate(kinds)]
    return exhausted(hops, Waits(retry_s), NOW, WALL, timed_out)


@pytest.mark.parametrize(("kinds", "status", "type", "code"), [
    (["auth", "auth"], 502, "provider_error", "provider_authentication_failed"),
    (["model_not_found"] * 2, 404, "invalid_request_error", "model_not_found"),
    (["rate_limited", "daily_quota_exhausted"], 429, "rate_limit_error", "rate_limit_exceeded"),
    (["out_of_credits", "suspended", "forbidden_upstream"], 429, "rate_limit_error", "rate_limit_exceeded"),
    (["degraded"], 503, "service_unavailable", "provider_degraded"),
    (["overloaded", "degraded"], 503, "service_unavailable", "upstream_unhealthy"),
    (["overloaded"], 503, "service_unavailable", "upstream_unhealthy"),
    (["timeout", "timeout"], 504, "provider_error", "upstream_timeout"),
    (["server_error", "transport"], 502, "provider_error", "upstream_failed"),
    (["server_error", "rate_limited"], 502, "provider_error", "upstream_failed"),
    (["auth", "rate_limited"], 502, "provider_error", "upstream_failed"),
    (["timeout", "transport"], 502, "provider_error", "upstream_failed"),
    (["empty", "truncated", "bad_reply", "in_band"], 502, "provider_error", "upstream_failed"),
    (["context_too_large", "server_error"], 502, "provider_error", "upstream_failed"),
])
def test_alike_attempts_give_their_cause_and_mixed_ones_502(kinds, status, type, code):
    error = ended(*kinds)
    assert (error.status, error.type, error.code) == (status, type, code)


def test_a_wait_is_stated_where_waiting_helps():
    error = ended("rate_limited", "rate_limited")
    assert error.retry_after_s == 57.2
    assert error.extra == {"retryAtMs": round((WALL + 57.2) * 1000)}
    assert ended("overloaded").retry_after_s == 57.2
    assert ended("server_error").retry_after_s is None
    assert ended("rate_limited", retry_s=None).retry_after_s == 1.0


def test_the_message_has_the_number_of_attempts_the_trail_and_the_last_words():
    error = ended("server_error", "rate_limited", "server_error")
    assert error.message == (
        "All 3 attempts failed (server_error x2, rate_limited x1). Attempt trail: p0/m key1: server_error; p1/m key2: rate_limited; "
        "p2/m key3: server_error. Last error: it was server_error")


def test_one_attempt_is_told_as_one_and_a_spent_budget_is_mentioned():
    assert ended("timeout").message.startswith("The only attempt failed. Attempt trail: p0/m key1: timeout.")
    assert "the time for more is over" in ended("timeout", timed_out=True).message


def test_a_long_trail_and_a_long_error_are_bounded():
    hops = [hop(f"p{n}/m", 1, error("server_error", message="x" * 5000)) for n in range(20)]
    told = exhausted(hops, Waits(), NOW, WALL, False).message
    assert "; +10 more." in told
    assert len(told) < 1200


@pytest.mark.parametrize(("first", "status"), [
    (error("context_too_large", message="prompt is too long", upstream_status=400), 400),
    (error("context_too_large", message="prompt is too long", upstream_status=413), 413),
    (error("context_too_large", message="prompt is too long"), 413),
    (error("unsupported", message="prompt is too long", upstream_status=422), 422),
])
def test_if_all_refuse_the_first_refusal_comes_back_as_it_was(first, status):
    first.verbatim = {"error": {"message": "prompt is too long"}}
    found = exhausted([hop("a/m", 1, first), hop("b/m", 2, "unsupported")], Waits(), NOW, WALL, False)
    assert (found.status, found.message, found.verbatim) == (status, "prompt is too long", first.verbatim)


def test_a_body_that_nobody_would_take_ends_it_whatever_was_tried_before():
    last = error("rejected", message="messages.0.content: required", upstream_status=400)
    found = exhausted([hop("a/m", 1, "server_error"), hop("b/m", 2, last)], Waits(), NOW, WALL, False)
    assert (found.status, found.message) == (400, "messages.0.content: required")


def test_without_any_failed_attempt_the_time_was_up():
    assert exhausted([], Waits(), NOW, WALL, True).status == 504


def at_rest(*kinds, retry_s=None, models=None):
    """The answer when one provider per kind rests after it and nothing else is there."""
    house = catalog(*(provider(f"p{n}", "m", order=n) for n in range(len(kinds))))
    health = Health()
    for target, kind in zip(house.targets, kinds, strict=True):
        health.failed(target.candidates[0], error(kind, retry_s), NOW, WALL)
    one = walk(house, health=health)
    assert one.next(NOW) is None
    return one.exhaustion(NOW, WALL)


@pytest.mark.parametrize(("kinds", "status", "code", "retry_s"), [
    (["rate_limited", "rate_limited"], 429, "rate_limit_exceeded", 90),
    (["rate_limited", "server_error"], 429, "rate_limit_exceeded", 90),
    (["out_of_credits"], 429, "rate_limit_exceeded", 86_400),
    (["server_error", "timeout"], 503, "upstream_unhealthy", 90),
    (["overloaded"], 503, "upstream_unhealthy", 90),
    (["timeout"], 503, "upstream_unhealthy", 90),
    (["server_error"], 503, "upstream_unhealthy", 90),
    (["degraded"], 503, "provider_degraded", 90),
    (["auth"], 502, "provider_authentication_failed", None),
    (["auth", "transport"], 503, "upstream_unhealthy", 90),
])
def test_when_everybody_rests_the_causes_decide(kinds, status, code, retry_s):
    error = at_rest(*kinds)
    assert (error.status, error.code, error.retry_after_s) == (status, code, retry_s)


def test_when_everybody_rests_the_message_says_who_and_how_long():
    error = at_rest("rate_limited", "timeout", retry_s=5)
    assert error.message == ("Every target of 'm' rests; the next may be asked in 5 s. p0/m rests for 5 s after rate_limited; "
                             "p1/m rests for 5 s after timeout.")


@pytest.mark.parametrize(("models", "facts", "status", "code", "param"), [
    ([Model("m", context=2000)], {}, 413, "context_length_exceeded", "messages"),
    ([Model("m", tools=False)], {"tools": {"f": None}}, 422, "no_tools_model", "tools"),
    ([Model("m", vision=False)], {"images": 1}, 422, "no_vision_model", "messages"),
    ([Model("m", vision=False), Model("m", context=2000)], {"images": 1}, 413, "context_length_exceeded", "messages"),
    ([Model("m", vision=False), Model("m", tools=False)], {"images": 1, "tools": {"f": None}}, 422, "no_tools_model", "tools"),
])
def test_when_nobody_fits_the_gate_that_the_best_reached_decides(models, facts, status, code, param):
    house = catalog(*(provider(f"p{n}", model, order=n) for n, model in enumerate(models)))
    error = walk(house, tokens=5000, **facts).exhaustion(NOW, WALL)
    assert (error.status, error.code, error.param) == (status, code, param)


def test_several_choices_where_no_format_can_say_so_are_the_callers_mistake():
    error = walk(catalog(provider("a", "m", wire="anthropic")), n=3).exhaustion(NOW, WALL)
    assert (error.status, error.param) == (400, "n")


def test_who_rests_could_have_served_so_misfits_do_not_matter():
    house = catalog(provider("a", Model("m", vision=False)), provider("b", "m", order=1))
    health = Health()
    health.failed(house.targets[1].candidates[0], error("rate_limited", 30), NOW, WALL)
    assert walk(house, health=health, images=1).exhaustion(NOW, WALL).retry_after_s == 30


def test_a_long_list_of_targets_is_cut():
    told = at_rest(*["timeout"] * 12).message
    assert "and 7 more" in told
    assert isinstance(at_rest("timeout"), GatewayError)
