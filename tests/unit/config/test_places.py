"""Where state lives: what the environment says, in the contract's order."""
from pathlib import Path

import pytest

from gateway.config.places import state_directory, store_address
from gateway.config.problems import Problems
from tests.unit.config.files import good, refused


@pytest.mark.parametrize(("env", "place"), [
    ({"STATE_DIRECTORY": "/s:/other", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/s"),
    ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/gateway"),
    ({"HOME": "/h"}, "/h/.local/state/gateway"),
])
def test_the_state_directory_is_the_first_that_is_named(env, place):
    assert state_directory(env) == Path(place)


def test_without_a_home_there_is_no_state_directory():
    assert state_directory({}) is None


@pytest.mark.parametrize(("url", "address"), [
    ("sqlite:gateway.db", "sqlite:/s/gateway.db"),
    ("sqlite:sub/x.db", "sqlite:/s/sub/x.db"),
    ("sqlite:/abs/x.db", "sqlite:/abs/x.db"),
    ("memory:", "memory:"),
])
def test_a_store_is_below_the_state_directory_unless_its_path_is_absolute(url, address):
    assert store_address(url, {"STATE_DIRECTORY": "/s"}, Problems()) == address


def test_the_default_store_without_a_home_is_memory():
    assert store_address("sqlite:gateway.db", {}, Problems()) == "memory:"


@pytest.mark.parametrize("url", ["postgresql://u:p@db.example:5432/gw", "postgres://u:p@db.example/gw", "postgresql:///gw?host=/run/pg"])
def test_a_server_is_taken_as_it_is(url):
    pytest.importorskip("asyncpg")
    assert store_address(url, {}, Problems()) == "postgresql:" + url.partition(":")[2]


@pytest.mark.parametrize("url", ["postgresql://", "postgresql://host", "postgresql://u:secretpass@h:x/gw", "postgresql:///gw", "mysql://h/gw", "gateway.db"])
def test_what_is_no_store_is_refused_without_repeating_it(url):
    (message,) = refused(f'[store]\nurl = "{url}"').values()
    assert "secretpass" not in message


def test_a_server_without_its_package_is_refused(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'gateway[postgres]'" in refused('[store]\nurl = "postgresql://u:p@h/gw"')["store.url"]


def test_its_password_is_a_secret():
    pytest.importorskip("asyncpg")
    assert "pass/word" in good('[store]\nurl = "postgresql://u:pass%2Fword@h/gw"').secrets


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:dir/", "sqlite:other.db"])
def test_a_store_that_can_have_no_file_is_refused(url):
    assert list(refused(f'[store]\nurl = "{url}"')) == ["store.url"]


@pytest.mark.parametrize("url", ["redis://h", "rediss://h:6380/1", "valkey://u:p%40ss@h:1/0", "valkeys://h", "unix:///run/valkey.sock"])
def test_a_shared_state_has_an_address(url):
    assert good(f'[state]\nurl = "{url}"').state == url


@pytest.mark.parametrize("url", ["http://h", "redis://", "unix://", "valkey://h:port", "somewhere"])
def test_what_is_no_address_of_a_shared_state_is_refused_without_being_told(url):
    problems = refused(f'[state]\nurl = "{url}"')
    assert list(problems) == ["state.url"]
    assert "somewhere" not in problems["state.url"]


def test_the_password_of_a_shared_state_is_a_secret():
    assert "p@ss-of-state" in good('[state]\nurl = "redis://:p%40ss-of-state@h"').secrets


@pytest.mark.parametrize(("text", "fine"), [("4", True), ('"auto"', True), ("0", False), ('"many"', False), ("257", False)])
def test_workers_are_a_number_or_auto(text, fine):
    if fine:
        good(f"[server]\nworkers = {text}")
    else:
        assert list(refused(f"[server]\nworkers = {text}")) == ["server.workers"]
