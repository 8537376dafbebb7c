"""``gateway serve`` as a process: it says where it is, answers, drains, and refuses with a path."""
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

ASK = {"model": "auto", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def serve(tmp_path):
    """``serve(*options)``: a process in an empty folder without anybody's keys; it is ended with the test."""
    started = []

    def run(*options, config="", **environment):
        if config:
            (tmp_path / "gateway.toml").write_text(config)
        clean = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
        process = subprocess.Popen([sys.executable, "-m", "gateway", "serve", *options], cwd=tmp_path, text=True,
                                   env={**clean, "HOME": str(tmp_path), **environment},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        return process
    yield run
    for process in started:
        process.kill()
        process.communicate()


def url_of(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.split()[-1]


def ask(url, **more):
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps({**ASK, **more}).encode(),
                                     {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=20)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_without_a_configuration_the_demo_streams(serve, loop):
    process = serve("--port", "0", GATEWAY_LOOP=loop)
    with ask(url_of(process)) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["X-Routed-Via"].startswith("demo/")
        lines = [line for line in answer.read().decode().splitlines() if line]
    assert len(lines) > 5
    assert lines[-1] == "data: [DONE]"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_sigterm_lets_a_running_answer_finish(serve):
    process = serve("--port", "0")
    with ask(url_of(process)) as answer:
        answer.readline()
        process.send_signal(signal.SIGTERM)
        assert answer.read().rstrip().endswith(b"data: [DONE]")
    assert process.wait(20) == 0


def test_an_interrupt_ends_it(serve):
    process = serve("--port", "0")
    url_of(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def refused(process):
    out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert out == ""
    return err


def test_a_bad_configuration_is_told_by_path(serve):
    assert refused(serve("--port", "0", config="[server]\nprot = 1\n")).startswith("server.prot: ")


def test_an_open_gateway_stays_on_loopback(serve):
    assert "loopback" in refused(serve("--host", "0.0.0.0", "--port", "0"))


def test_a_port_in_use_is_told(serve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused(serve("--port", str(taken.getsockname()[1])))
    assert said.startswith("server.port: cannot accept on 127.0.0.1:")
    assert "Traceback" not in said
