"""How fast somebody usually is: of his own answers, streams and whole ones apart."""
import pytest

from gateway.routing.stats import ENOUGH, Stats
from tests.unit.routing.scene import NOW, catalog, provider


def accounts(keys=1):
    return catalog(provider("a", "m", keys=keys)).targets[0].candidates


def told(stats, candidate, *seconds, whole=False):
    for first_s in seconds:
        stats.add(candidate, True, NOW, first_s, 0.0, whole)


def test_few_answers_are_not_enough_to_know():
    (a,), stats = accounts(), Stats()
    assert stats.usual_s(a, whole=False) is None
    told(stats, a, *[1.0] * (ENOUGH - 1))
    assert stats.usual_s(a, whole=False) is None
    told(stats, a, 3.0)
    assert stats.usual_s(a, whole=False) == pytest.approx(3.0)


def test_whole_answers_and_streams_are_two_things():
    (a,), stats = accounts(), Stats()
    told(stats, a, *[1.0] * 20)
    told(stats, a, *[9.0] * 20, whole=True)
    assert (stats.usual_s(a, whole=False), stats.usual_s(a, whole=True)) == pytest.approx((1.0, 9.0))
    assert stats.get(a.key).p95_ms == pytest.approx(1000)


def test_where_nobody_streamed_whole_answers_say_how_fast_somebody_is():
    (a,), stats = accounts(), Stats()
    told(stats, a, *[9.0] * 20, whole=True)
    assert stats.get(a.key).latency()[0] == pytest.approx(9000) and stats.get(a.key).n == 20


def test_another_key_of_the_model_is_as_fast():
    (a, b), stats = accounts(2), Stats()
    told(stats, a, *[1.0] * 20)
    assert stats.usual_s(b, whole=False) == pytest.approx(1.0)


def test_who_was_left_silent_is_not_thought_quick_for_it():
    (a,), stats = accounts(), Stats()
    told(stats, a, *[1.0] * 20)
    before = stats.get(a.key).success
    stats.waited(a, 4.0, whole=False)
    stats.waited(a, 4.0, whole=False)
    assert stats.usual_s(a, whole=False) == pytest.approx(4.0) and stats.get(a.key).success == before
