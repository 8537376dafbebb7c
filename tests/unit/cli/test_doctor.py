"""`gateway doctor` finds what is wrong with a machine and says what would help."""
import email.utils
import os
import sqlite3
import threading
import time
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gateway.cli import doctor, machine
from gateway.core.secret import Secret
from gateway.providers.registry import Account, Provider

Usage = namedtuple("Usage", "total used free")


def by_name(findings):
    return {finding.about: finding for finding in findings}


@pytest.fixture
def told():
    """A server whose clock is ``told.off_s`` from ours; ``told.heard`` is what it was asked."""
    class Told:
        off_s, heard = 0.0, []

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self):
            Told.heard.append(dict(self.headers))
            self.send_response_only(401)
            if Told.off_s is not None:
                self.send_header("Date", email.utils.formatdate(time.time() + Told.off_s, usegmt=True))
            self.end_headers()

        def log_message(self, *_):
            """Nothing between the dots."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Told.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield Told
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("off_s", "state", "says"), [(0, "ok", "right"), (-60, "warn", "ahead"), (3_600, "fail", "behind"),
                                                      (None, "ok", "nobody told")])
def test_the_clock_is_compared_with_a_provider_s(told, off_s, state, says):
    told.off_s = off_s
    found = machine.clock(told.url)
    assert found.state == state and says in found.says and bool(found.do) == (state != "ok")


def test_no_key_is_sent_for_the_time_and_local_servers_are_not_asked(told):
    account = Account(ordinal=1, key=Secret("sk-secret"))
    far, near = (Provider(id="p", name="p", base_url=told.url, accounts=(account,), loopback=loopback) for loopback in (False, True))
    told.heard.clear()
    assert list(doctor.timed([near], {"provider p"})) == [] and list(doctor.timed([far], set())) == []
    assert [finding.about for finding in doctor.timed([far], {"provider p"})] == ["clock"]
    assert len(told.heard) == 1 and not {"Authorization", "x-api-key"} & set(told.heard[0])


def test_a_clock_that_nobody_tells_is_no_failure():
    assert machine.clock("http://127.0.0.1:9/v1").state == "ok"


def test_a_store_in_memory_is_a_warning():
    (found,) = machine.store("memory:", offline=True)
    assert found.state == "warn" and "sqlite:" in found.do


def test_a_store_that_is_not_there_yet_will_be_made(tmp_path):
    found = by_name(machine.store(f"sqlite:{tmp_path}/deep/down/gateway.db", offline=True))
    assert found["store"].state == "ok" and "will be made" in found["store"].says and not (tmp_path / "deep").exists()


def test_a_store_of_an_older_version_is_a_warning_and_garbage_a_failure(tmp_path):
    sqlite3.connect(tmp_path / "old.db").close()
    (tmp_path / "bad.db").write_bytes(b"this is no database, whatever its name says" * 100)
    assert by_name(machine.store(f"sqlite:{tmp_path}/old.db", offline=True))["store"].state == "warn"
    bad = by_name(machine.store(f"sqlite:{tmp_path}/bad.db", offline=True))["store"]
    assert bad.state == "fail" and "restore" in bad.do


def test_a_store_that_cannot_be_written_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (found,) = machine.store(f"sqlite:{tmp_path}/gateway.db", offline=True)
    assert found.state == "fail" and str(tmp_path) in found.do


@pytest.mark.parametrize(("free", "state"), [(50 << 20, "fail"), (500 << 20, "warn"), (50 << 30, "ok")])
def test_a_disk_that_is_nearly_full_is_told(tmp_path, monkeypatch, free, state):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: Usage(1 << 40, 0, free))
    assert by_name(machine.store(f"sqlite:{tmp_path}/gateway.db", offline=True))["disk"].state == state


def test_few_open_files_are_told_with_what_raises_the_limit(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    found = machine.open_files()
    assert found.state == "warn" and "512 streams" in found.says and "LimitNOFILE" in found.do


def test_extras_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(machine, "installed", lambda module: module != "asyncpg")
    assert machine.extras().says.endswith("without postgres")


def test_the_extras_are_those_of_the_package():
    import tomllib

    from tests.arch.source import ROOT
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(machine.EXTRAS) == set(project["optional-dependencies"]) - {"all", "dev"}
