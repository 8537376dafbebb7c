"""The catalogue is whole, its quirks are used, and a broken file is named with its line."""
import pytest

from gateway.core.secret import Secret
from gateway.providers.auth import DEFAULT_AUTH, HEADERS, credentials, query_credentials
from gateway.providers.profiles import CatalogError, facts, parse, profiles
from gateway.providers.quirks import FLAGS, QUIRKS, combine
from gateway.providers.registry import Account
from tests.unit.providers.people import provider

GOOD = 'name = "X"\norder = 1\ndocs = ""\nbase_url = "https://x.example/v1"\n'


def test_the_first_ten_are_there():
    assert {"openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai", "together", "ollama", "llamacpp",
            "lmstudio", "vllm", "demo"} <= set(profiles())


@pytest.mark.parametrize("id", [id for id, profile in profiles().items() if profile.env])
def test_a_provider_with_a_key_knows_several_models_and_where_it_is_described(id):
    profile = profiles()[id]
    assert len(profile.models) > 1 and profile.docs.startswith("https://") and profile.base_url.startswith("https://")


def test_key_variables_belong_to_one_provider():
    names = [name for profile in profiles().values() for name in profile.env]
    assert len(names) == len(set(names))


def test_every_quirk_is_used_has_a_reason_and_a_source():
    assert {name for profile in profiles().values() for name in profile.quirks} == set(QUIRKS)
    assert all(quirk.reason and quirk.url.startswith("https://") for quirk in QUIRKS.values())
    assert all(quirk.flags or quirk.drop or quirk.rename for quirk in QUIRKS.values())


def test_every_flag_is_explained():
    assert {flag for quirk in QUIRKS.values() for flag in quirk.flags} | {"demo"} == set(FLAGS)


def test_quirks_add_up():
    both = combine(["no_logprobs", "tool_ids_9", "max_completion_tokens"])
    assert both.flags == {"tool_ids_9"} and "logit_bias" in both.drop and both.rename == {"max_tokens": "max_completion_tokens"}
    assert combine([]).flags == frozenset()


@pytest.mark.parametrize(("text", "place"), [
    ("name = ", "x.toml:1"), (GOOD + "a = 1\na = 2", "x.toml:6"), (GOOD + "[a]\n[a]", "x.toml:6"),
    (GOOD + 'colour = "red"\n', "x.toml:5"), (GOOD.replace("1\n", '"1"\n', 1), "x.toml:2"),
    (GOOD + 'models = [\n  { id = "a" },\n  { id = "b", context = "big" },\n]', "x.toml:7"),
    (GOOD + 'quirks = [\n  "no_such",\n]', "x.toml:6"), (GOOD + 'wire = "morse"', "x.toml:5"),
    (GOOD.replace("/v1", "/v1/"), "x.toml:4"), (GOOD.replace("https", "ftp"), "x.toml:4"),
    (GOOD + 'models = [\n  { id = "a" },\n  { id = "a" },\n]', "x.toml:6"),
])
def test_a_broken_file_is_named_with_its_line(text, place):
    with pytest.raises(CatalogError, match=rf"^{place}: "):
        parse("x.toml", text)


def test_facts_hold_only_what_is_known():
    profile = parse("x.toml", GOOD + 'models = [{ id = "a", context = 5, tools = false }]')
    assert facts(profile)["a"].items() >= {"id": "a", "context": 5, "tools": False}.items()
    assert "vision" not in facts(profile)["a"]


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
