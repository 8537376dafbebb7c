"""How long a failure benches somebody."""
import pytest

from gateway.core.clock import until_midnight
from gateway.routing.cooldown import DAY_S, Facts, backoff, decide
from gateway.routing.outcomes import OUTCOMES
from tests.unit.routing.scene import NOW, WALL, error

HOURS = 3600.0


def lasts(kind, retry_s=None, wall=WALL, **facts):
    """(seconds, source) of the cooldown after one failure."""
    facts = {"loopback": False, "pacific": False, "level": 1, "transient_s": 90.0, **facts}
    found = decide(OUTCOMES[kind].rule, error(kind, retry_s), Facts(**facts), NOW, wall)
    return None if found is None else (pytest.approx(found.until - NOW), found.source)


@pytest.mark.parametrize(("kind", "expected_s", "source"), [
    ("auth", 300, "heuristic"),
    ("out_of_credits", DAY_S, "credit"),
    ("suspended", DAY_S, "credit"),
    ("forbidden_upstream", DAY_S, "tier"),
    ("daily_quota_exhausted", 16 * HOURS, "authoritative"),
    ("rate_limited", 90, "heuristic"),
    ("overloaded", 90, "heuristic"),
    ("server_error", 90, "heuristic"),
    ("timeout", 90, "heuristic"),
    ("transport", 90, "heuristic"),
    ("truncated", 90, "heuristic"),
    ("empty", 90, "heuristic"),
    ("bad_reply", 90, "heuristic"),
])
def test_a_failure_without_a_stated_time(kind, expected_s, source):
    assert lasts(kind) == (expected_s, source)


@pytest.mark.parametrize("kind", ["model_not_found", "context_too_large", "unsupported", "format_ignored", "empty_length",
                                  "invalid_tool_arguments", "rejected", "client_gone"])
def test_a_failure_that_cools_nobody(kind):
    assert lasts(kind) is None


@pytest.mark.parametrize(("stated_s", "expected_s"), [(5, 5), (17.5, 17.5), (300, 300), (0, 1), (0.2, 1), (-4, 1), (10**7, DAY_S)])
def test_a_stated_time_is_believed_shorter_or_longer_within_reason(stated_s, expected_s):
    for kind in ("rate_limited", "overloaded", "server_error", "daily_quota_exhausted"):
        assert lasts(kind, stated_s) == (expected_s, "authoritative")
        assert lasts(kind, stated_s, loopback=True) == (expected_s, "authoritative")


@pytest.mark.parametrize(("kind", "expected_s"), [("auth", 300), ("out_of_credits", DAY_S), ("suspended", DAY_S)])
def test_a_bad_key_or_an_empty_purse_does_not_heal_by_a_stated_time(kind, expected_s):
    assert lasts(kind, 5)[0] == expected_s


@pytest.mark.parametrize("kind", ["auth", "out_of_credits", "forbidden_upstream", "daily_quota_exhausted", "rate_limited", "timeout"])
def test_an_upstream_on_this_machine_rests_five_seconds_whatever_happened(kind):
    assert lasts(kind, loopback=True) == (5, "heuristic")


def test_google_days_end_in_california():
    assert lasts("daily_quota_exhausted", pacific=True)[0] == 24 * HOURS      # 08:00 UTC is midnight there in winter
    assert lasts("daily_quota_exhausted", pacific=True, wall=WALL + HOURS)[0] == 23 * HOURS


def test_a_day_that_is_nearly_over_still_gives_a_minute():
    assert lasts("daily_quota_exhausted", wall=WALL + 16 * HOURS - 5)[0] == 60


def test_the_transient_time_is_the_operators():
    assert lasts("server_error", transient_s=7.0)[0] == 7


@pytest.mark.parametrize(("level", "first_s", "expected_s"), [
    (1, 90, 90), (2, 90, 180), (3, 90, 360), (4, 90, 600), (50, 90, 600), (0, 90, 90), (1, 3, 3), (2, 3, 6), (3, 3, 12),
    (4, 900, 900)])
def test_repeated_failures_double_the_time_up_to_a_cap(level, first_s, expected_s):
    assert backoff(level, float(first_s)) == expected_s
    assert lasts("rate_limited", level=level, transient_s=float(first_s))[0] == expected_s
    assert lasts("server_error", level=level, transient_s=float(first_s))[0] == expected_s


def test_midnight_in_summer_and_winter():
    assert until_midnight(1_781_506_800.0, pacific=True) == 24 * HOURS         # 2026-06-15 07:00 UTC, daylight saving time
    assert until_midnight(1_781_506_800.0) == 17 * HOURS
