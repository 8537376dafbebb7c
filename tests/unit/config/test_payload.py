"""[[rules]]: whom they fit, what they may touch, what is refused by its path."""
import pytest

from gateway.providers.registry import Model
from tests.unit.config.files import PROVIDER, good, refused


def rule(text):
    return PROVIDER + f"[[rules]]\n{text}\n"


def test_dotted_names_and_tables_mean_the_same():
    made = good(rule('default = {"reasoning.effort" = "low", reasoning = {summary = "auto"}}\nremove = ["user"]')).rules[0].change
    assert made.default == ((("reasoning", "effort"), "low"), (("reasoning", "summary"), "auto"))
    assert made.remove == (("user",),)


@pytest.mark.parametrize(("where", "fits"), [
    ('models = ["m"]', True), ('models = ["a/m"]', True), ('models = ["A/*"]', True), ('models = ["b/*", "m?"]', False), ("", True),
    ('providers = ["a*"]', True), ('providers = ["b"]', False), ('wires = ["openai-chat"]', True), ('wires = ["gemini"]', False)])
def test_a_rule_fits_by_model_provider_and_wire(where, fits):
    found = good(rule(where + '\nremove = ["user"]'))
    assert found.rules[0].fits(found.providers[0], Model("m")) is fits
    assert any(path == "rules[0]" for path, _ in found.warnings) is not fits


@pytest.mark.parametrize(("text", "path"), [
    ("", "rules[0]"),
    ('override = {model = "x"}', "rules[0].override.model"),
    ("default = {stream = true}", "rules[0].default.stream"),
    ('override = {"stream_options.include_usage" = false}', "rules[0].override.stream_options.include_usage"),
    ('remove = ["messages.0"]', "rules[0].remove[0]"),
    ('override = {api_key = "x"}', "rules[0].override.api_key"),
    ("override = {generationConfig = {candidateCount = 3}}", "rules[0].override.generationConfig.candidateCount"),
    ("override = {a = 2020-01-01}", "rules[0].override.a"),
    ("override = {a = nan}", "rules[0].override.a"),
    ('remove = ["a..b"]', "rules[0].remove[0]"),
    ('remove = [""]', "rules[0].remove[0]"),
    ('models = [" "]\nremove = ["a"]', "rules[0].models[0]"),
    ('wires = ["chat"]\nremove = ["a"]', "rules[0].wires[0]"),
    ('drop = ["a"]', "rules[0].drop"),
])
def test_what_is_wrong_is_named_by_its_path(text, path):
    assert path in refused(rule(text))
