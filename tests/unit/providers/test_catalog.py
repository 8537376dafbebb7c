"""The catalogue is whole, each entry can be found, its quirks are used, and a broken file is named with its line."""
import pytest

from gateway.core.secret import Secret
from gateway.providers import presets as module
from gateway.providers.auth import DEFAULT_AUTH, HEADERS, credentials, query_credentials
from gateway.providers.hints import _RESETS
from gateway.providers.presets import HEAD_BYTES, CatalogError, facts, filled, head, parse, placeholders, presets
from gateway.providers.profiles import FAMILIES, family
from gateway.providers.quirks import FLAGS, OF_MODELS, QUIRKS, combine
from gateway.providers.registry import Account
from gateway.wire import WIRES
from tests.unit.providers.people import provider

GOOD = 'name = "X"\norder = 1\ndocs = ""\nbase_url = "https://x.example/v1"\n'
ENTRIES = [preset for preset in presets().values() if not preset.in_process]


def test_two_hundred_are_there_and_the_best_known_among_them():
    assert len(ENTRIES) >= 200
    assert {"openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai", "together", "azure-openai", "bedrock",
            "vertex", "cloudflare", "cohere", "huggingface", "ollama", "llamacpp", "lmstudio", "vllm", "demo"} <= set(presets())


@pytest.mark.parametrize("preset", ENTRIES, ids=lambda preset: preset.id)
def test_an_entry_says_what_a_user_would_have_to_look_up(preset):
    assert preset.docs.startswith("https://") and preset.wire in WIRES
    near = preset.base_url.startswith("http://127.0.0.1:")
    assert near or preset.base_url.startswith("https://")
    assert near or preset.env or preset.auth in ("sigv4", "gcp", "oauth", "none") or preset.variant_of
    assert near or preset.auth != "none" or preset.headers          # the key is a header of its own
    assert preset.variant_of == "" or presets()[preset.variant_of].variant_of == ""
    assert all(model.context is None or model.context > 0 for model in preset.models)
    assert all(model.max_output is None or model.context is None or model.max_output <= model.context for model in preset.models)
    assert all(model.price is None or preset.price_source and preset.price_as_of for model in preset.models)
    assert not preset.limit_headers or any(name.startswith(preset.limit_headers) for name, _ in _RESETS)


def test_no_name_means_two_entries():
    names = [*presets(), *(alias for preset in ENTRIES for alias in preset.aliases)]
    assert len(names) == len(set(names))


def test_key_variables_belong_to_one_provider():
    names = [name for preset in ENTRIES if not preset.variant_of for name in preset.env]
    assert len(names) == len(set(names))


def test_an_address_stands_in_one_entry():
    doors = [(preset.base_url, preset.wire, preset.auth) for preset in ENTRIES if not preset.base_url.startswith("http://127")]
    assert len(doors) == len(set(doors))


def test_an_entry_is_found_by_its_aliases():
    assert presets().find("azure") is presets()["azure-openai"]
    assert presets().find("no-such") is None and presets().find("../groq") is None


def test_what_finding_takes_is_read_as_the_whole_file_says_it():
    for id, found in presets().heads.items():
        preset = presets()[id]
        assert len((presets()._folder / f"{id}.toml").read_bytes().partition(b"\nmodels = [")[0]) < HEAD_BYTES
        assert (found.order, found.env, found.aliases, found.variant_of) == (preset.order, preset.env, preset.aliases, preset.variant_of)
    assert head('order = "much"\nenv = [') == head("")


def test_a_glance_sees_every_entry_and_every_model():
    for preset, ids in presets().glance():
        assert preset.models == () or preset.in_process
        assert ids == tuple(model.id for model in presets()[preset.id].models) or preset.in_process


def test_one_entry_is_read_without_the_others(monkeypatch):
    read = []
    monkeypatch.setattr(module, "parse", lambda name, text: read.append(name) or parse(name, text))
    module.Catalogue(presets()._folder)["groq"]
    assert read == ["groq.toml"]


def test_every_quirk_is_used_has_a_reason_and_a_source():
    assert {name for preset in presets().values() for name in preset.quirks} == set(QUIRKS)
    assert all(quirk.reason and quirk.url.startswith("https://") for quirk in QUIRKS.values())
    assert all(quirk.flags or quirk.drop or quirk.rename or quirk.id_prefix for quirk in QUIRKS.values())


def test_every_flag_is_explained():
    assert {flag for quirk in QUIRKS.values() for flag in quirk.flags} | OF_MODELS | {"demo"} == set(FLAGS)
    assert {flag for line in FAMILIES for flag in line.flags} < OF_MODELS


def test_quirks_add_up():
    both = combine(["no_logprobs", "tool_ids_9", "max_completion_tokens"])
    assert both.flags == {"tool_ids_9"} and "logit_bias" in both.drop and both.rename == {"max_tokens": "max_completion_tokens"}
    assert combine([]).flags == frozenset() and combine(["fireworks_ids"]).id_prefix == "accounts/fireworks/models/"


