"""Placeholders in strings."""
import pytest

from gateway.config.expand import ExpandError, expand
from tests.unit.config.files import good, refused, upstream

ENV = {"A": "one", "B_2": "two", "EMPTY": "", "NESTED": "${env:A}"}


@pytest.mark.parametrize(("text", "value"), [
    ("plain", "plain"), ("$A {A} $", "$A {A} $"), ("${env:A}", "one"), ("x-${env:A}-${env:B_2}", "x-one-two"),
    ("${env:NO:-three}", "three"), ("${env:NO:-}", ""), ("${env:EMPTY:-four}", "four"), ("${env:EMPTY}", ""),
    ("${env:A:-unused}", "one"), ("${env:NO:-http://x:1}", "http://x:1"), ("${env:NESTED}", "${env:A}"),
])
def test_what_it_becomes(text, value):
    assert expand(text, ENV) == value


@pytest.mark.parametrize(("text", "words"), [
    ("${env:NO}", "environment variable NO is not set"), ("${A}", "write ${env:A}"), ("${env:}", "is no name"),
    ("${env:a b}", "is no name"), ("${cmd:ls}", "unknown placeholder"), ("${env:A", "is not closed"), ("${}", "unknown placeholder"),
    ("${file:relative}", "absolute path"), ("${file:/no/such/file}", "cannot read /no/such/file: no such file"),
    ("${file:/}", "cannot read /: is a directory"),
])
def test_what_is_wrong(text, words):
    with pytest.raises(ExpandError) as caught:
        expand(text, ENV)
    assert words in str(caught.value)


def test_a_file_is_read_without_its_last_newline(tmp_path):
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    assert expand(f"${{file:{file}}}", {}) == "s3cret"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ExpandError, match="not UTF-8"):
        expand(f"${{file:{file}}}", {})
    file.write_bytes(b"x" * (1 << 20) + b"x")
    with pytest.raises(ExpandError, match="larger"):
        expand(f"${{file:{file}}}", {})


def test_a_value_cannot_change_the_structure():
    snapshot = good('[[auth.keys]]\nname = "${env:N}"\nkey = "k"', {"N": '"\n[server]\nport = 1'})
    assert snapshot.server.port == 8788 and snapshot.keys[0].name == '"\n[server]\nport = 1'


def test_numbers_and_switches_may_come_from_the_environment():
    snapshot = good('[server]\nport = "${env:P}"\ntrust_proxy = "${env:T}"', {"P": "9", "T": "true"})
    assert snapshot.server.port == 9 and snapshot.server.trust_proxy is True
    assert list(refused('[server]\nport = "${env:P}"', {"P": "x"})) == ["server.port"]


def test_what_comes_from_outside_into_free_fields_is_a_secret():
    snapshot = good(upstream('headers = {X-Team = "${env:T}", X-Plain = "plain", X-Token = "Bearer tok-12"}'), {"T": "hush-123"})
    assert {"hush-123", "tok-12", "sk-a-123456"} <= set(snapshot.secrets)
    assert "plain" not in snapshot.secrets
