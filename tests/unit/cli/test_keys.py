"""Keys from the command line: a secret is printed once, alone; a gateway that runs takes a change over."""
import asyncio
import json
import re

import aiohttp
import pytest
from click.testing import CliRunner

from gateway.cli import root
from gateway.cli.keys import money
from gateway.mock.script import reply
from gateway.policy import passwords
from tests.conftest import client_key, provider

SECRET = re.compile(r"gw-[A-Za-z0-9_-]{43}\n")


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """``typed("keys", …)`` with a store of its own and one configured key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("GATEWAY_CONFIG", raising=False)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    (tmp_path / "keys.toml").write_text(client_key("laptop"))

    def run(*words, config="keys.toml", given=None):
        end = ("--config", str(tmp_path / config)) if config else ()
        return CliRunner().invoke(root(), [*words, *end], input=given)
    return run


def facts(typed, name):
    return next(row for row in json.loads(typed("keys", "list", "--json").stdout) if row["name"] == name)


def test_a_key_is_made_listed_changed_rotated_and_revoked(typed):
    made = typed("keys", "create", "ci", "-m", "gpt-*", "--rpm", "60", "--budget-month", "20", "--expires", "2099-01-31")
    assert made.exit_code == 0 and SECRET.fullmatch(made.stdout) and "cannot be shown again" in made.stderr
    row = facts(typed, "ci")
    assert (row["models"], row["rpm"], row["budget_usd_month"], row["expires"]) == (["gpt-*"], 60, 20.0, "2099-01-31T00:00:00Z")
    shown = typed("keys").output
    assert "laptop" in shown and "ci" in shown and made.stdout.strip() not in shown and "$0.00 of $20.00" in shown
    assert typed("keys", "update", "ci", "--rpm", "0", "--expires", "never", "--note", "x").exit_code == 0
    row = facts(typed, "ci")
    assert (row["rpm"], row["expires"], row["note"], row["budget_usd_month"]) == (0, "", "x", 20.0)
    rotated = typed("keys", "rotate", "ci", "--grace", "24h")
    assert SECRET.fullmatch(rotated.stdout) and rotated.stdout != made.stdout
    assert facts(typed, "ci")["old_secret_until"]
    assert typed("keys", "revoke", "ci", given="n\n").exit_code == 1 and facts(typed, "ci")["state"] == "active"
    assert typed("keys", "revoke", "ci", "--yes").exit_code == 0 and facts(typed, "ci")["state"] == "revoked"


def test_without_a_key_the_list_says_how_one_is_made(typed, tmp_path):
    (tmp_path / "none.toml").write_text("")
    listed = typed("keys", "list", config="none.toml")
    assert listed.exit_code == 0 and "gateway keys create" in listed.stderr and not listed.stdout
    assert json.loads(typed("keys", "list", "--json", config="none.toml").stdout) == []


def test_json_tells_the_secret_beside_the_facts(typed):
    doc = json.loads(typed("keys", "create", "ci", "--json").stdout)
    assert SECRET.fullmatch(doc["key"] + "\n") and doc["name"] == "ci" and "sha256" not in doc


@pytest.mark.parametrize(("words", "told"), [
    (("create", "laptop"), "name: there is a client key 'laptop' already"),
    (("create", "x", "--expires", "soon"), "'soon' is no date"), (("create", "x", "--rpm", "-1"), "-1"),
    (("create", "x", "--group", "nobody"), "there is no group 'nobody'"),
    (("rotate", "x", "--grace", "long"), "'long' is no duration"), (("rotate", "nobody"), "no client key 'nobody'"),
    (("revoke", "laptop", "--yes"), "stands in the configuration"), (("update", "ci"), "Nothing to change"),
    (("group", "a", "--parent", "nobody"), "there is no group 'nobody'"), (("group", "a", "--delete"), "no group 'a'"),
])
def test_what_cannot_be_done_is_told(typed, words, told):
    done = typed("keys", *words)
    assert done.exit_code != 0 and told in done.output


def test_groups_are_made_listed_and_removed(typed):
    assert typed("keys", "group", "org", "--budget-month", "100").exit_code == 0
    assert typed("keys", "group", "team", "--parent", "org", "--budget-day", "5").exit_code == 0
    assert typed("keys", "create", "ci", "--group", "team").exit_code == 0
    assert typed("keys", "group", "team", "--budget-day", "6").exit_code == 0
    rows = {row["name"]: row for row in json.loads(typed("keys", "groups", "--json").stdout)}
    assert rows["team"] == {"name": "team", "parent": "org", "budget_usd_day": 6.0, "budget_usd_month": 0.0, "spent_usd_day": 0.0,
                            "spent_usd_month": 0.0}
    assert "ci still belong" in typed("keys", "group", "team", "--delete").output
    typed("keys", "update", "ci", "--group", "")
    assert typed("keys", "group", "team", "--delete").exit_code == 0 and "team" not in typed("keys", "groups").output


def test_memory_has_no_keys_for_a_command(typed, tmp_path):
    (tmp_path / "memory.toml").write_text('[store]\nurl = "memory:"\n')
    done = typed("keys", "list", config="memory.toml")
    assert done.exit_code == 1 and "only the running gateway knows" in done.output


async def test_a_running_gateway_takes_a_change_over(upstream, gateway, stack, typed, tmp_path):
    up = await upstream(reply("Hello"))
    text = provider(up) + client_key("laptop") + f'[store]\nurl = "sqlite:{tmp_path}/gw.db"\n'
    (tmp_path / "running.toml").write_text(text)
    base = await gateway(text)
    gateway.listener.parts.keykeeper._every_s = 0.02
    http = await stack.enter_async_context(aiohttp.ClientSession())
    ask = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}

    async def until(status, key):
        for _ in range(300):
            async with http.post(base + "/v1/chat/completions", json=ask, headers={"x-api-key": key}) as answer:
                if answer.status == status:
                    return True
            await asyncio.sleep(0.02)
        return False

    made = await asyncio.to_thread(typed, "keys", "create", "ci", config="running.toml")
    assert await until(200, made.stdout.strip())
    await asyncio.to_thread(typed, "keys", "revoke", "ci", "--yes", config="running.toml")
    assert await until(401, made.stdout.strip())


def test_a_password_is_asked_twice_and_hashed(typed):
    done = typed("admin-password", config=None, given="correct horse\ncorrect horse\n")
    line = re.search(r'password_hash = "(.*)"', done.stdout)
    assert done.exit_code == 0 and line and passwords.matches("correct horse", line[1]) and "correct" not in done.output


def test_a_password_may_come_by_standard_input(typed):
    done = typed("admin-password", "--stdin", config=None, given="correct horse\nmore\n")
    assert passwords.matches("correct horse", done.stdout.strip())
    assert typed("admin-password", "--stdin", config=None, given="short\n").exit_code == 1


def test_provider_keys_are_kept_sealed_listed_and_removed(typed, monkeypatch, tmp_path):
    monkeypatch.delenv("GATEWAY_MASTER_KEY", raising=False)
    refused = typed("providers", "add", "groq", "--store", "--stdin", given="gsk-canary-1\n")
    assert refused.exit_code == 1 and "openssl rand -base64 32" in refused.output
    monkeypatch.setenv("GATEWAY_MASTER_KEY", "11" * 32)
    done = typed("providers", "add", "groq", "--store", "--stdin", given="gsk-canary-1\n")
    assert done.exit_code == 0 and "stored1" in done.output
    assert typed("providers", "add", "groq", "--store", "--label", "two", given="gsk-canary-2\n").exit_code == 0
    assert "neither configured nor" in typed("providers", "add", "nobody", "--store", "--stdin", given="k\n").output
    monkeypatch.setenv("GATEWAY_MASTER_KEY", "22" * 32 + "," + "11" * 32)
    assert "2 provider keys, 0 tokens" in typed("keys", "reencrypt").output
    monkeypatch.setenv("GATEWAY_MASTER_KEY", "22" * 32)
    rows = typed("providers", "stored", "--json").output
    assert [row["state"] for row in json.loads(rows)] == ["ok", "ok"] and "canary" not in rows
    assert all(b"canary" not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert typed("providers", "remove", "groq", "two").exit_code == 0
    assert typed("providers", "remove", "groq", "two").exit_code == 1


@pytest.mark.parametrize(("spent", "budget", "told"), [
    (0.0, 0.0, ""), (0.0, 20.0, "$0.00 of $20.00"), (0.0012, 0.001, "$0.0012 of $0.0010"), (1234.5, 0.0, "$1,234.50")])
def test_small_sums_are_not_told_as_nothing(spent, budget, told):
    assert money(spent, budget) == told


def test_a_configuration_and_json_named_before_the_command_mean_it_as_well(typed, tmp_path):
    before = ("keys", "--config", str(tmp_path / "keys.toml"))
    assert "there is a client key 'laptop' already" in typed(*before, "create", "laptop", config=None).output
    assert json.loads(typed(*before, "--json", "list", config=None).stdout)[0]["name"] == "laptop"
