"""What the service manager is told, and what is taken from it."""
import asyncio
import os
import signal
import socket

import pytest

from gateway.config.load import load
from gateway.mock import script as say
from gateway.server import sockets, systemd
from gateway.server.reload import Reloader
from tests.conftest import client_key, provider
from tests.processes import Served


class Manager:
    """The socket on which systemd listens."""

    def __init__(self, path):
        self.way = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.way.bind(path)
        self.way.setblocking(False)

    def heard(self):
        told = []
        while True:
            try:
                told.append(self.way.recv(4096).decode())
            except BlockingIOError:
                return told

    async def until(self, text):
        told = []
        async with asyncio.timeout(20):
            while text not in told:
                told += self.heard()
                await asyncio.sleep(0.02)
        return told


@pytest.fixture
def manager(tmp_path, monkeypatch):
    made = Manager(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    yield made
    made.way.close()


def test_without_a_manager_nothing_is_said(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not systemd.notify(systemd.READY)


def test_a_manager_that_is_gone_is_no_failure(monkeypatch, tmp_path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    assert not systemd.notify(systemd.READY)


def test_a_manager_that_does_not_read_is_not_waited_for(manager):
    while systemd.notify(systemd.WATCHDOG):
        pass


async def test_the_loop_says_that_it_turns(manager):
    dog = systemd.Watchdog(0.01)
    dog.start()
    await asyncio.sleep(0.1)
    dog.stop()
    assert manager.heard().count("WATCHDOG=1") > 2
    await asyncio.sleep(0.03)
    assert manager.heard() == []


def test_the_watchdog_is_fed_twice_in_its_time_and_only_by_whom_it_means():
    assert systemd.watchdog_s({"WATCHDOG_USEC": "30000000"}) == 15
    assert systemd.watchdog_s({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}) == 15
    assert systemd.watchdog_s({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}) == 0
    assert systemd.watchdog_s({}) == systemd.watchdog_s({"WATCHDOG_USEC": "soon"}) == 0


def test_sockets_are_taken_only_where_they_are_meant_for_this_process():
    me = str(os.getpid())
    assert systemd.given({"LISTEN_PID": me, "LISTEN_FDS": "2"}) == [3, 4]
    assert systemd.given({"LISTEN_PID": "1", "LISTEN_FDS": "2"}) == []
    assert systemd.given({"LISTEN_PID": me, "LISTEN_FDS": "x"}) == systemd.given({}) == []


def test_inherited_sockets_are_sorted_by_family_and_the_environment_forgets_them(monkeypatch, tmp_path):
    tcp, unix = socket.create_server(("127.0.0.1", 0)), sockets.bound_unix(str(tmp_path / "s"))
    address = tcp.getsockname()
    monkeypatch.setenv(sockets.INHERITED, f"{unix.detach()},{tcp.detach()}")
    found = sockets.inherited()
    assert [one.getsockname() for one in found.all()] == [address, str(tmp_path / "s")]
    assert not any(os.get_inheritable(one.fileno()) for one in found.all())
    assert sockets.INHERITED not in os.environ and not sockets.inherited().given
    found.close()


def test_a_socket_file_of_a_dead_process_is_replaced_and_another_file_is_not(tmp_path):
    path = str(tmp_path / "s")
    for _ in range(2):
        sockets.bound_unix(path).close()
    (tmp_path / "file").write_text("precious")
    with pytest.raises(OSError):
        sockets.bound_unix(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "precious"


async def test_a_reload_is_told_with_its_moment_and_ends_with_ready_also_when_refused(gateway, upstream, tmp_path, manager):
    await gateway(client_key() + provider(await upstream(say.reply())))
    file = tmp_path / "gateway.toml"
    reloader = Reloader(gateway.listener, lambda: load(file, {}), file)
    await reloader.reload()
    file.write_text("[server]\nprot = 1\n")
    await reloader.reload()
    told = manager.heard()
    assert [text.partition("\n")[0] for text in told] == ["RELOADING=1", "READY=1"] * 2
    assert int(told[0].partition("MONOTONIC_USEC=")[2]) > 0


async def test_a_process_tells_its_life(upstream, tmp_path, manager):
    served = Served(tmp_path, client_key() + provider(await upstream(say.reply())), "--port", "0",
                    NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="200000")
    try:
        await manager.until("READY=1")
        await manager.until("WATCHDOG=1")
        served.signal(signal.SIGHUP)
        assert any(text.startswith("RELOADING=1") for text in await manager.until("READY=1"))
        served.signal(signal.SIGTERM)
        await manager.until("STOPPING=1")
        assert await served.ended() == 0
    finally:
        served.end()
