"""A coding agent is pointed at the gateway: shown, written into its settings without harm to what is there, or launched at once."""
import json
import os
import sys
import tomllib

import pytest
from click.testing import CliRunner

from gateway.cli import root
from gateway.cli.clients import CLIENTS
from gateway.cli.clients.place import Place

URL = "http://127.0.0.1:9999"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    monkeypatch.delenv("GATEWAY_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*words):
    return CliRunner().invoke(root(), list(words), prog_name="gateway")


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_every_client_is_told_the_address_and_the_key(client, home):
    said = json.loads(typed("setup", client, "--url", URL, "--key", "gw-secret", "--model", "best", "--json").output)
    whole = json.dumps(said)
    assert URL in whole and "best" in whole and said["docs"].startswith("https://")
    assert "gw-secret" in whole or client == "codex"
    assert said["env"] or said["settings"]
    assert URL in typed("setup", client, "--url", URL).output


@pytest.mark.parametrize("client", sorted(name for name, setup in CLIENTS.items() if setup(Place(URL)).settings is not None))
def test_settings_are_written_once_and_twice_is_no_change(client, home):
    first = typed("setup", client, "--url", URL, "--write")
    assert first.exit_code == 0 and "written" in first.output
    path = home / CLIENTS[client](Place(URL)).settings.path
    before = path.read_text(encoding="utf-8")
    assert URL in before and path.stat().st_mode & 0o077 == 0
    typed("setup", client, "--url", URL, "--write")
    assert path.read_text(encoding="utf-8") == before


def test_what_is_in_a_settings_file_stays(home):
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"theme": "dark", "env": {"EDITOR": "vi"}}', encoding="utf-8")
    typed("setup", "claude-code", "--url", URL, "--write")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["theme"] == "dark" and data["env"]["EDITOR"] == "vi" and data["env"]["ANTHROPIC_BASE_URL"] == URL
    assert json.loads(path.with_name("settings.json.before-gateway").read_text())["env"] == {"EDITOR": "vi"}


def test_toml_gets_a_table_at_its_end_and_stays_toml(home):
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model = "x"\n[tui]\ntheme = "dark"', encoding="utf-8")
    typed("setup", "codex", "--url", URL, "--write")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    assert data["model_providers"]["gateway"]["base_url"] == f"{URL}/v1" and data["tui"]["theme"] == "dark" and data["model"] == "x"


@pytest.mark.parametrize("text", ["// a comment\n{}", "[1]"])
def test_a_file_that_is_not_understood_is_left_alone(home, text):
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    said = typed("setup", "claude-code", "--url", URL, "--write")
    assert said.exit_code == 1 and "settings.json" in said.output and path.read_text(encoding="utf-8") == text


def test_a_gateway_with_keys_asks_for_one(home):
    (home / "gateway.toml").write_text('[[auth.keys]]\nname = "a"\nkey = "gw-key-123456"\n[[providers]]\nid = "p"\nbase_url = "http://127.0.0.1:1/v1"\n'
                                       'models = ["m"]\n', encoding="utf-8")
    said = typed("setup", "aider")
    assert said.exit_code == 1 and "gateway keys create" in said.output and "gw-key" not in said.output
    assert "http://127.0.0.1:8788/v1" in typed("setup", "aider", "--key", "gw-key-123456").output


def test_export_lines_are_for_a_shell(home):
    said = typed("setup", "aider", "--url", URL, "--key", "it's", "--export").output
    assert said.splitlines()[1] == "export OPENAI_API_KEY='it'\"'\"'s'"


def test_run_needs_the_program_and_the_gateway(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))
    assert "not installed" in typed("run", "aider", "--url", URL).output
    program = home / "aider"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    assert "gateway serve" in typed("run", "aider", "--url", "http://127.0.0.1:9").output
    assert "--write" in typed("run", "crush", "--url", URL).output


async def test_run_becomes_the_client(home, gateway, monkeypatch):
    base = await gateway("")
    program = home / "aider"
    program.write_text(f"#!{sys.executable}\nimport os, sys\nopen('said', 'w').write(repr((os.environ['OPENAI_API_BASE'], sys.argv[1:])))\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    import asyncio
    run = await asyncio.create_subprocess_exec(sys.executable, "-m", "gateway", "run", "aider", "--url", base, "--", "--yes", "-x", cwd=home)
    assert await run.wait() == 0
    assert (home / "said").read_text() == repr((f"{base}/v1", ["--model", "openai/auto", "--yes", "-x"]))
