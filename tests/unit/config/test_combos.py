"""Combos in the configuration: what may be written, what is refused by its path, which layer wins."""
import pytest

from gateway.config.catalog import catalog
from gateway.routing.resolve import resolve
from tests.unit.config.files import PROVIDER, good, refused

B = PROVIDER.replace('"a"', '"b"').replace('["m"]', '["m", "n"]')
HOUSE = PROVIDER + B


def combo(text, name="best"):
    return HOUSE + f'[[combos]]\nname = "{name}"\n{text}\n'


def test_a_combo_is_compiled_and_served():
    found = good(combo('strategy = "weighted"\ntargets = ["a/m", {target = "b/m", weight = 2}, {combo = "other"}, "b/*"]')
                 + '[[combos]]\nname = "other"\ntargets = ["b/n"]\n')
    plan = found.combos[0]
    assert (plan.name, plan.strategy) == ("best", "weighted")
    assert [(s.target, s.combo, s.weight) for s in plan.steps] == [("a/m", "", 1), ("b/m", "", 2), ("", "other", 1), ("b/*", "", 1)]
    assert [t.label for t in resolve("best", catalog(found)).targets] == ["a/m", "b/m", "b/n"]


def test_a_bare_name_may_be_a_combo_a_model_or_virtual():
    found = good(combo('targets = ["other", "m", "auto/fast", "combo/other"]') + '[[combos]]\nname = "other"\ntargets = ["b/n"]\n')
    assert [(s.target, s.combo) for s in found.combos[0].steps] == [("", "other"), ("m", ""), ("", "auto/fast"), ("", "other")]


@pytest.mark.parametrize(("text", "path"), [
    (combo(""), "combos[0].targets"),
    (combo('targets = ["a/none"]'), "combos[0].targets[0]"),
    (combo('targets = [{target = "a/none", weight = 2}]'), "combos[0].targets[0].target"),
    (combo('targets = ["z/*"]'), "combos[0].targets[0]"),
    (combo('targets = [{combo = "none"}]'), "combos[0].targets[0].combo"),
    (combo("targets = [{weight = 1}]"), "combos[0].targets[0]"),
    (combo('targets = [{target = "a/m", combo = "best"}]'), "combos[0].targets[0]"),
    (combo('targets = [{target = "a/m", weight = -1}]'), "combos[0].targets[0].weight"),
    (combo('targets = [{target = "a/m", accounts = ["7"]}]'), "combos[0].targets[0].accounts[0]"),
    (combo('targets = ["a/m", "best"]'), "combos[0].targets"),
    (combo('targets = ["a/m"]', "no$good"), "combos[0].name"),
    (combo('targets = ["a/m"]\nstrategy = "usual"'), "combos[0].strategy"),
    (combo('targets = ["a/m"]\nweights = {speed = 1}'), "combos[0].weights.speed"),
    (combo('targets = ["a/m"]\nweights = {cost = "much"}'), "combos[0].weights.cost"),
    (combo('targets = ["a/m"]\nweights = {cost = 0}'), "combos[0].weights"),
    (combo('targets = ["a/m"]\nmax_depth = 11'), "combos[0].max_depth"),
    (combo('targets = ["a/m"]\nsticky_limit = 1001'), "combos[0].sticky_limit"),
    (combo('targets = ["a/m"]\nunheard = 1'), "combos[0].unheard"),
    (combo('targets = ["a/m"]') + '[[combos]]\nname = "best"\ntargets = ["a/m"]', "combos[1].name"),
    (HOUSE.replace('models = ["m", "n"]', 'models = ["m", "n"]\ncombos = {mode_pack = "ship-fast"}'), "providers[1].combos.mode_pack"),
    (HOUSE + '[routing]\naliases = {x = "a/none"}', "routing.aliases.x"),
    (HOUSE + '[routing]\nfamilies = {opus = "a/none"}', "routing.families.opus"),
    (HOUSE + '[routing]\nemergency = "a/none"', "routing.emergency"),
])
def test_what_is_wrong_is_named_by_its_path(text, path):
    assert list(refused(text)) == [path]


