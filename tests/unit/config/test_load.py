"""Which file is loaded, and what happens when it cannot be."""

import pytest

from gateway.config.load import ConfigError, find, load, parse
from tests.unit.config.files import PROVIDER


@pytest.fixture
def places(tmp_path):
    """The four places that are searched, all empty; and load() bound to them."""
    class Places:
        named, here, xdg, system = (tmp_path / name / "gateway.toml" for name in ("named", "here", "xdg/gateway", "system"))
        env = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}

        def find(self, path=None, **env):
            return find(path, self.env | env, here=self.here.parent, system=self.system)

        def load(self, path=None, env=None, **more):
            return load(path, self.env | (env or {}), here=self.here.parent, system=self.system, **more)

    found = Places()
    for file in (found.named, found.here, found.xdg, found.system):
        file.parent.mkdir(parents=True)
    return found


def test_the_search_order_of_the_contract(places):
    assert places.find() is None
    for file in (places.system, places.xdg, places.here):
        file.write_text("")
        assert places.find() == file
    assert places.find(GATEWAY_CONFIG=str(places.named)) == places.named
    assert places.find(places.named, GATEWAY_CONFIG="/other") == places.named


def test_home_is_used_without_xdg(tmp_path):
    file = tmp_path / ".config" / "gateway" / "gateway.toml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert find(None, {"HOME": str(tmp_path)}, here=tmp_path, system=tmp_path / "no") == file


def test_a_file_that_is_named_must_exist(places):
    with pytest.raises(ConfigError) as caught:
        places.load(places.named)
    assert caught.value.problems == [(str(places.named), "cannot be read: no such file or directory")]


def test_a_loaded_file_is_remembered(places):
    places.here.write_text(PROVIDER)
    snapshot = places.load(wall=5.0)
    assert snapshot.source == places.here and snapshot.loaded_at == 5.0 and snapshot.providers[0].id == "a"


def test_the_command_line_wins(places):
    places.here.write_text("[server]\nport = 1\n")
    assert places.load(port=7).server.port == 7
    with pytest.raises(ConfigError, match="server.host"):
        places.load(host="0.0.0.0")


@pytest.mark.parametrize(("text", "words"), [
    ("[server]\nport = \n", "line 2"), ("a = 1\na = 2\n\n", "line 2"), ("[a]\n[a]", "line 2"), ("x", "line 1"),
    ("a = " + "[" * 5_000, "not valid TOML")])
def test_broken_toml_is_told_with_its_line(text, words):
    with pytest.raises(ConfigError) as caught:
        parse(text, "gateway.toml")
    ((path, message),) = caught.value.problems
    assert path == "gateway.toml" and words in message


def test_a_file_that_is_no_text_is_told_with_its_line(places):
    places.here.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(line 2\)"):
        places.load()


def test_a_byte_order_mark_is_no_matter(places):
    places.here.write_bytes(b"\xef\xbb\xbf[server]\nport = 3\n")
    assert places.load().server.port == 3


def test_without_a_file_the_keys_of_the_environment_are_used(places):
    snapshot = places.load(env={"GROQ_API_KEY": "gsk_123456", "GOOGLE_API_KEY": "AIza-second", "OPENAI_API_KEY": " "})
    assert [provider.id for provider in snapshot.providers] == ["gemini", "groq", "demo"]
    assert snapshot.source is None and snapshot.secrets == ("AIza-second", "gsk_123456")
    assert all(provider.models for provider in snapshot.providers)


def test_the_first_key_variable_that_is_set_counts(places):
    snapshot = places.load(env={"GEMINI_API_KEY": "first-1", "GOOGLE_API_KEY": "second-2"})
    assert snapshot.providers[0].keys == ("first-1",)


def test_without_any_key_there_is_demo(places):
    (demo,) = places.load().providers
    assert demo.flags == {"demo"} and list(demo.models) == ["demo"] and demo.keys == ("",)
    assert places.load().warnings == ()


def test_an_empty_file_is_no_zero_config_mode(places):
    places.here.write_text("")
    assert places.load(env={"GROQ_API_KEY": "gsk_123456"}).providers == ()


def test_nothing_prints_a_secret(places):
    places.here.write_text(PROVIDER + '[[auth.keys]]\nname = "x"\nkey = "gw-secret"\n')
    snapshot = places.load()
    assert "sk-a" not in repr(snapshot) + repr(snapshot.providers[0].accounts) and "gw-secret" not in repr(snapshot.keys)
