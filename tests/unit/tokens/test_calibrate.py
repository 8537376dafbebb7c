"""What upstreams count corrects what we estimate, family by family and within bounds."""
import pytest

from gateway.core.request import Conversation, Message, Request, Text
from gateway.tokens import exact
from gateway.tokens.calibrate import LEAST, MOST, Calibration, family
from gateway.tokens.count import count
from gateway.tokens.estimate import estimate_request


def taught(ratio, times=100, model="gpt-5.5", estimated=1_000):
    calibration = Calibration()
    for _ in range(times):
        calibration.learn(model, estimated, int(estimated * ratio))
    return calibration


def test_nothing_learned_changes_nothing():
    assert Calibration().factor("gpt-5.5") == 1.0


def test_a_family_shares_what_one_of_it_taught():
    calibration = taught(1.5)
    assert calibration.factor("openai/gpt-4o") == pytest.approx(1.5, abs=0.01)
    assert calibration.factor("claude-opus-5") == 1.0


def test_one_answer_moves_it_a_little():
    assert taught(1.5, times=1).factor("gpt-5.5") == pytest.approx(1.05)


@pytest.mark.parametrize(("ratio", "bound"), [(4.0, MOST), (0.25, LEAST)])
def test_it_stays_within_bounds(ratio, bound):
    assert taught(ratio).factor("gpt-5.5") == bound


@pytest.mark.parametrize(("estimated", "counted"), [(1_000, 0), (1_000, 9_000), (10, 15), (0, 10)])
def test_what_is_no_matter_of_vocabulary_is_not_learned(estimated, counted):
    calibration = Calibration()
    calibration.learn("gpt-5.5", estimated, counted)
    assert calibration.factor("gpt-5.5") == 1.0


def test_a_factor_follows_although_names_are_remembered():
    calibration = taught(1.5, times=1)
    before = calibration.factor("gpt-5.5")
    for _ in range(50):
        calibration.learn("gpt-4o", 1_000, 1_500)
    assert calibration.factor("gpt-5.5") > before


def test_families_are_bounded():
    calibration = Calibration()
    for n in range(3_000):
        calibration.learn("".join(chr(97 + int(d)) for d in f"{n:04d}"), 1_000, 1_500)
    assert len(calibration._factors) <= 1024 and len(calibration._keys) <= 1024


def test_names_of_one_maker_and_line_are_one_family():
    assert family("anthropic/claude-opus-4-5") == family("claude-opus-5") == "claude-opus"
    assert family("gpt-5.5") == family("gpt-4o") == "gpt" and family("123") == ""


def test_an_estimate_takes_the_factor_but_not_for_pictures():
    asked = Request(wire="openai-chat", raw=b"", body=None, model="m", stream=True, chars=4_000)
    assert estimate_request(asked, 1.5) == 1_500
    asked.images = 1
    assert estimate_request(asked, 1.5) == 2_500


TALK = Conversation([Message("user", [Text("hello world, how many tokens?")])])


def test_without_the_package_or_the_vocabulary_it_is_estimated(monkeypatch):
    monkeypatch.setattr(exact, "_package", lambda: None)
    assert exact.counter("gpt-4o") is None
    assert count(TALK, "gpt-4o") == count(TALK) and count(TALK, "m", 2.0) > count(TALK)


@pytest.mark.parametrize(("model", "name"), [
    ("gpt-4o-mini", "o200k_base"), ("openai/gpt-5.5", "o200k_base"), ("o3", "o200k_base"), ("gpt-oss-20b", "o200k_harmony"),
    ("gpt-4-turbo", "cl100k_base"), ("text-embedding-3-small", "cl100k_base"), ("claude-opus-5", None), ("llama3", None),
])
def test_a_vocabulary_belongs_to_a_model(model, name):
    assert exact.vocabulary(model) == name


def test_the_package_counts_exactly():
    pytest.importorskip("toktok", reason="the extra tokens")
    counted = exact.counter("gpt-4o")
    assert counted is not None and counted(["hello world", "hello world"]) == 4
    assert count(TALK, "gpt-4o") == 4 + counted(["hello world, how many tokens?"])
    assert counted(["\ud800"]) >= 1
