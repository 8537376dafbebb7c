"""Keys stay within their limits, and a refusal costs nothing."""
import pytest

from gateway.core.errors import GatewayError
from gateway.policy.keys import ClientKey, KeyRing, digest
from gateway.policy.limits import Limits, _duration
from gateway.providers.registry import Ceiling

NOW = 10_000.0


def holder(name="k", **limits):
    return KeyRing([ClientKey(name=name, sha256=digest(name), **limits)]).principals[0]


def refusal(take, *args):
    with pytest.raises(GatewayError) as caught:
        take(*args)
    return caught.value


def test_a_key_without_limits_is_never_measured():
    limits = Limits()
    one, two = (limits.take(holder(), 10**9, NOW) for _ in range(2))
    assert one is two
    one.settle(5, NOW)
    assert dict(one.headers) == {}
    assert limits.snapshot(NOW) == []


def test_requests_a_minute():
    limits, key = Limits(), holder(rpm=2)
    limits.take(key, 1, NOW)
    limits.take(key, 1, NOW)
    error = refusal(limits.take, key, 1, NOW)
    assert (error.status, error.code, error.kind) == (429, "rate_limit_exceeded", "limited")
    assert error.retry_after_s == pytest.approx(30)
    assert error.message == "This client key is limited to 2 requests a minute; the next fits in 30s."
    limits.take(key, 1, NOW + error.retry_after_s)


def test_tokens_are_reserved_by_estimate_and_settled_by_use():
    limits, key = Limits(), holder(tpm=1000)
    one = limits.take(key, 900, NOW)
    assert refusal(limits.take, key, 200, NOW).retry_after_s == pytest.approx(6)
    one.settle(100, NOW)
    limits.take(key, 850, NOW)


def test_a_request_that_never_fits_is_told_so_without_a_time():
    error = refusal(Limits().take, holder(tpm=1000), 1001, NOW)
    assert error.retry_after_s is None
    assert "never fits" in error.message


def test_requests_at_a_time_are_given_back_once():
    limits, key = Limits(), holder(concurrency=1)
    one = limits.take(key, 1, NOW)
    assert "1 requests at once" in refusal(limits.take, key, 1, NOW).message
    one.release(NOW)
    one.release(NOW)
    one.settle(5, NOW)
    two = limits.take(key, 1, NOW)
    refusal(limits.take, key, 1, NOW)
    two.settle(1, NOW)
    limits.take(key, 1, NOW)


def test_a_refusal_by_one_limit_charges_none_of_the_others():
    limits, key = Limits(), holder(rpm=10, tpm=100, concurrency=5)
    limits.take(key, 100, NOW).release(NOW)
    for _ in range(50):
        refusal(limits.take, key, 50, NOW)
    assert limits.headers(key, NOW)["x-ratelimit-remaining-requests"] == "9"
    assert limits.snapshot(NOW)[0]["running"] == 0


def test_the_longest_wait_of_all_limits_is_told():
    limits, key = Limits(), holder(rpm=1, concurrency=1)
    limits.take(key, 1, NOW)
    assert refusal(limits.take, key, 1, NOW).retry_after_s == pytest.approx(60)


def test_releasing_keeps_the_estimate():
    limits, key = Limits(), holder(tpm=1000)
    limits.take(key, 1000, NOW).release(NOW)
    refusal(limits.take, key, 1, NOW)


def test_headers_speak_of_the_keys_own_limits():
    limits, key = Limits(), holder(rpm=60, tpm=6000)
    headers = limits.take(key, 600, NOW).headers
    assert headers == {
        "x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "6000", "x-ratelimit-remaining-tokens": "5400", "x-ratelimit-reset-tokens": "6s"}
    assert dict(limits.headers(holder("other", rpm=3), NOW)) == {}


@pytest.mark.parametrize(("left_s", "text"), [(0, "0s"), (0.12, "120ms"), (0.9999, "1s"), (1, "1s"), (8.64, "8.64s"), (60, "1m0s"),
                                              (360.5, "6m0.5s"), (5400, "1h30m0s"), (20, "20s"), (86_400, "24h0m0s")])
def test_waits_are_written_as_openai_does(left_s, text):
    assert _duration(left_s) == text


def test_an_account_of_a_provider_has_its_own_limits():
    limits, ceiling = Limits(), Ceiling(rpm=10, rpd=3, tpd=1000, concurrency=2)
    for _ in range(2):
        limits.take_account(("a", "", "k1"), ceiling, 100, NOW).release(NOW)
    limits.take_account(("a", "", "k2"), ceiling, 100, NOW)
    one = limits.take_account(("a", "", "k1"), ceiling, 100, NOW)
    one.settle(900, NOW)
    error = refusal(limits.take_account, ("a", "", "k1"), ceiling, 1, NOW)
    assert "a day" in error.message
    assert error.message.startswith("This provider key is limited to")
    assert 80_000 < error.retry_after_s <= 86_400


def test_an_account_without_limits_is_never_measured():
    limits = Limits()
    assert limits.take_account("a", Ceiling(), 10**9, NOW) is limits.take_account("b", Ceiling(), 1, NOW)


def test_changed_limits_keep_what_runs_and_what_did_not_change():
    limits = Limits()
    running = limits.take(holder(rpm=2, concurrency=1), 1, NOW)
    assert "1 requests at once" in refusal(limits.take, holder(rpm=2, tpm=50, concurrency=1), 1, NOW).message
    limits.take(holder(rpm=2, concurrency=2), 1, NOW)
    assert "2 requests a minute" in refusal(limits.take, holder(rpm=2, concurrency=9), 1, NOW).message
    running.settle(1, NOW)
    assert limits.snapshot(NOW)[0]["running"] == 1


def test_the_map_of_keys_is_bounded():
    limits = Limits(max_keys=10)
    held = [limits.take(holder(f"k{n}", concurrency=1), 1, NOW) for n in range(100)]
    assert len(limits.snapshot(NOW)) == 10
    for reservation in held:
        reservation.settle(1, NOW)
