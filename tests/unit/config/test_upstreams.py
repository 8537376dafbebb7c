"""One [[providers]] table becomes a provider."""
import pytest

from gateway.config.upstreams import near
from gateway.core.timeouts import Timeouts
from gateway.providers.registry import Ceiling
from tests.unit.config.files import good, refused, upstream


def one(text, env=None):
    return good(text, env).providers[0]


def test_what_is_written_is_what_runs():
    text = upstream('headers = {X-A = "1"}\nlimits = {rpm = 3, concurrency = 2}\ntimeouts = {idle_s = 7}\n[timeouts]\ntotal_s = 9\n')
    provider = one(text)
    assert (provider.id, provider.name, provider.wire, provider.auth) == ("a", "a", "openai-chat", "bearer")
    assert provider.base_url == "https://a.example/v1" and provider.headers == {"X-A": "1"} and not provider.loopback
    assert [(account.ordinal, account.key.reveal()) for account in provider.accounts] == [(1, "sk-a-123456")]
    assert provider.limits == Ceiling(rpm=3, concurrency=2) and provider.timeouts == Timeouts(idle_s=7, total_s=9)
    assert list(provider.models) == ["m"] and provider.models["m"].tools is None


def test_rpm_default_is_for_those_without_one():
    assert one(upstream("[routing]\nrpm_default = 5")).limits.rpm == 5
    assert one(upstream("limits = {rpm = 3}\n[routing]\nrpm_default = 5")).limits.rpm == 3


def test_a_model_table_keeps_its_facts():
    model = one(upstream().replace('["m"]', '[{id = "m", context = 9, tools = false, completions = true, aliases = ["x"], '
                                            "price = {input = 1.5, output = 2}}]")).models["m"]
    assert (model.context, model.tools, model.vision, model.completions, model.aliases) == (9, False, None, True, ("x",))
    assert model.price is not None and model.price.input == 1.5 and model.price.cached is None


def test_a_preset_gives_the_rest():
    provider = one('[[providers]]\npreset = "groq"\napi_keys = ["gsk-123456"]')
    assert (provider.id, provider.name, provider.base_url) == ("groq", "Groq", "https://api.groq.com/openai/v1")
    assert "logprobs" in provider.drop_params
    assert len(provider.models) > 1


def test_a_users_fields_win_over_the_preset_and_keep_its_facts():
    provider = one('[[providers]]\nid = "g"\npreset = "groq"\napi_keys = ["gsk-123456"]\nbase_url = "http://localhost:1/v1/"\n'
                   'models = ["mine", {id = "llama-3.3-70b-versatile", context = 5}]\nquirks = ["tool_ids_9"]')
    assert provider.base_url == "http://localhost:1/v1" and provider.loopback
    assert list(provider.models) == ["mine", "llama-3.3-70b-versatile"]
    known = provider.models["llama-3.3-70b-versatile"]
    assert (known.context, known.tools) == (5, True) and provider.models["mine"].tools is None
    assert provider.flags == {"tool_ids_9"} and "logprobs" in provider.drop_params


def test_a_preset_finds_its_usual_key():
    text = '[[providers]]\npreset = "groq"'
    assert one(text, {"GROQ_API_KEY": "gsk-123456"}).accounts[0].key.reveal() == "gsk-123456"
    assert "${env:GROQ_API_KEY}" in refused(text)["providers[0].api_keys"]


def test_a_local_server_needs_no_key():
    assert one(upstream(without="api_keys").replace("https://a.example", "http://127.0.0.1:8080")).accounts[0].key.reveal() == ""
    assert one('[[providers]]\npreset = "ollama"\nmodels = ["llama3"]').accounts[0].key.reveal() == ""
    assert one('[[providers]]\npreset = "ollama"').models == {}          # it is asked which it has
    assert 'auth = "none"' in refused(upstream(without="api_keys"))["providers[0].api_keys"]


def test_the_same_key_twice_is_one_account():
    snapshot = good(upstream().replace('["sk-a-123456"]', '["one-123", " one-123 ", "two-123"]'))
    assert [account.ordinal for account in snapshot.providers[0].accounts] == [1, 2]
    assert snapshot.warnings[0][0] == "providers[0].api_keys[1]"


@pytest.mark.parametrize(("text", "path", "words"), [
    (upstream(without="id"), "providers[0].id", "is missing"),
    (upstream().replace('id = "a"', 'id = "a/b"'), "providers[0].id", "may hold letters"),
    ('[[providers]]\npreset = "groqq"\napi_keys = ["x"]', "providers[0].preset", 'did you mean "groq"?'),
    (upstream(without="base_url"), "providers[0].base_url", "is missing"),
    (upstream().replace("https://", ""), "providers[0].base_url", "write https://a.example/v1"),
    (upstream().replace("https://", "ftp://"), "providers[0].base_url", "must begin with http"),
    (upstream().replace("a.example", ""), "providers[0].base_url", "has no host"),
    (upstream().replace("a.example", "u:p@a.example"), "providers[0].base_url", "write the key in api_keys"),
    (upstream().replace("a.example", "a b"), "providers[0].base_url", "spaces"),
    (upstream().replace("a.example", "a.example:x"), "providers[0].base_url", "no valid URL"),
    (upstream().replace("/v1", "/v1?key=1"), "providers[0].base_url", "query"),
    (upstream().replace("a.example", "{region}.example"), "providers[0].base_url", "placeholder"),
    (upstream().replace("/v1", "/v1/chat/completions"), "providers[0].base_url", "write https://a.example/v1"),
    (upstream(without="models"), "providers[0].models", "name at least one"),
    (upstream().replace('["m"]', '["m", "m"]'), "providers[0].models[1]", "stands there twice"),
    (upstream().replace('["m"]', '["m "]'), "providers[0].models[0]", "space"),
    (upstream().replace("sk-a-123456", "sk-…"), "providers[0].api_keys[0]", "printable ASCII"),
    (upstream('quirks = ["no_logprob"]'), "providers[0].quirks[0]", 'did you mean "no_logprobs"?'),
    (upstream('headers = {Host = "x"}'), "providers[0].headers.Host", "set by the gateway"),
    (upstream('headers = {"a b" = "x"}'), "providers[0].headers.a b", "no valid header name"),
    (upstream('headers = {a = "x\\ny"}'), "providers[0].headers.a", "one line"),
    (upstream('proxy = "ftp://x"'), "providers[0].proxy", "must begin with"),
])
def test_what_is_wrong_is_told_where_it_stands(text, path, words):
    problems = refused(text)
    assert list(problems) == [path]
    assert words in problems[path]


def test_an_address_without_a_version_is_a_warning():
    assert "https://a.example/v1" in dict(good(upstream().replace("/v1", "")).warnings)["providers[0].base_url"]


@pytest.mark.parametrize(("url", "yes"), [
    ("http://localhost:1/v1", True), ("http://127.0.0.1", True), ("http://[::1]:1", True), ("http://10.1.2.3", True),
    ("http://192.168.0.9:11434", True), ("http://ollama:11434", True), ("http://box.local", True),
    ("http://host.docker.internal:1", True), ("https://api.example.com", False), ("http://8.8.8.8", False), ("", False)])
def test_near_upstreams(url, yes):
    assert near(url) is yes
