"""What a person types and sees; exit status and JSON for programs."""
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from gateway.cli import COMMANDS, root

GOOD = """
[[auth.keys]]
name = "laptop"
key = "gw-secret-client-key"

[[providers]]
id = "a"
base_url = "http://127.0.0.1:9/v1"
api_keys = ["sk-secret-1", "sk-secret-2"]
models = [{id = "m", context = 8000, tools = false}, "n"]

[[providers]]
id = "b"
base_url = "http://127.0.0.1:9/v1"
api_keys = ["sk-secret-3"]
models = [{id = "m", context = 128000}]
"""

BAD = """
[server]
port = 70000
hots = "127.0.0.1"

[[providers]]
id = "a"
base_url = "not an address"
models = ["m"]
"""


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """``typed("check", config=TEXT)``: the result of a command line in an empty folder, without anybody's keys."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_PAT")) or name.startswith(("GATEWAY_CONFIG", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words, config=GOOD):
        if config is not None:
            (tmp_path / "gateway.toml").write_text(config)
        return CliRunner().invoke(root(), words)
    return run


def test_help_lists_every_command(typed):
    said = " ".join(typed("--help").output.split())
    assert all(verb in said and summary in said for verb, summary in COMMANDS.items())


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_has_help_with_examples(typed, verb):
    said = typed(verb, "--help")
    assert said.exit_code == 0
    assert "Examples:" in said.output


def test_an_unknown_command_is_told(typed):
    said = typed("sing")
    assert said.exit_code == 2
    assert "No such command 'sing'" in said.output


def test_version(typed):
    assert typed("--version").output.startswith("gateway, version ")


def test_check_says_what_a_good_configuration_holds(typed):
    said = typed("check")
    assert said.exit_code == 0
    assert "2 providers, 3 models, 1 client key" in said.output


def test_check_prints_every_problem_with_its_path(typed):
    said = typed("check", config=BAD)
    assert said.exit_code == 2
    paths = [line.partition(": ")[0] for line in said.stderr.splitlines()]
    assert {"server.port", "server.hots", "providers[0].base_url"} <= set(paths)
    assert said.stdout == ""


def test_check_needs_the_file_that_was_named(typed):
    said = typed("check", "--config", "nowhere.toml", config=None)
    assert said.exit_code == 2
    assert "nowhere.toml" in said.stderr


def test_check_tells_every_setting_whatever_the_configuration(typed):
    said = typed("check", "--settings", config=BAD)
    assert said.exit_code == 0
    assert "## `[server]`" in said.output and "| `port` | integer | `8788` |" in said.output


def test_check_without_a_configuration_finds_the_demo(typed):
    said = typed("check", config=None)
    assert said.exit_code == 0
    assert "1 provider" in said.output


def test_a_secret_is_never_printed(typed):
    for words in (("check",), ("providers",), ("providers", "--json"), ("models",), ("models", "--json"),
                  ("explain", "m"), ("explain", "m", "--json"), ("doctor", "--offline")):
        assert "-secret-" not in typed(*words).output


def test_explain_lists_targets_in_order(typed):
    rows = json.loads(typed("explain", "m", "--json").output)
    assert [(row["position"], row["label"], row["account"]) for row in rows] == [(1, "a/m", 1), (2, "a/m", 2), (3, "b/m", 1)]
    assert all(row["reason"] for row in rows)


def test_explain_tells_why_a_target_is_left_out(typed):
    rows = json.loads(typed("explain", "m", "--tools", "--json").output)
    assert [(row["position"], row["label"], row["skip"]) for row in rows] == [(None, "a/m", "tools"), (1, "b/m", "")]
    rows = json.loads(typed("explain", "m", "--tokens", "9000", "--json").output)
    assert [(row["position"], row["label"], row["skip"]) for row in rows] == [(None, "a/m", "too_large"), (1, "b/m", "")]


def test_explain_for_people(typed):
    said = typed("explain", "m", "--tools")
    assert said.exit_code == 0
    assert [line.split()[:2] for line in said.output.splitlines() if "/m" in line] == [["skip", "a/m"], ["1", "b/m"]]
    assert "cannot call tools" in said.output


def test_explain_of_nobody_s_model(typed):
    said = typed("explain", "nobody/nothing")
    assert said.exit_code == 2
    assert said.stderr.startswith("nobody/nothing: ")


def test_models_lists_names_and_who_serves_them(typed):
    rows = {row["id"]: row for row in json.loads(typed("models", "--json").output)}
    assert {"auto", "m", "n", "a/m", "b/m"} <= set(rows)
    assert rows["m"]["providers"] == ["a", "b"]
    assert rows["m"]["context_window"] == 128_000
    assert "128,000" in typed("models").output


def test_providers_counts_keys(typed):
    rows = json.loads(typed("providers", "--configured", "--json").output)
    assert [(row["id"], row["keys"], row["models"]) for row in rows] == [("a", 2, ["m", "n"]), ("b", 1, ["m"])]


def test_providers_lists_the_catalogue_after_what_is_configured(typed, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk-1")
    rows = json.loads(typed("providers", "--json").output)
    assert len(rows) > 200 and [row["id"] for row in rows[:2]] == ["a", "b"]
    assert all(row["docs"].startswith("https://") for row in rows[2:])
    states = {row["id"]: row["state"] for row in rows}
    assert (states["a"], states["groq"], states["xai"]) == ("configured", "ready", "")
    assert "gsk-1" not in typed("providers").output


def test_every_provider_says_where_it_is_documented(typed):
    rows = json.loads(typed("providers", "--json").output)
    assert not [row["id"] for row in rows if not row["docs"].startswith("https://")]


def test_providers_are_found_by_words(typed):
    rows = json.loads(typed("providers", "--json", "--filter", "Azure responses").output)
    assert [row["id"] for row in rows] == ["azure-responses"]
    assert "groq" in typed("providers", "--filter", "llama-3.3-70b-versatile").output


@pytest.mark.parametrize(("id", "lines"), [
    ("groq", ['preset = "groq"', 'api_keys = ["${env:GROQ_API_KEY}"]']), ("azure", ['vars = { resource = "${env:AZURE_RESOURCE_NAME}" }']),
    ("bedrock", ["# credentials = "]), ("gigachat", ["oauth = { token_url"]), ("vllm", ['models = ["*"]']),
])
def test_add_prints_what_its_user_has_to_fill_in(typed, id, lines):
    said = typed("providers", "add", id).output
    assert said.startswith("[[providers]]") and all(line in said for line in lines)


def test_add_writes_lines_that_are_a_configuration(typed, tmp_path, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk-1")
    assert typed("providers", "add", "groq", "--write").exit_code == 0
    assert typed("check", config=None).exit_code == 0
    assert [row["id"] for row in json.loads(typed("providers", "--configured", "--json", config=None).output)] == ["a", "b", "groq"]
    assert "already" in typed("providers", "add", "groq", "--write", config=None).output
    assert typed("providers", "add", "no-such").exit_code == 1


def test_models_tells_prices_where_they_are_known(typed, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    rows = {row["id"]: row for row in json.loads(typed("models", "--json", config='[[providers]]\npreset = "openai"').output)}
    assert rows["gpt-4o"]["pricing"]["output"] == 10 and rows["gpt-4o"]["pricing"]["as_of"]
    assert rows["auto"]["pricing"] is None
    assert "2.5" in typed("models", config=None).output


def test_doctor_names_an_address_that_cannot_be_reached(typed):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))            # bound, but nobody listens
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        said = typed("doctor", "--json", config=GOOD.replace("127.0.0.1:9/", address + "/"))
    found = {row["about"]: row for row in json.loads(said.output)}
    assert said.exit_code == 2
    assert found["provider a"]["state"] == "fail"
    assert address in found["provider a"]["says"]
    assert found["python"]["state"] == "ok"


def test_doctor_tells_the_problems_of_a_configuration(typed):
    said = typed("doctor", "--offline", config=BAD)
    assert said.exit_code == 2
    assert "server.port" in said.output


def test_doctor_is_content_with_a_machine_that_works(typed):
    assert typed("doctor", "--offline").exit_code == 0


class Gateway(BaseHTTPRequestHandler):
    """Something that lists models as a gateway does."""

    def do_GET(self):
        right = self.headers["Authorization"] == "Bearer k" and self.path == "/v1/models"
        body = json.dumps({"data": [{"id": "far", "providers": ["away"], "context_window": 5}]}).encode()
        self.send_response(200 if right else 401)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Quiet."""


@pytest.fixture
def running():
    server = HTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_models_of_a_gateway_that_runs(typed, running):
    assert json.loads(typed("models", "--url", running, "--key", "k", "--json").output)[0]["id"] == "far"
    refused = typed("models", "--url", running + "/v1/")
    assert refused.exit_code == 1
    assert "a client key is needed" in refused.output


def test_models_where_nothing_runs(typed):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        said = typed("models", "--url", f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert said.exit_code == 1
    assert "no gateway answers" in said.output and "Errno" not in said.output


def test_serving_does_not_load_what_prints():
    program = "import sys, gateway.cli.serve, gateway.server.run; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
