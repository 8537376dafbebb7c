"""What belongs together in [routing] is checked together."""
import pytest

from tests.unit.config.files import good, refused


def warned(text):
    return [path for path, _ in good(text).warnings if path.startswith("routing")]


def test_a_race_nobody_may_run_is_refused():
    assert list(refused('[routing]\nhedge = "race"\nhedge_share = 0')) == ["routing.hedge_share"]


@pytest.mark.parametrize(("text", "path"), [
    ("hedge_after_s = 2", "routing.hedge_after_s"),
    ('hedge = "race"\nhedge_after_s = 60', "routing.hedge_after_s"),
    ("wait_s = 60", "routing.wait_s"),
])
def test_what_has_no_effect_is_said(text, path):
    assert warned(f"[routing]\n{text}\n") == [path]


def test_what_goes_together_is_not():
    assert warned('[routing]\nhedge = "race"\nhedge_after_s = 2\nwait_s = 30\nmax_set_retries = 3\nset_retry_delay_s = 0.5\n') == []
    assert warned("[routing]\nbudget_s = 0\nwait_s = 300\n") == []


@pytest.mark.parametrize("text", ["wait_s = 601", "max_set_retries = 11", "set_retry_delay_s = -1", "hedge_share = 1.5"])
def test_bounds_are_bounds(text):
    assert list(refused(f"[routing]\n{text}\n")) == ["routing." + text.partition(" ")[0]]
