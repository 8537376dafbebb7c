"""The units that are installed, in a real systemd: started by a connection, reloaded, watched, replaced, restarted and stopped."""
import asyncio
import socket

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.systemd import Manager
from tests.talk import ask


class Service:
    """``url``: where its socket listens; ``await does("reload")``: what systemctl says of it."""

    def __init__(self, manager, port):
        self.manager, self.url = manager, f"http://127.0.0.1:{port}"

    async def does(self, command):
        return await asyncio.to_thread(self.manager.ctl, command)

    async def shows(self, name):
        return await asyncio.to_thread(self.manager.shows, name)

    async def until(self, name, true):
        async with asyncio.timeout(20):
            while not true(found := await self.shows(name)):
                await asyncio.sleep(0.1)
        return found

    async def says(self, words):
        """They come to the log."""
        async with asyncio.timeout(20):
            while words not in self.manager.log.read_text():
                await asyncio.sleep(0.1)

    async def routed(self):
        return (await ask(self.url)).headers["X-Routed-Via"]


@pytest.fixture
async def service(tmp_path, upstream, stack):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    manager = await asyncio.to_thread(Manager, tmp_path, port)
    stack.push_async_callback(asyncio.to_thread, manager.end)
    made = Service(manager, port)
    made.up = await upstream(say.reply("here"))
    manager.config.write_text(client_key() + provider(made.up, "first"))
    assert await made.does("start gateway.socket") == (0, "")
    return made


@pytest.mark.timeout(120)
async def test_the_service_lives_as_its_units_say(service):
    assert await service.shows("ActiveState") == "inactive"
    assert await service.routed() == "first/m", "a connection starts it"
    assert (await service.shows("SubState"), await service.shows("StatusErrno")) == ("running", "0")
    first = await service.shows("MainPID")

    service.manager.config.write_text(client_key() + provider(service.up, "second"))
    assert (await service.does("reload gateway.service"))[0] == 0
    assert await service.until("SubState", "running".__eq__) and await service.routed() == "second/m"
    service.manager.config.write_text("[server]\nprot = 1\n")
    await service.does("reload gateway.service")
    await service.says("server.prot")
    assert await service.until("SubState", "running".__eq__) and await service.routed() == "second/m", "a bad file is refused"
    assert await service.shows("MainPID") == first
    service.manager.config.write_text(client_key() + provider(service.up, "second"))

    assert (await service.does("kill --kill-whom=main --signal=USR2 gateway.service"))[0] == 0
    second = await service.until("MainPID", lambda pid: pid not in ("0", first))
    assert await service.routed() == "second/m" and await service.shows("ActiveState") == "active", "replaced, not restarted"
    assert await service.shows("NRestarts") == "0"

    await service.does("kill --kill-whom=main --signal=STOP gateway.service")
    waiting = asyncio.create_task(service.routed())
    assert await service.until("NRestarts", lambda n: int(n) >= 1), "one that hangs is restarted"
    assert await waiting == "second/m", "and nobody was refused"
    third = await service.until("MainPID", lambda pid: pid not in ("0", second))

    answers = [asyncio.create_task(service.routed()) for _ in range(3)]
    assert (await service.does("restart gateway.service"))[0] == 0
    answers += [asyncio.create_task(service.routed()) for _ in range(3)]
    assert await asyncio.gather(*answers) == ["second/m"] * 6 and await service.shows("MainPID") != third

    assert (await service.does("stop gateway.socket gateway.service"))[0] == 0
    assert (await service.shows("Result"), await service.shows("ExecMainStatus")) == ("success", "0")
