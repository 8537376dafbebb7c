"""Virtual names, aliases, patterns, lines of models."""
import random

import pytest

from gateway.core.errors import GatewayError
from gateway.providers.registry import Model, Price
from gateway.routing import wildcards
from gateway.routing.ask import Ask, intent, level, specificity, task
from gateway.routing.families import siblings, successors
from gateway.routing.health import Health
from gateway.routing.resolve import resolve
from gateway.routing.virtual import NAMES, spec
from gateway.routing.walk import Walk
from tests.unit.routing.scene import NOW, catalog, labels, provider, request

HOUSE = catalog(
    provider("a", Model("dear", price=Price(input=10, output=30), reasoning=True)),
    provider("b", Model("free", price=Price(), vision=True), order=1),
    provider("c", Model("near", price=Price(input=1, output=2)), order=2, loopback=True))


def first(name, health=None):
    walk = Walk(resolve(name, HOUSE), request(), health or Health(dice=random.Random(0)), 10, NOW)
    return walk.next(NOW).target.label


@pytest.mark.parametrize(("name", "expected"), [
    ("auto:cheap", "b/free"), ("auto/cheap", "b/free"), ("AUTO:PRICE", "b/free"), ("auto/coding:floor", "b/free"),
    ("auto:smart", "a/dear"), ("auto/best-reasoning", "a/dear"), ("auto/best-vision", "b/free"), ("auto/best-free", "b/free"),
    ("auto/offline", "c/near"), ("auto/coding", "a/dear"), ("auto/coding:pro", "a/dear")])
def test_an_axis_is_really_routed_by(name, expected):
    assert {first(name) for _ in range(20)} == {expected}


def test_fast_is_who_was_quick():
    health = Health(dice=random.Random(0))
    for target, first_s in zip(HOUSE.targets, (3.0, 2.0, .1), strict=True):
        for _ in range(12):
            health.stats.add(target.candidates[0], True, NOW, first_s=first_s)
    assert first("auto:fast", health) == first("auto/fast", health) == "c/near"


def test_reliable_is_who_does_not_fail():
    health = Health(dice=random.Random(0))
    for target, first_s in zip(HOUSE.targets, ((1, 9), (1, 1), (1, 5)), strict=True):
        for n in range(12):
            health.stats.add(target.candidates[0], True, NOW, first_s=first_s[n % 2])
    assert first("auto:reliable", health) == "b/free"


@pytest.mark.parametrize("name", ["auto:nonsense", "auto/bogus", "auto/coding:bogus", "auto:", "auto/claude-opus"])
def test_what_means_nothing_or_nobody_is_404(name):
    with pytest.raises(GatewayError) as caught:
        resolve(name, HOUSE)
    assert caught.value.status == 404


def test_every_virtual_name_is_understood():
    assert all(spec(name) is not None for name in NAMES)
    assert spec("gpt-4o") is None
    assert spec("automatic") is None


@pytest.mark.parametrize(("pattern", "name", "fits"), [
    ("gpt-4*", "gpt-4o", True), ("GPT-4?", "gpt-4o", True), ("gpt-4?", "gpt-4", False), ("*", "", True), ("a.c", "abc", False)])
def test_patterns_fit_whole_names_in_any_case(pattern, name, fits):
    assert bool(wildcards.compiled(pattern).fullmatch(name)) is fits


def test_the_most_specific_pattern_wins():
    rows = wildcards.ranked([("*", 1), ("gpt-*", 2), ("gpt-4?", 3), ("gpt-4o-*", 4)])
    assert [wildcards.first(name, rows) for name in ("x", "gpt-5", "gpt-4o", "gpt-4o-mini")] == [1, 2, 3, 4]


def test_aliases_of_the_operator_and_of_models_may_be_patterns():
    found = catalog(provider("a", Model("m", aliases=("own-*",)), "n"), provider("b", "z", order=1),
                    aliases={"gpt-*": "a/n", "gpt-4*": "z", "best": "auto:cheap", "loop": "pool", "pool": "loop"})
    assert labels(resolve("gpt-5", found).targets) == ["a/n"]
    assert labels(resolve("gpt-4o", found).targets) == ["b/z"]
    assert labels(resolve("own-model", found).targets) == ["a/m"]
    assert resolve("gpt-5", found).kind == resolve("best", found).kind == "alias"
    with pytest.raises(GatewayError):
        resolve("loop", found)


def test_a_deprecated_or_missing_member_of_a_line_means_its_nearest_that_is_served():
    found = catalog(provider("a", "claude-opus-4-6", "other"), provider("b", "gemini-2.5-flash", order=1))
    assert labels(resolve("claude-opus-4-8", found).targets) == ["a/claude-opus-4-6"]
    assert labels(resolve("claude-opus-4.6", found).targets) == ["a/claude-opus-4-6"]
    assert labels(resolve("gemini-2.0-flash", found).targets) == ["b/gemini-2.5-flash"]
    assert resolve("claude-opus-4-8", found).kind == "family"
    assert siblings("gpt-5-2")[:2] == ("gpt-5.1", "gpt-5")
    assert successors("a/gemini-2.0-flash") == successors("nobody") == ()


@pytest.mark.parametrize(("text", "expected"), [
    ("please refactor this function", "code"), ("solve the equation x = 2", "math"), ("compare the trade-offs", "reasoning"),
    ("write a poem", "creative"), ("hi there", "simple"), ("word " * 80, "medium")])
def test_intents(text, expected):
    assert intent(text) == expected


def test_tasks_and_levels():
    assert (task("fix this bug"), task("prove that 1 < 2"), task("hello"), task("")) == ("coding", "analysis", "default", "default")
    assert level(Ask(chars=100, turns=1)) == "light"
    assert level(Ask(chars=5_000, turns=5)) == "standard"
    assert level(Ask(chars=60_000)) == "heavy"
    assert level(Ask(chars=1_000, effort="high")) == "heavy"
    assert level(Ask(chars=120_000)) == "critical"
    assert 0 == specificity(Ask()) < specificity(Ask(text="x", chars=9_000)) < specificity(Ask(text="refactor", chars=90_000, tools=9))
