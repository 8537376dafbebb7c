"""`gateway webhooks` shows addresses without what may be secret in them, and says whether they take a test."""
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from gateway.cli import root


@pytest.fixture
def address():
    heard = []

    class Take(BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append((self.headers["X-Gateway-Event"], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(204 if "good" in self.path else 500)
            self.end_headers()

        def log_message(self, *_):
            """Nothing between the dots."""

    server = HTTPServer(("127.0.0.1", 0), Take)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", heard
    server.shutdown()
    server.server_close()


def run(tmp_path, *args, config):
    file = tmp_path / "gateway.toml"
    file.write_text(config, encoding="utf-8")
    return CliRunner().invoke(root(), ["webhooks", *args, "--config", str(file)])


def hook(url):
    return f'[[webhooks]]\nurl = "{url}"\nallow_private = true\nevents = ["request.failed"]\n'


def test_a_test_is_posted_to_everybody_whatever_they_listen_for(tmp_path, address):
    url, heard = address
    result = run(tmp_path, "test", "--json", config=hook(url + "/good/T0K3N"))
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)[0]["status"] == 204 and heard[0][0] == heard[0][1]["event"] == "test"
    assert "T0K3N" not in result.output


def test_who_does_not_take_it_fails_the_command(tmp_path, address):
    result = run(tmp_path, "test", config=hook(address[0] + "/bad") + hook("http://127.0.0.1:9/x"))
    assert result.exit_code == 1 and "500" in result.output


def test_the_list_names_hosts_only(tmp_path):
    result = run(tmp_path, "list", config='[[webhooks]]\nurl = "https://hooks.example/T0K3N"\n')
    assert result.exit_code == 0 and "hooks.example" in result.output and "T0K3N" not in result.output


def test_without_any_it_says_so(tmp_path):
    assert "no [[webhooks]]" in run(tmp_path, "list", config="").output
