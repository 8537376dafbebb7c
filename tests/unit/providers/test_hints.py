"""Stated times and numbers are read from wherever a provider puts them."""
import pytest

from gateway.providers.hints import LimitsHint, in_prose, limits_hint, retry_after_s

NOW = 1_700_000_000.0       # Tue, 14 Nov 2023 22:13:20 GMT


def stated(headers=None, payload=None, text="", resets=True):
    return retry_after_s(headers or {}, payload, text, resets=resets, wall=NOW)


@pytest.mark.parametrize(("headers", "seconds"), [
    ({"Retry-After": "7"}, 7), ({"retry-after": "0.5"}, 1), ({"RETRY-AFTER": " 30 "}, 30), ({"Retry-After": "0"}, 1),
    ({"Retry-After": "-5"}, 1), ({"Retry-After": "999999"}, 86_400), ({"Retry-After": "2m"}, 120),
    ({"Retry-After": "Tue, 14 Nov 2023 22:14:20 GMT"}, 60), ({"Retry-After": "Tue, 14 Nov 2000 22:14:20 GMT"}, 1),
    ({"Retry-After": "2023-11-14T22:13:50Z"}, 30), ({"Retry-After": "1700000040"}, 40),
    ({"retry-after-ms": "18642", "retry-after": "19"}, 18.642),
    ({"Retry-After": "soon"}, None), ({"Retry-After": ""}, None), ({"Retry-After": "Tue, 99 Nov 2023"}, None),
    ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "18.642s"}, 18.642),
    ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s",
      "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2s"}, 360),
    ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "18s"}, None),
    ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000090000"}, 90),
    ({"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:30Z"}, 10),
])
def test_headers(headers, seconds):
    assert stated(headers) == seconds


def test_a_date_is_relative_to_the_providers_own_clock():
    headers = {"Date": "Mon, 01 Jan 2001 00:00:00 GMT", "Retry-After": "Mon, 01 Jan 2001 00:00:45 GMT"}
    assert retry_after_s(headers, None, "", resets=True) == 45


def test_reset_headers_count_only_where_asked():
    assert stated({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9"}, resets=False) is None


@pytest.mark.parametrize(("payload", "seconds"), [
    ({"error": {"details": [{"@type": "RetryInfo", "retryDelay": "17s"}]}}, 17),
    ({"error": {"details": [{"retryDelay": {"seconds": "17"}}]}}, 17),
    ({"retry_after": 3}, 3), ({"retryAfterSeconds": "4.5"}, 4.5), ({"retry-after-ms": 2_500}, 2.5),
    ({"a": {"b": {"c": {"d": {"retryAfter": 9}}}}}, 9),
    ({"a": {"b": {"c": {"d": {"e": {"f": {"retryAfter": 9}}}}}}}, None),
    ({"retry_after": True}, None), ({"retry_after": None}, None), ({"retry_after": "later"}, None),
    ({"retry_after": 2, "error": {"retry_after": 90}}, 2),
    ({"error": {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000030000"}}}}, 30),
    ([{"error": {"retryDelay": "5s"}}], 5), ("text", None),
])
def test_bodies(payload, seconds):
    assert stated(payload=payload) == seconds


@pytest.mark.parametrize(("text", "seconds"), [
    ("Please try again in 7.66s.", 7.66), ("try again in 9m38.016s", 578.016), ("Please retry in 48.9s", 48.9),
    ("retry after 2m", 120), ("Retry after 26 seconds", 26), ("wait 500ms", 0.5), ("wait for another 3 hours", 10_800),
    ("your quota will reset after 1h2m3s", 3_723), ("resets in 2 days", 172_800), ("try again in 1 minute and 5 seconds", 65),
    ("try again later", None), ("wait a moment and try again", None), ("retry after 5 attempts", None),
    ("retry in 3 models", None), ("within the last 5 minutes", None), ("a 20s timeout", None),
])
def test_prose(text, seconds):
    assert in_prose(text) == (None if seconds is None else pytest.approx(seconds))


def test_the_most_exact_statement_wins():
    assert stated({"Retry-After": "5"}, {"retryDelay": "17s"}, "try again in 30s") == 5
    assert stated({}, {"retryDelay": "17s"}, "try again in 30s") == 17
    assert stated({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}, None, "try again in 30s") == 30


def test_a_huge_body_is_not_walked_to_the_end():
    assert stated(payload={"a": [{"b": i} for i in range(100_000)]}) is None


@pytest.mark.parametrize(("text", "hint"), [
    ("on tokens per minute (TPM): Limit 12000, Requested 14137", LimitsHint(metric="tpm", limit=12_000, requested=14_137)),
    ("on requests per day (RPD): Limit 1,000, Used 1,000", LimitsHint(metric="rpd", limit=1_000)),
    ("exceed the rate limit of 20,000 input tokens per minute", LimitsHint(metric="tpm", limit=20_000)),
    ("maximum context length is 8192 tokens. However, you requested 9001 tokens", LimitsHint(context=8_192, requested=9_001)),
    ("prompt is too long: 250001 tokens > 200000 maximum", LimitsHint(context=200_000, requested=250_001)),
    ("input token count (12) exceeds the maximum number of tokens allowed (10)", LimitsHint(context=10, requested=12)),
    ("you requested about 2500 tokens", LimitsHint(requested=2_500)),
    ("request has at least 777 input tokens", LimitsHint(requested=777)),
    ("max_tokens is too large: 9. This model supports at most 4096 completion tokens", LimitsHint(max_output=4_096)),
    ("`max_tokens` must be less than or equal to `8192`", LimitsHint(max_output=8_192)),
    ("Max size: 8000 tokens", LimitsHint()),
    ("nothing here", LimitsHint()),
])
def test_limits_and_sizes(text, hint):
    assert limits_hint(text) == hint
    assert bool(limits_hint(text)) == (hint != LimitsHint())
