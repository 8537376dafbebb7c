"""Failures bench, successes forgive, and nothing is counted twice."""
import pytest

from gateway.routing.cooldown import DAY_S
from gateway.routing.health import Health
from tests.unit.routing.scene import NOW, WALL, catalog, error, provider


class Ward:
    """One provider with two keys and two models, and its health."""

    def __init__(self, **facts):
        self.health = Health()
        one, two = catalog(provider("a", "m", "w", keys=2, **facts)).targets
        (self.m1, self.m2), (self.w1, self.w2) = one.candidates, two.candidates

    def fail(self, kind, candidate=None, now=NOW, retry_s=None, **how):
        self.health.failed(candidate or self.m1, error(kind, retry_s), now, WALL, **how)

    def left(self, candidate, now=NOW):
        found = self.health.blocked(candidate, now)
        return None if found is None else found[0] - now

    def resting(self, now=NOW):
        return [name for name in ("m1", "m2", "w1", "w2") if self.health.blocked(getattr(self, name), now)]


@pytest.fixture
def ward():
    return Ward()


@pytest.mark.parametrize(("kind", "resting"), [
    ("auth", ["m1", "w1"]), ("out_of_credits", ["m1", "w1"]), ("suspended", ["m1", "w1"]),
    ("forbidden_upstream", ["m1"]), ("daily_quota_exhausted", ["m1"]), ("rate_limited", ["m1"]), ("server_error", ["m1"]),
    ("context_too_large", []), ("model_not_found", []), ("rejected", []), ("client_gone", []), ("empty_length", []),
])
def test_a_failure_benches_its_key_for_one_model_or_for_all(ward, kind, resting):
    ward.fail(kind)
    assert ward.resting() == resting


def test_a_bench_says_why_and_ends_by_itself(ward):
    ward.fail("timeout")
    assert ward.health.blocked(ward.m1, NOW + 89.9) == (NOW + 90, "timeout")
    assert ward.health.blocked(ward.m1, NOW + 90) is None


def test_a_running_longer_cooldown_is_never_shortened(ward):
    ward.fail("rate_limited", retry_s=600)
    ward.fail("rate_limited", retry_s=5)
    assert ward.left(ward.m1) == 600
    ward.fail("rate_limited", retry_s=900)
    assert ward.left(ward.m1) == 900


def test_the_longest_of_all_that_cover_a_candidate_counts(ward):
    ward.fail("auth")
    ward.fail("rate_limited", retry_s=5)
    assert ward.health.blocked(ward.m1, NOW) == (NOW + 300, "auth")
    ward.fail("rate_limited", retry_s=4000)
    assert ward.health.blocked(ward.m1, NOW) == (NOW + 4000, "rate_limited")


def test_three_failures_of_one_model_rest_it_on_all_its_keys(ward):
    ward.fail("server_error", ward.m1)
    ward.fail("empty", ward.m2)
    assert ward.left(ward.m2) == 90
    ward.fail("timeout", ward.m1, NOW + 200)
    assert [ward.left(c, NOW + 200) for c in (ward.m1, ward.m2, ward.w1)] == [600, 600, None]


def test_three_failures_over_more_than_a_quarter_of_an_hour_do_not(ward):
    for at in (0, 500, 1000):
        ward.fail("server_error", now=NOW + at)
    assert ward.left(ward.m2, NOW + 1000) is None


def test_a_success_forgets_what_was_counted_but_ends_no_cooldown(ward):
    ward.fail("server_error")
    ward.fail("server_error", now=NOW + 100)
    ward.health.succeeded(ward.m2, NOW + 150)
    assert ward.left(ward.m1, NOW + 150) == 130
    ward.fail("server_error", now=NOW + 200)
    assert ward.left(ward.m2, NOW + 200) is None


def test_a_hiccup_that_hits_many_requests_at_once_is_one_failure(ward):
    for n in range(50):
        ward.fail("server_error", now=NOW + n / 100)
        ward.fail("rate_limited", ward.w1, now=NOW + n / 100)
    assert ward.left(ward.m1, NOW) == pytest.approx(90.49)
    assert ward.left(ward.w1, NOW) == pytest.approx(90.49)
    assert ward.left(ward.m2) is None


def test_a_quota_answer_of_every_key_does_not_bench_the_model(ward):
    for candidate in (ward.m1, ward.m2):
        ward.fail("rate_limited", candidate)
    ward.fail("rate_limited", ward.m1, NOW + 100)
    assert ward.left(ward.m2, NOW + 100) is None


def test_a_stated_time_is_not_stretched_by_the_window(ward):
    for at in (0, 10, 20):
        ward.fail("overloaded", now=NOW + at, retry_s=3)
    assert ward.left(ward.m1, NOW + 20) == 3
    assert ward.left(ward.m2, NOW + 20) is None


def test_a16_repeated_quota_answers_double_the_rest_until_a_success(ward):
    for at, expected_s in ((0, 90), (100, 180), (300, 360), (700, 600), (1400, 600)):
        ward.fail("rate_limited", now=NOW + at)
        assert ward.left(ward.m1, NOW + at) == expected_s
    ward.health.succeeded(ward.m1)
    ward.fail("rate_limited", now=NOW + 2001)
    assert ward.left(ward.m1, NOW + 2001) == 90


def test_a16_a_stated_time_is_the_time_and_a_failure_during_a_rest_does_not_double(ward):
    ward.fail("rate_limited", retry_s=7)
    assert ward.left(ward.m1) == 7
    ward.fail("rate_limited", ward.m2)
    ward.fail("rate_limited", ward.m2, NOW + 10)
    assert ward.left(ward.m2, NOW + 10) == 90


