"""A configuration is shown without its secrets, or not at all."""
import pytest

from gateway.admin.masking import changes, flat, masked_text
from gateway.config.load import loads

CONFIG = '''
[[auth.keys]]
name = "laptop"
key = "gw-laptop-secret"
[[providers]]
id = "a"
base_url = "https://api.example/v1"
proxy = "http://user:hunter22@proxy.example:3128"
api_keys = ["sk-first-secret", {key = "sk-second-secret", label = "two"}]
headers = {"X-Auth" = "Token header-secret", "X-Team" = "blue"}
models = ["m"]
[admin]
key = "adm-0123456789abcdef"
[limits]
request_max_tokens = 5
'''
SECRETS = ("gw-laptop-secret", "hunter22", "sk-first-secret", "sk-second-secret", "header-secret", "adm-0123456789abcdef")


def test_values_are_shown_and_secrets_are_not():
    snapshot = loads(CONFIG)
    shown = {path: value for path, (value, _) in flat(snapshot.config, snapshot.secrets).items()}
    assert not [secret for secret in SECRETS if secret in str(shown)]
    assert shown["providers[0].id"] == '"a"' and shown["limits.request_max_tokens"] == "5"
    assert shown["providers[0].api_keys[1].label"] == '"two"' and shown["providers[0].api_keys[1].key"] == "***"
    assert shown["providers[0].headers.X-Team"] == '"blue"'


def test_the_text_keeps_its_shape():
    text = masked_text(CONFIG, loads(CONFIG).secrets)
    assert text is not None and not [secret for secret in SECRETS if secret in text]
    assert text.count("\n") == CONFIG.count("\n") and 'label = "two"' in text and "request_max_tokens = 5" in text


def test_references_say_where_a_secret_is_and_stay():
    text = '[[auth.keys]]\nname = "a"\nkey = "${env:KEY}"\n[admin]\nkey = "${env:ADMIN:-adm-default-secret}"\n'
    shown = masked_text(text, ())
    assert shown is not None and "${env:KEY}" in shown and "default-secret" not in shown


def test_keys_in_comments_are_masked():
    shown = masked_text('# api_keys = ["sk-old-secret-12345"]\n[server]\nport = 1\n', ())
    assert shown is not None and "old-secret" not in shown


@pytest.mark.parametrize("text", ['[admin]\nkey = "adm-\\u0073ecret-0123456"\n', '[admin]\nkey = """\nadm-secret-0123456"""\n', "not toml ["])
def test_a_text_whose_secrets_cannot_be_found_is_not_shown(text):
    shown = masked_text(text, ())
    assert shown is None or "ecret-0123456" not in shown


def test_another_secret_is_a_change_that_shows_neither():
    old, new = (flat(loads(text).config, ()) for text in (CONFIG, CONFIG.replace("sk-first-secret", "sk-third-secret")))
    [edit] = changes(old, new)
    assert (edit.path, edit.before, edit.after) == ("providers[0].api_keys[0].key", "***", "*** (another)")
    assert changes(old, old) == []
