"""Whatever is asked for, whenever: limits hold, waits are exact, and refusals cost nothing."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.policy.keys import ClientKey, KeyRing, digest
from gateway.policy.limits import Limits
from gateway.policy.meters import DAY_S, MINUTE_S, NEVER, Gcra, Window

FEW = settings(max_examples=80, deadline=None)
START = 50_000.0


@given(st.sampled_from([Gcra, Window]), st.integers(1, 50),
       st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1.5)), min_size=1, max_size=60))
@FEW
def test_a_limit_holds_in_every_window(kind, limit, asks):
    """A day never gives more than its limit, a minute never more than a burst and its refill."""
    window_s, most = (DAY_S, limit) if kind is Window else (MINUTE_S, 2 * limit)
    meter, now, taken = kind(limit), START, []
    for cost, share in asks:
        now += share * window_s / 10
        if meter.wait(cost, now) == 0:
            meter.take(cost, now)
            taken.append((now, cost))
    for since, _ in taken:
        assert sum(cost for at, cost in taken if since <= at < since + window_s) <= most


@given(st.sampled_from([Gcra, Window]), st.integers(1, 1000), st.data())
@FEW
def test_a_stated_wait_is_enough_and_not_more_than_needed(kind, limit, data):
    meter, now = kind(limit), START
    for cost, passed_s in data.draw(st.lists(st.tuples(st.integers(1, limit), st.floats(0, 5000)), max_size=20)):
        now += passed_s
        if meter.wait(cost, now) == 0:
            meter.take(cost, now)
    cost = data.draw(st.integers(1, limit))
    wait_s = meter.wait(cost, now)
    assert wait_s != NEVER
    if wait_s > 0.01:
        assert meter.wait(cost, now + wait_s - 0.01) > 0
    assert meter.wait(cost, now + wait_s) == 0


@given(st.sampled_from([Gcra, Window]), st.integers(1, 1000), st.data())
@FEW
def test_settling_equals_having_charged_the_right_amount(kind, limit, data):
    estimate, used = data.draw(st.integers(0, limit)), data.draw(st.integers(0, limit))
    one, two = kind(limit), kind(limit)
    one.take(estimate, START)
    one.adjust(used - estimate, START)
    two.take(used, START)
    assert abs(one.remaining(START) - two.remaining(START)) <= 1
    assert one.remaining(START) <= limit


asks = st.lists(st.tuples(st.sampled_from(["ask", "end"]), st.integers(0, 300), st.floats(0, 40)), max_size=60)


@given(asks, st.integers(0, 5), st.integers(0, 500), st.integers(0, 3))
@FEW
def test_a_key_never_runs_more_than_it_may_and_gets_every_place_back(story, rpm, tpm, concurrency):
    [key] = KeyRing([ClientKey(name="k", sha256=digest("k"), rpm=rpm, tpm=tpm, concurrency=concurrency)]).principals
    limits, now, running = Limits(), START, []
    for what, tokens, passed_s in story:
        now += passed_s
        if what == "end" and running:
            running.pop().settle(tokens, now)
            continue
        before = dict(limits.headers(key, now))
        try:
            running.append(limits.take(key, tokens, now))
        except GatewayError as error:
            assert error.kind == "limited"
            assert not before or dict(limits.headers(key, now)) == before
        assert not concurrency or len(running) <= concurrency
    for reservation in running:
        reservation.settle(0, now)
        reservation.settle(0, now)
    assert all(row["running"] == 0 for row in limits.snapshot(now))


@given(st.integers(1, 20), st.integers(1, 100))
@FEW
def test_a_refused_client_that_waits_as_told_is_admitted(rpm, burst):
    [key] = KeyRing([ClientKey(name="k", sha256=digest("k"), rpm=rpm)]).principals
    limits, now, admitted = Limits(), START, 0
    for _ in range(min(burst, rpm)):
        limits.take(key, 1, now)
        admitted += 1
    assert admitted == min(burst, rpm)
    if burst >= rpm:
        with pytest.raises(GatewayError) as caught:
            limits.take(key, 1, now)
        limits.take(key, 1, now + caught.value.retry_after_s)
