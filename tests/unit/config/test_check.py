"""What fields mean together."""
import hashlib

import pytest

from gateway.config.check import loopback, render
from gateway.config.load import loads
from tests.unit.config.files import PROVIDER, good, refused, upstream

KEY = '[[auth.keys]]\nname = "laptop"\nkey = "gw-test-key"\n'


@pytest.mark.parametrize(("host", "yes"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True), ("[::1]", True), ("LOCALHOST", True),
    ("0.0.0.0", False), ("::", False), ("192.168.1.5", False), ("example.org", False), ("", False)])
def test_loopback(host, yes):
    assert loopback(host) is yes


def test_an_open_door_is_refused():
    assert "no client key is configured" in refused('[server]\nhost = "0.0.0.0"')["server.host"]
    assert good('[server]\nhost = "0.0.0.0"\n' + KEY).server.host == "0.0.0.0"


@pytest.mark.parametrize(("text", "path"), [
    ('[server]\nhost = " "', "server.host"),
    ('[server]\ncors_allow_origins = ["app.example"]', "server.cors_allow_origins[0]"),
    ('[server]\ncors_allow_origins = ["*", "https://a.example/path"]', "server.cors_allow_origins[1]"),
    (f'[server]\nunix = "/{"x" * 120}"', "server.unix"),
    ('[[auth.keys]]\nname = "a"', "auth.keys[0].key"),
    ('[[auth.keys]]\nname = "a"\nkey = " "', "auth.keys[0].key"),
    ('[[auth.keys]]\nname = "a"\nkey = "x "', "auth.keys[0].key"),
    ('[[auth.keys]]\nname = "a"\nsha256 = "abc"', "auth.keys[0].sha256"),
    (f'[[auth.keys]]\nname = "a"\nkey = "k"\nsha256 = "{"0" * 64}"', "auth.keys[0].sha256"),
    ('[[auth.keys]]\nname = "a"\nkey = "k"\nexpires = "tomorrow"', "auth.keys[0].expires"),
    ('[[auth.keys]]\nname = "a"\nkey = "k"\nmodels = []', "auth.keys[0].models"),
    ('[[auth.keys]]\nname = "a"\nkey = "k"\nmodels = [""]', "auth.keys[0].models[0]"),
    (KEY + '[[auth.keys]]\nname = "laptop"\nkey = "other"', "auth.keys[1].name"),
    (KEY + '[[auth.keys]]\nname = "b"\nkey = "gw-test-key"', "auth.keys[1].key"),
    (PROVIDER + PROVIDER, "providers[1].id"),
    ('[thinking]\nmode = "cap"\n', "thinking.mode"),
    ('[[auth.keys]]\nname = "a"\nkey = "k-123456"\nthinking = "cap"\n', "auth.keys[0].thinking"),
    ('[guardrails.injection]\naction = "warn"\npatterns = ["fine", "(a+)+b"]\n', "guardrails.injection.patterns[1]"),
    ('[guardrails.webhook]\nurl = "http://127.0.0.1:9/judge"\n', "guardrails.webhook.url"),
    ('[guardrails.webhook]\nurl = "judge"\n', "guardrails.webhook.url"),
])
def test_what_is_wrong(text, path):
    assert list(refused(text)) == [path]


def test_https_needs_both_files(tmp_path):
    cert = tmp_path / "cert.pem"
    cert.write_text("x")
    assert list(refused(f'[server]\ntls_cert = "{cert}"')) == ["server.tls_key"]
    assert "cannot read" in refused(f'[server]\ntls_cert = "{cert}"\ntls_key = "{tmp_path}/no"')["server.tls_key"]
    assert good(f'[server]\ntls_cert = "{cert}"\ntls_key = "{cert}"').server.tls_key == str(cert)


def test_client_keys_are_kept_as_digests():
    digest = hashlib.sha256(b"gw-test-key").hexdigest()
    text = KEY + 'models = ["gpt-*"]\nrpm = 3\nexpires = "2030-01-01T00:00:00Z"\n'
    (key,) = good(text).keys
    assert (key.name, key.sha256, key.models, key.rpm, key.expires_at) == ("laptop", digest, ("gpt-*",), 3, 1_893_456_000)
    assert good(f'[[auth.keys]]\nname = "x"\nsha256 = "{digest.upper()}"').keys[0].sha256 == digest
    assert "gw-test-key" in good(text).secrets


def test_an_expired_key_is_a_warning():
    snapshot = loads(KEY + 'expires = "2020-01-01"', wall=1_700_000_000.0)
    assert snapshot.warnings[0] == ("auth.keys[0].expires", "the key 'laptop' has expired")


@pytest.mark.parametrize(("text", "words"), [
    ("", "none is configured"),
    (upstream().replace('"m"', '"auto"'), "hides the virtual model"),
    (upstream().replace('"m"', '"combo/best"'), "hides the virtual model"),
    (upstream().replace('"a"', '"auto"'), "also means a virtual model"),
    (PROVIDER + PROVIDER.replace('"a"', '"b"').replace('"m"', '"a/m"'), "'a/m' is also PROVIDER/MODEL"),
    (PROVIDER + PROVIDER.replace('"a"', '"b"').replace('["m"]', '[{id = "x", aliases = ["m"]}]'), "the alias 'm' is a model of a"),
    (upstream().replace('["m"]', '[{id = "x", aliases = ["z"]}, {id = "y", aliases = ["z"]}]'), "already means 'x'"),
])
def test_clashes_are_warnings(text, words):
    assert any(words in message for _, message in good(text).warnings)


def test_one_model_at_several_providers_is_no_clash():
    assert good(PROVIDER + PROVIDER.replace('"a"', '"b"')).warnings == ()


def test_problems_are_one_line_each():
    assert render([("a.b", "is bad"), ("", "all is bad")]) == "a.b: is bad\nall is bad"


@pytest.mark.parametrize(("text", "path"), [
    ('[admin]\npassword_hash = "secret"', "admin.password_hash"), ('[admin]\nkey = "short"', "admin.key"),
    ('[admin]\nkey = "with a space in it"', "admin.key"),
])
def test_what_opens_the_operator_s_side_must_be_good(text, path):
    problems = refused(text)
    assert path in problems and "secret" not in problems[path]


def test_any_page_without_client_keys_is_a_warning():
    text = '[server]\ncors_allow_origins = ["*"]\n' + PROVIDER
    assert [where for where, _ in good(text).warnings] == ["server.cors_allow_origins[0]"]
    assert not good(text + KEY).warnings
