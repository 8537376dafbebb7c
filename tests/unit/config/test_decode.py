"""The shape of a file: every problem at once, with its path and what to write instead."""
import pytest

from tests.unit.config.files import PROVIDER, good, refused


def test_an_empty_file_has_the_defaults_of_the_contract():
    snapshot = good()
    assert (snapshot.server.host, snapshot.server.port, snapshot.server.max_body_bytes) == ("127.0.0.1", 8788, 26_214_400)
    assert (snapshot.routing.max_attempts, snapshot.routing.budget_s, snapshot.routing.transient_cooldown_s) == (20, 45, 90)
    assert (snapshot.stream.tool_calls, snapshot.stream.reasoning, snapshot.stream.hold_max_s) == ("whole", "hold", 30)
    assert (snapshot.timeouts.first_byte_s, snapshot.timeouts.keepalive_s, snapshot.timeouts.early_keepalive_s) == (60, 15, 0)
    assert snapshot.keys == snapshot.providers == ()


def test_a_whole_number_is_a_number():
    assert good("[timeouts]\nidle_s = 5\ntotal_s = 1.5").timeouts.idle_s == 5.0


@pytest.mark.parametrize(("text", "path", "words"), [
    ("colour = 1", "colour", "unknown key"),
    ("[servr]", "servr", 'did you mean "server"?'),
    ("port = 1", "port", "it belongs to [server]"),
    ("[server]\nprot = 1", "server.prot", 'did you mean "port"?'),
    ("server = 5", "server", "must be a table, not a whole number"),
    ('[server]\nport = "80"', "server.port", "must be a whole number, not text '80'"),
    ("[server]\nport = 8.5", "server.port", "must be a whole number, not 8.5"),
    ("[server]\nport = true", "server.port", "must be a whole number, not true or false"),
    ("[server]\nport = 70000", "server.port", "must be at most 65535"),
    ("[server]\nhost = 1", "server.host", "must be text in quotes, not 1"),
    ("[server]\ntrust_proxy = 1", "server.trust_proxy", "must be true or false, not 1"),
    ("[timeouts]\nidle_s = -1", "timeouts.idle_s", "must be at least 0"),
    ("[timeouts]\nidle_s = nan", "timeouts.idle_s", "must be a number, not nan"),
    ("[timeouts]\nidle_s = inf", "timeouts.idle_s", "must be a number, not inf"),
    ("[timeouts]\nidle_s = [1]", "timeouts.idle_s", "must be a number, not an array"),
    ('[log]\nlevel = "warn"', "log.level", 'use one of debug, info, warning, error; did you mean "warning"?'),
    ("[log]\nlevel = 3", "log.level", "3 is unknown"),
    ('[server]\ncors_allow_origins = "*"', "server.cors_allow_origins", "must be an array, not text"),
    ("[server]\ncors_allow_origins = [1]", "server.cors_allow_origins[0]", "must be text in quotes"),
    ("providers = 1", "providers", "must be an array"),
    ("providers = [1]", "providers[0]", "must be a table"),
    ('[[auth.keys]]\nkey = "k"', "auth.keys[0].name", "is missing"),
    ('[[auth.keys]]\nname = ""\nkey = "k"', "auth.keys[0].name", "must not be empty"),
    ("[auth]\nkey = 1", "auth.key", 'did you mean "keys"?'),
    (PROVIDER + "headers = 1", "providers[0].headers", "must be a table"),
    (PROVIDER + "headers = {a = 1}", "providers[0].headers.a", "must be text in quotes"),
    (PROVIDER + "limits = {rpn = 1}", "providers[0].limits.rpn", 'did you mean "rpm"?'),
    (PROVIDER + "timeouts = {keepalive_s = 1}", "providers[0].timeouts.keepalive_s", "it belongs to [timeouts]"),
    (PROVIDER.replace('["m"]', '[{id = "m", contxt = 1}]'), "providers[0].models[0].contxt", 'did you mean "context"?'),
    (PROVIDER.replace('["m"]', "[{context = 1}]"), "providers[0].models[0].id", "is missing"),
    (PROVIDER.replace('["m"]', '["m", 3]'), "providers[0].models[1]", "must be a table"),
    (PROVIDER.replace('["m"]', '[{id = "m", kind = "chatt"}]'), "providers[0].models[0].kind", 'did you mean "chat"?'),
    (PROVIDER + 'wire = "openai"', "providers[0].wire", 'did you mean "openai-chat"?'),
    (PROVIDER + 'auth = "bear"', "providers[0].auth", 'did you mean "bearer"?'),
    ('[routing]\nstrategy = "prioritty"', "routing.strategy", 'did you mean "priority"?'),
])
def test_a_problem_has_a_path_and_says_what_to_write(text, path, words):
    problems = refused(text)
    assert list(problems) == [path]
    assert words in problems[path]


def test_all_problems_are_told_at_once():
    assert set(refused('a = 1\n[server]\nport = "x"\n[log]\nlevel = "x"\n[[auth.keys]]\n[[auth.keys]]\nname = 1')) == {
        "a", "server.port", "log.level", "auth.keys[0].name", "auth.keys[0].key", "auth.keys[1].name", "auth.keys[1].key"}


def test_a_bad_entry_keeps_its_place():
    problems = refused(PROVIDER.replace('["sk-a-123456"]', '["${env:NO}", "", "ok-1234", "a b"]'))
    assert list(problems) == ["providers[0].api_keys[0]", "providers[0].api_keys[1]", "providers[0].api_keys[3]"]


def test_secrets_are_not_shown_in_problems():
    text = PROVIDER.replace('["sk-a-123456"]', '"sk-visible-1"') + '[[auth.keys]]\nname = "x"\nkey = "sk visible 2 "\nrpm = "${env:S}"\n'
    assert "visible" not in str(refused(text, {"S": "visible"}))


def test_a_date_may_be_written_as_a_date():
    assert good('[[auth.keys]]\nname = "x"\nkey = "k"\nexpires = 2100-01-01').keys[0].expires_at == 4_102_444_800
