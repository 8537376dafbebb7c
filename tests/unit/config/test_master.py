"""The master key comes from systemd, the configuration or the environment, in this order; what is no key is told."""
import base64

import pytest

from gateway.config.master import master_keys
from gateway.config.problems import Problems
from gateway.config.schema import Config, Store
from gateway.core.secret import Secret

A, B = bytes(range(32)), bytes(range(100, 132))
TEXT = base64.b64encode(A).decode()


def found(text="", **env):
    problems = Problems()
    keys = master_keys(Config(store=Store(master_key=Secret(text))), env, problems)
    return [bytes.fromhex(key.reveal()) for key in keys], problems.found


@pytest.mark.parametrize("text", [TEXT, A.hex(), A.hex().upper(), f" {TEXT}\n", TEXT.rstrip("=") + "="])
def test_a_key_may_be_base64_or_hexadecimal(text):
    assert found(text) == ([A], [])


def test_url_safe_base64_is_one_too():
    key = b"\xfb\xff" * 16
    assert found(base64.urlsafe_b64encode(key).decode()) == ([key], [])


def test_several_stand_one_a_line_or_with_commas():
    assert found(f"{TEXT}\n{B.hex()}\n")[0] == found(f"{TEXT},{B.hex()}")[0] == [A, B]


def test_without_any_there_is_none():
    assert found() == ([], []) and found("  ", GATEWAY_MASTER_KEY="\n") == ([], [])


@pytest.mark.parametrize("raw", [A, TEXT.encode() + b"\n"])
def test_a_systemd_credential_comes_first(tmp_path, raw):
    (tmp_path / "gateway-master-key").write_bytes(raw)
    assert found(B.hex(), CREDENTIALS_DIRECTORY=str(tmp_path), GATEWAY_MASTER_KEY=B.hex())[0] == [A]


def test_the_configuration_comes_before_the_environment(tmp_path):
    assert found(TEXT, CREDENTIALS_DIRECTORY=str(tmp_path), GATEWAY_MASTER_KEY=B.hex())[0] == [A]
    assert found("", GATEWAY_MASTER_KEY=B.hex())[0] == [B]


@pytest.mark.parametrize("text", ["short", "x" * 32, TEXT[:-4], TEXT + "AAAA", "%%%%", f"{TEXT},short", "schlüssel", A.hex()[:-1]])
def test_what_is_no_key_is_told_without_showing_it(text):
    keys, problems = found(text)
    (path, message), = problems
    assert not keys and path == "store.master_key" and "openssl rand -base64 32" in message and text not in message


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("gateway.config.master.importlib.util.find_spec", lambda name: None)
    assert found() == ([], [])
    keys, problems = found(TEXT)
    assert not keys and "pip install 'gateway[secrets]'" in problems[0][1]
