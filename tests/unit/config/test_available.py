"""What the contract knows and this version does not enforce is refused, never ignored."""
import msgspec
import pytest

from gateway.config.available import NOT_YET, at, one_of
from gateway.config.decode import peel, schema
from gateway.config.schema import Config, Table
from tests.unit.config.files import good, refused, upstream

KEY = '[[auth.keys]]\nname = "a"\nkey = "k"\n'


@pytest.mark.parametrize(("row", "text", "path"), [
    ({"server.workers": (one_of(1), "1")}, "[server]\nworkers = 2", "server.workers"),
    ({"guardrails": (one_of(), "the defaults")}, '[guardrails.pii]\nrequests = "mask"', "guardrails.pii"),
])
def test_it_is_refused_by_its_path(row, text, path, monkeypatch):
    good(text)
    monkeypatch.setattr("gateway.config.available.NOT_YET", row)
    problems = refused(text)
    assert list(problems) == [path]
    assert problems[path].startswith("not available in this version")


def test_the_defaults_may_be_written_out():
    good('[server]\nworkers = 1\n[store]\nurl = "sqlite:gateway.db"\n[state]\nurl = "memory:"\n[routing]\nstrategy = "priority"\n'
         'handoff = "off"\nhedge = "deadline"\n[stream]\nresume = "off"\n[cache]\nenabled = false\nttl_s = 3600\n[compression]\n'
         'mode = "off"\n[fusion]\nk = 4\njudge = ""\n[ollama]\nmode = "off"\n[mcp]\nenabled = false\n[admin]\nenabled = true\n'
         'password_hash = ""\n[log]\ncapture_bodies = false\n' + KEY + "budget_usd_day = 0.0\n"
         + upstream('wire = "openai-chat"\nauth = "x-api-key"\nvars = {}\ncredentials = ""\n'))
    assert good('[store]\nurl = "memory:"').providers == ()


def test_every_row_names_a_key_that_exists():
    for pattern in NOT_YET:
        kind: type[Table] = Config
        for step in pattern.split("."):
            hint, _ = schema(kind)[step.removesuffix("[]")]
            base, _ = peel(hint)
            base = base.__args__[0] if step.endswith("[]") else base
            if isinstance(base, type) and issubclass(base, msgspec.Struct):
                kind = base


def test_an_array_step_means_every_entry():
    from gateway.config.schema import AuthTable, Key
    config = Config(auth=AuthTable(keys=(Key(name="a"), Key(name="b", rpm=2))))
    assert list(at(config, "auth.keys[].rpm")) == [("auth.keys[0].rpm", 0), ("auth.keys[1].rpm", 2)]
