"""Meters let through what fits, say exactly when the rest will, and charge nothing for a look."""
import pytest

from gateway.policy.meters import DAY_S, NEVER, Gcra, Window

NOW = 10_000.0
KINDS = pytest.mark.parametrize("kind", [Gcra, Window])


def test_a_minute_gives_its_limit_at_once_and_then_one_by_one():
    meter = Gcra(4)
    for _ in range(4):
        assert meter.wait(1, NOW) == 0
        meter.take(1, NOW)
    assert meter.wait(1, NOW) == pytest.approx(15)
    assert meter.wait(2, NOW) == pytest.approx(30)
    assert meter.wait(1, NOW + 15) == 0
    assert meter.wait(2, NOW + 15) == pytest.approx(15)


def test_a_day_gives_its_limit_once_in_any_day():
    meter = Window(10)
    meter.take(6, NOW)
    meter.take(4, NOW + 40_000)
    wait_s = meter.wait(1, NOW + 50_000)
    assert DAY_S - 50_000 <= wait_s <= DAY_S - 50_000 + 900
    assert meter.wait(6, NOW + 50_000) == wait_s
    assert meter.wait(7, NOW + 50_000) > wait_s
    assert meter.wait(6, NOW + 50_000 + wait_s) == 0


@KINDS
def test_looking_charges_nothing(kind):
    meter = kind(2)
    for _ in range(10):
        assert meter.wait(2, NOW) == 0
    assert meter.remaining(NOW) == 2


@KINDS
def test_more_than_the_limit_never_fits(kind):
    assert kind(5).wait(6, NOW) == NEVER
    assert kind(5).wait(5, NOW) == 0


@KINDS
def test_what_was_charged_too_much_comes_back(kind):
    meter = kind(100)
    meter.take(90, NOW)
    meter.adjust(-80, NOW + 1)
    assert meter.wait(90, NOW + 1) == 0
    assert meter.remaining(NOW + 1) in (90, 91)


@KINDS
def test_what_was_charged_too_little_is_added_even_beyond_the_limit(kind):
    meter = kind(100)
    meter.take(90, NOW)
    meter.adjust(60, NOW)
    assert meter.wait(1, NOW) > 0
    assert meter.remaining(NOW) == 0
    assert meter.reset(NOW) > 0


@KINDS
def test_all_is_free_again_after_the_reset(kind):
    meter = kind(10)
    assert meter.reset(NOW) == 0
    meter.take(7, NOW)
    assert meter.remaining(NOW + meter.reset(NOW) + 0.001) == 10


def test_giving_back_more_than_is_left_in_the_window_is_harmless():
    meter = Window(10)
    meter.take(5, NOW)
    meter.adjust(-5, NOW + 2 * DAY_S)
    assert meter.remaining(NOW + 2 * DAY_S) == 10
