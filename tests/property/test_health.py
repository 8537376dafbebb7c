"""Whatever happens, in whatever order: cooldowns only grow, end by themselves, and a healthy candidate is always found."""
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import KINDS, GatewayError
from gateway.routing.catalog import Catalog
from gateway.routing.cooldown import DAY_S
from gateway.routing.exhaust import exhausted
from gateway.routing.health import Health
from gateway.routing.outcomes import OUTCOMES
from gateway.routing.resolve import resolve
from gateway.routing.walk import Walk
from tests.unit.routing.scene import NOW, WALL, hop, provider, request

FEW = settings(max_examples=80, deadline=None)
HOUSE = Catalog([provider("a", "m", "w", keys=3), provider("b", "m", order=1), provider("c", "m", keys=2, order=2, loopback=True)])
CANDIDATES = [candidate for target in HOUSE.targets for candidate in target.candidates]
UPSTREAM = [kind for kind, outcome in OUTCOMES.items() if outcome.moves_on]

stated = st.one_of(st.none(), st.floats(-10, 10 * DAY_S))
failures = st.tuples(st.sampled_from(CANDIDATES), st.sampled_from(sorted(KINDS)), stated, st.floats(0, 2000))


@given(st.lists(st.one_of(failures, st.sampled_from(CANDIDATES)), max_size=40))
@FEW
def test_a_cooldown_only_ever_grows_and_lasts_a_day_at_most(story):
    health, now = Health(), NOW
    for step in story:
        before = {c.key: health.cooldown(c, now) for c in CANDIDATES}
        if isinstance(step, tuple):
            candidate, kind, retry_s, passed_s = step
            now += passed_s
            before = {c.key: health.cooldown(c, now) for c in CANDIDATES}
            health.failed(candidate, GatewayError(kind, "x", retry_after_s=retry_s), now, WALL)
        else:
            health.succeeded(step, now)
        for candidate in CANDIDATES:
            old, new = before[candidate.key], health.cooldown(candidate, now)
            assert old is None or (new is not None and new.until >= old.until)
            assert new is None or now < new.until <= now + DAY_S + 1
    assert all(health.cooldown(c, now + DAY_S + 1) is None for c in CANDIDATES)


@given(st.lists(failures, max_size=20), st.sampled_from(CANDIDATES))
@FEW
def test_a_failure_never_touches_another_provider(story, bystander):
    health, now = Health(), NOW
    for candidate, kind, retry_s, passed_s in story:
        now += passed_s
        if candidate.target.provider is not bystander.target.provider:
            health.failed(candidate, GatewayError(kind, "x", retry_after_s=retry_s), now, WALL)
    assert health.cooldown(bystander, now) is None


@given(st.lists(failures, max_size=20), st.sampled_from(["m", "w", "auto", "a/m", "c/m"]), st.data())
@FEW
def test_a_walk_asks_each_candidate_once_and_misses_nobody_who_is_free(story, name, data):
    health, now = Health(), NOW
    for candidate, kind, retry_s, passed_s in story:
        now += passed_s
        health.failed(candidate, GatewayError(kind, "x", retry_after_s=retry_s), now, WALL)
    walk = Walk(resolve(name, HOUSE), request(), health, 10, now)
    free = {row.candidate.key for row in walk.rows(now) if not row.reason}
    asked, left_out = [], set()
    while (candidate := walk.next(now)) is not None:
        assert health.cooldown(candidate, now) is None
        asked.append(candidate.key)
        kind = data.draw(st.sampled_from(UPSTREAM))
        skip = OUTCOMES[kind].skip
        left_out |= {"key": set(), "account": {candidate.account_key}, "model": {candidate.target.key},
                     "provider": {candidate.target.provider_key}}[skip]
        walk.failed(candidate, GatewayError(kind, "x"))
    assert len(asked) == len(set(asked))
    missed = [c for c in CANDIDATES if c.key in free - set(asked)]
    assert all(not left_out.isdisjoint(c.keys) for c in missed)


@given(st.lists(failures, min_size=1, max_size=30))
@FEW
def test_who_waits_as_long_as_told_finds_somebody(story):
    health, now = Health(), NOW
    for candidate, kind, retry_s, passed_s in story:
        now += passed_s
        health.failed(candidate, GatewayError(kind, "x", retry_after_s=retry_s), now, WALL)
    walk = Walk(resolve("auto", HOUSE), request(), health, 10, now)
    if walk.next(now) is None:
        wait_s = walk.soonest_retry(now)
        assert wait_s is not None
        assert walk.exhaustion(now, WALL).status in (404, 429, 502, 503)
        assert walk.next(now + wait_s + 1e-6) is not None


@given(st.lists(st.sampled_from(UPSTREAM + ["rejected"]), min_size=1, max_size=20), st.booleans(), stated)
@FEW
def test_the_end_is_always_an_honest_status(kinds, timed_out, retry_s):
    class Waits:
        def soonest_retry(self, now):
            return retry_s

    end = exhausted([hop("a/m", n, kind) for n, kind in enumerate(kinds, 1)], Waits(), NOW, WALL, timed_out)
    assert end.status in (400, 404, 413, 429, 502, 503, 504)
    assert end.type != "authentication_error"
    assert (end.retry_after_s is not None) == (end.status in (429, 503))
    assert end.message
