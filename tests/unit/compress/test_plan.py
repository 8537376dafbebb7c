"""The caller may lower and never raise; large prompts are compressed by the operator's word; engines stop at the target."""
import pytest

from gateway.compress import plan
from gateway.compress.plan import aimed
from gateway.compress.tally import Tally
from tests.unit.compress.talks import LINES, bash, body, compressed, user


@pytest.mark.parametrize(("header", "configured", "mode"), [
    ("", "standard", "standard"), ("on", "standard", "standard"), ("YES", "standard", "standard"), (" 1 ", "lossless", "lossless"),
    ("true", "aggressive", "aggressive"), ("off", "aggressive", "off"), ("no", "standard", "off"), ("0", "standard", "off"),
    ("false", "standard", "off"), ("Bypass", "standard", "off"), ("skip", "standard", "off"), ("lossless", "aggressive", "lossless"),
    ("standard", "aggressive", "standard"), ("aggressive", "standard", "standard"), ("standard", "lossless", "lossless"),
    ("on", "off", "off"), ("aggressive", "off", "off"), ("nonsense", "standard", "standard"),
])
def test_the_header_lowers_and_cannot_raise(header, configured, mode):
    assert aimed(header, configured, 10, 0, 0).mode == mode


def test_a_large_prompt_is_compressed_aggressively_unless_the_caller_said_otherwise():
    assert aimed("", "lossless", 1_000, 1_000, 50) == plan.Aim("aggressive", 1_000, 900)
    assert aimed("on", "lossless", 1_000, 1_000, 0).mode == "aggressive"
    assert aimed("", "lossless", 999, 1_000, 50) == plan.Aim("lossless", 999, 50)
    assert aimed("lossless", "standard", 1_000, 1_000, 0).mode == "lossless"
    assert aimed("off", "standard", 1_000, 1_000, 0).mode == aimed("on", "off", 1_000, 1_000, 0).mode == "off"


TALK = body(user(), bash("a", "./one", LINES), bash("b", "./two", LINES + "\n\nmore"), user())


def test_engines_stop_once_the_target_is_met():
    assert compressed(TALK, "aggressive", target=len(TALK))[1].stages == []
    _, outcome = compressed(TALK, "aggressive", target=len(TALK) // 4 - 5)
    assert outcome.stages[-1].engine == "dedup", "the first that saves enough is the last"


@pytest.mark.parametrize(("mode", "engines"), [
    ("lossless", ["jsoncompact", "lite", "dedup"]),
    ("standard", ["read-lifecycle", "toolfilter", "jsoncompact", "lite", "dedup"]),
    ("aggressive", ["read-lifecycle", "toolfilter", "jsoncompact", "lite", "dedup", "relevance", "aging", "hard-budget"]),
])
def test_each_mode_has_its_engines_in_their_order(mode, engines):
    assert [stage.engine for stage in compressed(TALK, mode)[1].stages] == engines


def test_sums_tell_of_every_engine_and_of_what_was_discarded():
    tally = Tally()
    _, outcome = compressed(TALK)
    outcome.stages[0].discarded = {"number": 2}
    tally.add(outcome)
    tally.add(outcome)
    assert (tally.requests, tally.compressed, tally.by_mode["lossless"]) == (2, 2, 2)
    assert tally.chars_before - tally.chars_after == 2 * outcome.stages[-1].saved_chars > 0
    assert tally.engines["jsoncompact"].discarded == {"number": 4} and tally.engines["dedup"].runs == 2