@pytest.mark.parametrize(("text", "place"), [
    ("name = ", "x.toml:1"), (GOOD + "a = 1\na = 2", "x.toml:6"), (GOOD + "[a]\n[a]", "x.toml:6"),
    (GOOD + 'colour = "red"\n', "x.toml:5"), (GOOD.replace("1\n", '"1"\n', 1), "x.toml:2"),
    (GOOD + 'models = [\n  { id = "a" },\n  { id = "b", context = "big" },\n]', "x.toml:7"),
    (GOOD + 'quirks = [\n  "no_such",\n]', "x.toml:6"), (GOOD + 'wire = "morse"', "x.toml:5"),
    (GOOD.replace("/v1", "/v1/"), "x.toml:4"), (GOOD.replace("https", "ftp"), "x.toml:4"),
    (GOOD + 'models = [\n  { id = "a" },\n  { id = "a" },\n]', "x.toml:6"),
    (GOOD.replace('docs = ""', 'docs = "http://x"'), "x.toml:3"), (GOOD + 'auth = "stamp"', "x.toml:5"),
    (GOOD.replace("x.example", "{host}.example"), "x.toml:4"), (GOOD + 'vars = { host = "" }', "x.toml:5"), (GOOD + 'id = "y"', "x.toml:5"),
])
def test_a_broken_file_is_named_with_its_line(text, place):
    with pytest.raises(CatalogError, match=rf"^{place}: "):
        parse("x.toml", text)


def test_facts_hold_only_what_is_known():
    preset = parse("x.toml", GOOD + 'models = [{ id = "a", context = 5, tools = false }]')
    assert facts(preset)["a"].items() >= {"id": "a", "context": 5, "tools": False}.items()
    assert "vision" not in facts(preset)["a"]


def test_a_price_says_who_states_it():
    preset = parse("x.toml", GOOD + 'price_source = "s"\nprice_as_of = "d"\nmodels = [{ id = "a", price = { input = 1.0, output = 2.0 } }]')
    assert (facts(preset)["a"]["price"].source, facts(preset)["a"]["price"].as_of) == ("s", "d")


def test_placeholders_are_filled_where_there_is_a_value():
    preset = presets()["azure-deployments"]
    assert list(placeholders(preset)) == ["resource", "deployment", "api_version"]
    assert filled(preset.base_url, {"resource": "r"}) == "https://r.openai.azure.com/openai/deployments/{deployment}"


@pytest.mark.parametrize(("model", "facts"), [
    ("gpt-5.5", (1_050_000, True, "effort")), ("openai/gpt-5.4-mini", (400_000, True, "effort")), ("o3-mini", (200_000, None, "effort")),
    ("claude-opus-4-8", (1_000_000, True, "adaptive")), ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", (200_000, True, "budget")),
    ("gemini-2.5-flash", (1_048_576, True, "budget")), ("deepseek-ai/DeepSeek-V3.2", (128_000, None, "")),
    ("kimi-k2.6", (262_144, True, "")), ("nobody-knows", (None, None, "")),
])
def test_a_family_is_found_by_the_name_of_its_model(model, facts):
    line = family(model)
    assert (line.context, line.vision, line.thinks) == facts


def test_families_name_their_sources_and_the_narrow_rows_stand_first():
    assert all(line.url.startswith("https://") for line in FAMILIES)
    assert "temperature" in family("gpt-5-mini").refuses and "temperature" not in family("gpt-5.2").refuses
    assert "n" in family("o4-mini").refuses and not family("gpt-4o").refuses and not family("gpt-5-chat-latest").refuses
    assert family("text-embedding-3-large").kind == "embedding" and family("text-embedding-3-large").dimensions == 3_072


@pytest.mark.parametrize(("auth", "headers", "query"), [
    ("bearer", {"Authorization": "Bearer k+1"}, ""), ("x-api-key", {"x-api-key": "k+1"}, ""),
    ("x-goog-api-key", {"x-goog-api-key": "k+1"}, ""), ("api-key", {"api-key": "k+1"}, ""),
    ("query", {}, "key=k%2B1"), ("none", {}, ""),
])
def test_where_a_key_travels(auth, headers, query):
    upstream, account = provider(auth=auth), Account(1, Secret("k+1"))
    assert credentials(upstream, account) == headers
    assert query_credentials(upstream, account) == query


@pytest.mark.parametrize("auth", [*HEADERS, "query", "none"])
def test_an_account_without_a_key_sends_nothing(auth):
    upstream, account = provider(auth=auth), Account(1, Secret(""))
    assert credentials(upstream, account) == {} and query_credentials(upstream, account) == ""


def test_each_wire_has_a_default():
    assert DEFAULT_AUTH["openai-chat"] == "bearer" and DEFAULT_AUTH["anthropic"] == "x-api-key"


def test_a_provider_prints_no_secret():
    assert repr(provider(headers={"x": "secret"})) == "Provider('acme')"
