"""``gateway bench``: a private gateway is started, loaded, measured and ended."""
import json
import socket

from click.testing import CliRunner

from gateway.cli import root
from gateway.cli.bench import Measured, line
from gateway.mock.scenarios import Row


def typed(*words):
    return CliRunner().invoke(root(), ["bench", *words])


def test_a_private_gateway_answers_wholly():
    said = typed("--scenario", "streams-20-1", "--seconds", "0.3", "--json")
    assert said.exit_code == 0, said.output
    row, = json.loads(said.stdout)
    assert row["valid"] and row["ok"] > 0 and row["chunks"] > 0
    assert row["errors"] == row["truncated"] == row["unfinished"] == 0


def test_the_upstream_alone():
    said = typed("--direct", "--scenario", "whole-1", "--seconds", "0.2")
    assert said.exit_code == 0
    assert "non-stream, 1 client" in said.output
    assert "p50" in said.output and "█" in said.output


def test_faults_are_shown():
    assert line(Measured(Row(scenario="whole-1", ok=3, errors=2, truncated=1)))[-1] == "2 errors, 1 truncated"
    assert line(Measured(Row(scenario="whole-1", ok=3)))[-1] == "none"


def test_where_nothing_runs():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        said = typed("--url", f"http://127.0.0.1:{unused.getsockname()[1]}", "--scenario", "whole-1")
    assert said.exit_code == 1
    assert "nothing answers at" in said.output