def test_a_failure_long_after_the_last_one_begins_anew(ward):
    ward.fail("timeout")
    ward.fail("timeout", now=NOW + 800)
    assert ward.left(ward.m1, NOW + 800) == 90


def test_three_cut_streams_in_a_row_rest_five_minutes(ward):
    for at in (0, 1000, 2000):
        ward.fail("truncated", now=NOW + at)
    assert ward.left(ward.m1, NOW + 2000) == 300
    assert ward.left(ward.m2, NOW + 2000) is None


@pytest.mark.parametrize("between", ["success", "timeout"])
def test_something_else_in_between_ends_the_row(ward, between):
    for at in (0, 1000):
        ward.fail("truncated", now=NOW + at)
    if between == "success":
        ward.health.succeeded(ward.m1)
    else:
        ward.fail("timeout", now=NOW + 1700)
    ward.fail("truncated", now=NOW + 2400)
    assert ward.left(ward.m1, NOW + 2400) == 90


def test_what_is_no_matter_of_health_neither_counts_nor_ends_a_row(ward):
    for at in (0, 1000):
        ward.fail("truncated", now=NOW + at)
        ward.fail("context_too_large", now=NOW + at + 500)
        ward.fail("client_gone", now=NOW + at + 600)
    ward.fail("truncated", now=NOW + 2000)
    assert ward.left(ward.m1, NOW + 2000) == 300


def test_answers_cut_short_by_length_are_exempt_until_the_third_in_a_row(ward):
    ward.fail("empty_length")
    ward.fail("empty_length")
    assert ward.left(ward.m1) is None
    ward.fail("empty_length")
    assert ward.left(ward.m1) == 90


def test_an_answer_in_between_renews_the_exemption(ward):
    for _ in range(3):
        ward.fail("empty_length")
        ward.fail("empty_length")
        ward.health.succeeded(ward.m1)
    assert ward.left(ward.m1) is None


def test_format_and_argument_violations_never_count(ward):
    for kind in ("format_ignored", "invalid_tool_arguments", "truncated_json", "unparseable_dialect", "unsupported") * 5:
        ward.fail(kind)
    assert ward.resting() == []


def test_a_model_that_is_unknown_three_times_rests(ward):
    for at in (0, 1, 2):
        ward.fail("model_not_found", now=NOW + at)
    assert ward.health.blocked(ward.m2, NOW + 2) == (NOW + 602, "model_not_found")
    assert ward.left(ward.w1, NOW + 2) is None


def test_a_failure_after_the_commit_point_weighs_the_same(ward):
    ward.fail("truncated", committed=True)
    assert ward.left(ward.m1) == 90


@pytest.mark.parametrize(("silent_s", "expected_s"), [(10.0, None), (33.0, None), (33.75, 90), (45.0, 90)])
def test_who_was_stopped_by_our_budget_is_benched_only_for_its_own_silence(ward, silent_s, expected_s):
    ward.fail("timeout", silent_s=silent_s, overdue=True)
    assert ward.left(ward.m1) == expected_s


def test_an_error_that_comes_after_long_silence_rests_longer(ward):
    ward.fail("in_band", silent_s=40)
    ward.fail("in_band", ward.w1, silent_s=3)
    assert (ward.left(ward.m1), ward.left(ward.w1)) == (300, 90)


def test_an_upstream_on_this_machine_is_back_in_five_seconds_whatever_repeats():
    ward = Ward(loopback=True)
    for at in range(0, 60, 6):
        for kind in ("server_error", "truncated", "auth", "model_not_found"):
            ward.fail(kind, now=NOW + at)
        assert ward.left(ward.m1, NOW + at) == 5
        assert ward.left(ward.m2, NOW + at) is None
    ward.fail("rate_limited", now=NOW + 100, retry_s=30)
    assert ward.left(ward.m1, NOW + 100) == 30


def test_a_changed_key_starts_anew_and_a_moved_one_does_not():
    health = Health()
    before = catalog(provider("a", "m", keys=2)).targets[0]
    health.failed(before.candidates[0], error("out_of_credits"), NOW, WALL)
    moved = catalog(provider("a", "m", keys=3)).targets[0]
    assert [health.blocked(c, NOW) is not None for c in moved.candidates] == [True, False, False]
    health.cleared(moved.candidates[0])
    assert health.blocked(moved.candidates[0], NOW) is None


def test_accounts_of_a_target_take_turns(ward):
    target = ward.m1.target
    assert [ward.health.turn(target) for _ in range(5)] == [0, 1, 0, 1, 0]
    assert [ward.health.peek_turn(target) for _ in range(2)] == [1, 1]
    assert ward.health.turn(ward.w1.target) == 0


def test_a_snapshot_tells_who_rests_for_how_long_and_shows_no_key(ward):
    ward.fail("out_of_credits", ward.m2)
    ward.fail("timeout")
    first, second = ward.health.snapshot(NOW + 30)
    assert (first["model"], first["kind"], first["source"], first["remaining_s"]) == ("m", "timeout", "heuristic", 60)
    assert (second["model"], second["source"], second["remaining_s"]) == ("", "credit", DAY_S - 30)
    assert "sk-a" not in repr(first) + repr(second)
    assert ward.health.snapshot(NOW + 2 * DAY_S) == []


def test_memory_is_bounded():
    health = Health(limit=100)
    for target in catalog(provider("a", *(f"m{n}" for n in range(500)))).targets:
        for kind in ("rate_limited", "truncated", "model_not_found"):
            health.failed(target.candidates[0], error(kind), NOW, WALL)
    assert all(len(book) <= 100 for book in (health._cooldowns, health.levels, health._failures, health._streaks))
