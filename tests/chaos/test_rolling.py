"""A gateway is replaced under load and nobody notices: no connection is refused, no stream breaks."""
import asyncio
import signal
import socket

import aiohttp
import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.processes import Served
from tests.talk import ASK, AUTH, ask

STREAMS = 200
WORDS = [f"{n} " for n in range(12)]


@pytest.fixture
def serve(tmp_path):
    """``serve(config, …)``: a process; it and its successors end with the test."""
    started = []

    def start(config, *options, **more):
        started.append(Served(tmp_path, config, *options, **more))
        return started[-1]
    yield start
    for served in started:
        served.end()


async def whole(session, url):
    """One stream; what is missing of it, or ""."""
    try:
        async with session.post(url + "/v1/chat/completions", json={**ASK, "stream": True}, headers=AUTH) as got:
            body = await got.read()
    except (OSError, aiohttp.ClientError) as error:
        return f"{type(error).__name__}: {error}"
    if got.status != 200 or body.count(b"data: [DONE]") != 1 or b'"error"' in body or body.count(b'"content":"') < len(WORDS):
        return f"{got.status} {body[-300:]!r}"
    return ""


class Callers:
    """New requests all the time, each on a connection of its own or on a kept one."""

    def __init__(self, url):
        self.url, self.count, self.failures = url, 0, []

    async def run(self, n, kept):
        connector = aiohttp.TCPConnector(force_close=not kept)
        async with aiohttp.ClientSession(connector=connector) as session:
            while True:
                try:
                    async with session.post(self.url + "/v1/chat/completions", json={**ASK, "model": "quick"}, headers=AUTH) as got:
                        body = await got.json()
                    if got.status != 200:
                        self.failures.append(f"{got.status} {body}")
                except (OSError, aiohttp.ClientError) as error:
                    self.failures.append(f"{n} {type(error).__name__}: {error}")
                self.count += 1
                await asyncio.sleep(0.02)


async def test_a_hand_over_under_load_refuses_nobody_and_breaks_nothing(serve, upstream):
    slow, quick = await upstream(say.stream(*WORDS, delay_s=0.25)), await upstream(say.reply("at once"))
    served = serve(client_key() + provider(slow, "slow") + provider(quick, "quick", '["quick"]'), "--port", "0")
    url = await served.url()
    callers = Callers(url)
    calling = [asyncio.create_task(callers.run(n, kept=n % 2 == 0)) for n in range(4)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        streams = [asyncio.create_task(whole(session, url)) for _ in range(STREAMS)]
        await slow.until(lambda: slow.busy == STREAMS, 20)
        served.signal(signal.SIGUSR2)
        assert await served.url() == url, "the successor accepts at the same address"
        before = callers.count
        assert set(await asyncio.gather(*streams)) == {""}
    assert await served.ended() == 0, served.said()
    for task in calling:
        task.cancel()
    await asyncio.gather(*calling, return_exceptions=True)
    assert not callers.failures and callers.count > before > 0
    assert (await ask(url, stream=True)).text == "".join(WORDS), "by the successor"


async def test_a_successor_that_does_not_come_up_changes_nothing(serve, upstream, tmp_path):
    up = await upstream(say.stream("still here"))
    served = serve(client_key() + provider(up), "--port", "0")
    url = await served.url()
    (tmp_path / "gateway.toml").write_text("[server]\nprot = 1\n")
    served.signal(signal.SIGUSR2)
    async with asyncio.timeout(20):
        while "did not come up" not in served.said():
            await asyncio.sleep(0.05)
    assert (await ask(url, stream=True)).text == "still here"
    assert served.process.poll() is None


async def test_sockets_of_the_service_manager_outlive_a_restart(serve, upstream):
    up = await upstream(say.stream("hello"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        early = asyncio.create_task(ask(url, stream=True))       # waits in the queue for whoever comes
        for _ in range(2):
            served = serve(client_key() + provider(up), socket=listening.fileno())
            assert await served.url() == url
            assert (await early).text == "hello"
            served.signal(signal.SIGTERM)
            assert await served.ended() == 0
            early = asyncio.create_task(ask(url, stream=True))
        early.cancel()


async def test_a_socket_that_is_open_to_all_needs_a_client_key(serve, upstream):
    up = await upstream(say.stream("hello"))
    with socket.create_server(("0.0.0.0", 0)) as listening:
        served = serve(provider(up), socket=listening.fileno())
        assert await served.ended() == 2
        assert "auth.keys: " in served.said()
