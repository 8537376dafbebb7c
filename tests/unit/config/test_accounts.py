"""Keys as texts or tables, sign-ins and signatures: what is compiled, and what is said when it is wrong."""
import json

import pytest

from gateway.providers.gcp import ServiceAccount
from gateway.providers.oauth import OAuth
from gateway.providers.sigv4 import AwsKeys
from tests.unit.config.files import good, refused

AWS = '[[providers]]\nid = "a"\nwire = "bedrock-converse"\nbase_url = "https://bedrock-runtime.eu-west-1.amazonaws.com"\nmodels = ["m"]\n'
WEB = '[[providers]]\nid = "a"\nbase_url = "https://a.example/v1"\nmodels = ["m"]\n'
OAUTH = 'auth = "oauth"\noauth = {token_url = "https://t.example/x", client_id = "c", client_secret = "cs-secret-1", refresh_token = "rt-secret-2"}\n'


def one(text, env=None):
    return good(text, env).providers[0]


def test_keys_are_texts_or_tables():
    accounts = one(WEB + 'api_keys = ["sk-1", {key = "sk-2", label = "work", priority = 3, models = ["gpt-*"], proxy = "http://p:1"}]').accounts
    assert [(a.label, a.priority, a.models, a.proxy) for a in accounts] == [("key1", 0, (), ""), ("work", 3, ("gpt-*",), "http://p:1")]
    assert accounts[1].serves("gpt-4") and not accounts[1].serves("o3") and accounts[0].serves("o3")


@pytest.mark.parametrize(("keys", "path"), [
    ('[{label = "x"}]', "providers[0].api_keys[0]"), ('[{key = "a b"}]', "providers[0].api_keys[0]"), ("[1]", "providers[0].api_keys[0]"),
    ('[{key = "k", labl = "x"}]', "providers[0].api_keys[0].labl"), ('[{key = "k", priority = -1}]', "providers[0].api_keys[0].priority"),
    ('[{key = "k1", label = "x"}, {key = "k2", label = "x"}]', "providers[0].api_keys[1].label"),
    ('[{key = "k", proxy = "ftp://x"}]', "providers[0].api_keys[0].proxy"),
])
def test_a_key_that_cannot_be_used_is_named(keys, path):
    assert list(refused(WEB + f"api_keys = {keys}")) == [path]


def test_oauth():
    provider = one(WEB + OAUTH)
    (account,) = provider.accounts
    assert isinstance(account.grant, OAuth) and account.grant.refresh.reveal() == "rt-secret-2"
    assert set(provider.keys) == {"cs-secret-1", "rt-secret-2"} and "secret" not in repr(account).replace("client_secret=Secret", "")


@pytest.mark.parametrize(("table", "words"), [
    ('auth = "oauth"', "is missing"), ('auth = "oauth"\noauth = {token_url = "https://t.example"}', "needs client_id and refresh_token"),
    ('auth = "oauth"\noauth = {token_ur = "x"}', "unknown key 'token_ur'"),
    (OAUTH.replace("https://t.", "http://t."), "must begin with https://"),
    ('api_keys = ["sk-1"]\n' + OAUTH.partition("\n")[2], "only used with"),
])
def test_what_is_wrong_with_a_sign_in_is_told(table, words):
    problems = refused(WEB + table)
    assert list(problems) == ["providers[0].oauth"] and words in problems["providers[0].oauth"]


@pytest.mark.parametrize(("text", "env"), [
    ('credentials = "AK:SK"', {}), ('credentials = {access_key_id = "AK", secret_access_key = "SK"}', {}),
    ("", {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK"}),
])
def test_aws_credentials_come_from_the_configuration_or_the_environment(text, env):
    provider = one(AWS + text, env)
    grant = provider.accounts[0].grant
    assert isinstance(grant, AwsKeys) and (grant.access, grant.secret.reveal(), grant.region) == ("AK", "SK", "eu-west-1")
    assert provider.auth == "sigv4"


def test_a_region_that_is_written_counts():
    assert one(AWS + 'credentials = "AK:SK"\nvars = {region = "us-west-2"}').accounts[0].grant.region == "us-west-2"


def test_bedrock_with_keys_is_not_signed():
    assert one(AWS + 'api_keys = ["k-1234"]').auth == "bearer"


def test_missing_credentials_are_told():
    assert "AWS_ACCESS_KEY_ID" in refused(AWS)["providers[0].credentials"]
    assert "GOOGLE_APPLICATION_CREDENTIALS" in refused(WEB + 'auth = "gcp"')["providers[0].credentials"]
    assert "Google credentials file" in refused(WEB + 'auth = "gcp"\ncredentials = "nonsense"')["providers[0].credentials"]


def test_google_credentials_come_from_a_file(tmp_path):
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    pem = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"type": "service_account", "client_email": "a@p", "private_key": pem}))
    for text, env in ((f'credentials = "${{file:{file}}}"', {}), ("", {"GOOGLE_APPLICATION_CREDENTIALS": str(file)})):
        grant = one(WEB + 'auth = "gcp"\n' + text, env).accounts[0].grant
        assert isinstance(grant, ServiceAccount) and grant.email == "a@p"


KEYED = WEB + 'api_keys = ["sk-1234"]\n'


@pytest.mark.parametrize(("text", "env", "proxy"), [
    (KEYED, {"HTTPS_PROXY": "http://p:1"}, "http://p:1"), (KEYED, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example"}, ""),
    (KEYED + 'proxy = "http://own:2"', {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://own:2"),
    (KEYED.replace("https://a.example", "http://127.0.0.1:1"), {"ALL_PROXY": "http://p:1"}, ""),
])
def test_the_nearest_proxy_counts(text, env, proxy):
    assert one(text, env).proxy == proxy


def test_a_proxy_of_the_environment_that_cannot_be_used_is_not_gone_around():
    assert "environment" in refused(KEYED, {"ALL_PROXY": "ftp://x"})["providers[0].proxy"]


@pytest.mark.parametrize(("text", "discovers", "models"), [
    (KEYED.replace('["m"]', '["*"]'), True, []), (KEYED.replace('["m"]', '["*", "n"]'), True, ["n"]), (KEYED, False, ["m"]),
    (KEYED.replace('models = ["m"]\n', "").replace("https://a.example", "http://127.0.0.1:1"), True, []),
])
def test_who_is_asked_for_its_models(text, discovers, models):
    provider = one(text)
    assert (provider.discover, list(provider.models)) == (discovers, models)


def test_the_project_of_a_key_file_fills_its_address():
    login = '{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "quota_project_id": "my-project"}'
    provider = one(f"[[providers]]\npreset = \"vertex\"\ncredentials = '{login}'\n")
    assert "/projects/my-project/" in provider.base_url and isinstance(provider.accounts[0].grant, OAuth)