def test_a11_cycles_and_depth_are_refused_when_they_are_written():
    circle = combo('targets = ["other"]') + '[[combos]]\nname = "other"\ntargets = ["a/m", "best"]\n'
    assert "best > other > best" in refused(circle)["combos[0].targets"]
    tower = HOUSE + "".join(f'[[combos]]\nname = "c{n}"\ntargets = ["c{n + 1}"]\n' for n in range(4)) \
        + '[[combos]]\nname = "c4"\ntargets = ["a/m"]\n'
    assert list(refused(tower)) == ["combos[0].targets", "combos[1].targets"]
    assert good(tower.replace('name = "c0"\n', 'name = "c0"\nmax_depth = 5\n').replace('name = "c1"\n', 'name = "c1"\nmax_depth = 4\n'))


def test_the_nearest_layer_of_settings_wins():
    text = HOUSE.replace('models = ["m", "n"]', 'models = ["m", "n"]\ncombos = {max_retries = 3}')
    text += '[routing]\ncombo_defaults = {max_retries = 1, sticky_limit = 5}\n'
    text += '[[combos]]\nname = "one"\ntargets = ["a/m", "b/m"]\n[[combos]]\nname = "two"\ntargets = ["a/m"]\nmax_retries = 7\n'
    one, two = good(text).combos
    assert (one.settings.max_retries, one.settings.sticky_limit, one.overrides["b"].max_retries) == (1, 5, 3)
    assert (two.settings.max_retries, two.overrides["b"].max_retries, two.settings.exploration) == (7, 7, 0.05)


@pytest.mark.parametrize(("name", "words"), [
    ("m", "hides the model"), ("a/m", "also PROVIDER/MODEL"), ("auto/fast", "hides the virtual model")])
def test_clashes_of_names_are_warnings(name, words):
    assert any(words in message for _, message in good(combo('targets = ["b/n"]', name)).warnings)


def test_an_alias_of_something_served_is_a_warning():
    warnings = good(HOUSE + '[routing]\naliases = {m = "a/m", "gpt-*" = "b/n"}').warnings
    assert [path for path, _ in warnings] == ["routing.aliases.m"]


TRIO = '[[providers]]\nid = "up"\nbase_url = "https://a.example/v1"\napi_keys = ["sk-a-123456"]\nmodels = ["m", "n", "o"]\n'
LIST = TRIO + '[[combos]]\nname = "best"\ntargets = ["up/m", {target = "up/n", label = "mid", max_retries = 2}, "up/o"]\n'


@pytest.mark.parametrize(("text", "order"), [
    ('tiers = [{name = "a", step = "up/o", fallback = "b"}, {name = "b", step = "mid"}]', ["up/o", "up/n", "up/m"]),
    ('default_tier = "b"\ntiers = [{name = "a", step = "up/o"}, {name = "b", step = "mid"}]', ["up/n", "up/o", "up/m"]),
    ('tiers = [{name = "a", step = "up/n", fallback = "a"}]', ["up/n", "up/m", "up/o"])])
def test_tiers_order_the_places(text, order):
    plan = good(LIST + text).combos[0]
    assert [step.target for step in plan.steps] == order
    assert plan.settings.tiered


@pytest.mark.parametrize(("text", "path"), [
    ('tiers = [{name = "a", step = "up/x"}]', "combos[0].tiers[0].step"),
    ('tiers = [{name = "a", step = "mid", fallback = "c"}]', "combos[0].tiers[0].fallback"),
    ('tiers = [{name = "a", step = "mid"}, {name = "a", step = "up/m"}]', "combos[0].tiers[1].name"),
    ('default_tier = "z"\ntiers = [{name = "a", step = "mid"}]', "combos[0].default_tier"),
    ('default_tier = "z"', "combos[0].default_tier"),
    ('tool_filter = "("', "combos[0].tool_filter"),
    ('allowed_providers = ["down"]', "combos[0].allowed_providers[0]"),
    ('handoff = "always"', "combos[0].handoff")])
def test_what_is_wrong_with_tiers_and_shapes_is_named_by_its_path(text, path):
    assert list(refused(LIST + text)) == [path]


def test_a_provider_that_lists_its_own_models_may_have_any():
    open_house = HOUSE.replace('models = ["m", "n"]', 'models = ["*"]')
    found = good(open_house + '[[combos]]\nname = "best"\ntargets = ["b/later", "b/*", "a/m"]\n[routing]\nemergency = "b/later"\n')
    assert [step.target for step in found.combos[0].steps] == ["b/later", "b/*", "a/m"]
    assert list(refused(open_house + '[[combos]]\nname = "best"\ntargets = ["a/later"]\n')) == ["combos[0].targets[0]"]
