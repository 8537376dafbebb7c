"""A name means what the ladder of names says, and nothing else."""
import pytest

from gateway.core.errors import GatewayError
from gateway.providers.registry import Model
from gateway.routing.families import family
from gateway.routing.resolve import resolve
from tests.unit.routing.scene import catalog, labels, provider

HOUSE = catalog(
    provider("a", "m", "org/x", Model("big", aliases=("large", "a-alias"))),
    provider("b", "m", "org/x", Model("vec", kind="embedding"), order=1),
    provider("org", "y", order=2),
    provider("demo", "echo", order=3),
)


def refused(name, found=HOUSE, **kind):
    with pytest.raises(GatewayError) as caught:
        resolve(name, found, **kind)
    return caught.value


@pytest.mark.parametrize(("name", "expected", "kind"), [
    ("a/m", ["a/m"], "target"),
    ("b/org/x", ["b/org/x"], "target"),
    ("a/large", ["a/big"], "target"),
    ("m", ["a/m", "b/m"], "model"),
    ("org/x", ["a/org/x", "b/org/x"], "model"),
    ("org/y", ["org/y"], "target"),
    ("large", ["a/big"], "alias"),
    ("", ["a/m", "a/org/x", "a/big", "b/m", "b/org/x", "org/y"], "virtual"),
    ("AUTO", ["a/m", "a/org/x", "a/big", "b/m", "b/org/x", "org/y"], "virtual"),
    ("demo/echo", ["demo/echo"], "target"),
    ("claude-sonnet-4-5", ["a/m", "a/org/x", "a/big", "b/m", "b/org/x", "org/y"], "family"),
    ("gemini-2.5-flash", ["a/m", "a/org/x", "a/big", "b/m", "b/org/x", "org/y"], "family"),
])
def test_a_name_means(name, expected, kind):
    found = resolve(name, HOUSE)
    assert (labels(found.targets), found.kind) == (expected, kind)
    assert found.requested == (name or "auto")


@pytest.mark.parametrize("name", ["nosuch/gpt-x", "gpt-x", "a/none", "echo", "anthropic/claude-sonnet-4-5", " m", "M",
                                  "gemini-embedding-001", "claudette"])
def test_an_unknown_name_is_404_and_is_told(name):
    error = refused(name)
    assert (error.status, error.code, error.kind, error.param) == (404, "model_not_found", "no_model", "model")
    assert name in error.message


@pytest.mark.parametrize(("name", "among"), [("fusion", "auto"), ("FUSION", "auto"), ("fusion:auto", "auto"), ("fusion:m", "m"),
                                             ("fusion:fast", "auto:fast"), ("fusion:auto:fast", "auto:fast")])
def test_a_panel_is_chosen_from_whoever_stands_behind_its_name(name, among):
    found, inner = resolve(name, HOUSE), resolve(among, HOUSE)
    assert found.fusion and not inner.fusion
    assert (labels(found.targets), found.requested, found.kind, found.scope) == (labels(inner.targets), name, "virtual", name)


def test_a_panel_of_nobody_is_404():
    error = refused("fusion:nosuch")
    assert (error.status, error.kind) == (404, "no_model") and "nosuch" in error.message


def test_a_served_name_wins_over_a_later_meaning():
    found = catalog(provider("auto", "fast"), provider("x", "fusion", "claude-opus-4", order=1))
    assert labels(resolve("auto/fast", found).targets) == ["auto/fast"]
    assert labels(resolve("fusion", found).targets) == ["x/fusion"]
    assert resolve("claude-opus-4", found).kind == "model"


def test_a_message_names_the_provider_that_lacks_the_model_and_is_bounded():
    assert "provider 'a' does not list 'zz'" in refused("a/zz").message
    assert len(refused("q" * 100_000).message) < 500


def test_another_kind_of_model_is_not_a_chat_model():
    assert "kind embedding" in refused("vec").message
    assert "kind embedding" in refused("b/vec").message
    assert labels(resolve("vec", HOUSE, "embedding").targets) == ["b/vec"]
    assert refused("auto", kind="embedding").status == 404
    assert refused("m", kind="rerank").status == 404


def test_without_providers_auto_is_503_and_a_name_is_404():
    assert (refused("auto", catalog()).status, refused("auto", catalog()).code) == (503, "no_providers_configured")
    assert refused("claude-haiku-4", catalog()).status == 503
    assert "No provider is configured" in refused("m", catalog()).message


def test_families_go_where_the_operator_sends_them():
    found = catalog(provider("a", "m", "big"), families={"opus": "a/big", "claude": "m", "gemini-pro": "gone"})
    assert labels(resolve("claude-opus-4-1", found).targets) == ["a/big"]
    assert labels(resolve("claude-haiku-4-5", found).targets) == ["a/m"]
    assert labels(resolve("gemini-2.5-pro", found).targets) == ["a/m", "a/big"]
    assert resolve("claude-opus-4-1", found).kind == "family"


@pytest.mark.parametrize(("name", "expected"), [
    ("claude-3-5-sonnet-20241022", ("sonnet", "claude")), ("Claude-Opus-4", ("opus", "claude")), ("opusplan", ("opus", "claude")),
    ("claude-sonnet-4-5[1m]", ("sonnet", "claude")), ("claude", ("claude", "claude")), ("claude-next", ("claude", "claude")),
    ("gemini-2.5-flash-lite", ("gemini-flash", "gemini")), ("gemini-exp", ("gemini", "gemini")),
    ("gemini-2.5-flash-image", None), ("gemini-2.5-pro-preview-tts", None), ("gpt-4o", None), ("x/claude-opus", None), ("", None),
])
def test_families_are_known_by_name(name, expected):
    assert family(name) == expected


def test_the_answer_is_kept_and_the_keeping_is_bounded():
    found = catalog(provider("a", "m"))
    assert resolve("m", found) is resolve("m", found)
    for n in range(5000):
        resolve(f"claude-{n}", found)
    assert len(found.kinds["chat"].resolved) <= 4096


def test_an_allow_list_can_narrow_a_resolution():
    whole = resolve("m", HOUSE)
    part = whole.only(whole.targets[1:])
    assert (labels(part.targets), part.requested, part.kind) == (["b/m"], "m", "model")
