"""A message for an SSE stream arrives at any worker and reaches the one that holds the stream, with who sent it and what he may do."""
import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest

from gateway.mcp import letters
from tests.conftest import client_key
from tests.unit.mcp.conftest import ADMIN_KEY, ON, bearer

READER = "gw-reader-0123456789"
SCOPED = client_key("reader", READER, mcp_scopes='["read:models"]')
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(n, tool):
    return {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": tool, "arguments": {}}}


@pytest.fixture
async def two(gateway):
    """Two gateways that ask each other, as workers do: their addresses, and their letters."""
    first = await gateway(ON + SCOPED), gateway.listener.mcp.letters
    second = await gateway(ON + SCOPED), gateway.listener.mcp.letters

    def each(of):
        async def others(letter):
            return [await of.take(msgspec.msgpack.decode(msgspec.msgpack.encode(letter)))], True
        return others
    first[1].others, second[1].others = each(second[1]), each(first[1])
    return first, second


class Stream:
    """One client's stream: ``path`` is where it posts to, ``next()`` what it hears."""

    def __init__(self, answer):
        self._lines = answer.content
        self.path = ""

    async def next(self):
        async with asyncio.timeout(5):
            while not (line := (await self._lines.readline()).decode()).startswith("data: "):
                assert line
        return line.removeprefix("data: ").strip()


@asynccontextmanager
async def opened(session, url, key):
    async with session.get(f"{url}/mcp/sse", headers=bearer(key)) as answer:
        stream = Stream(answer)
        stream.path = await stream.next()
        yield stream


async def posted(session, url, path, body, key):
    async with session.post(url + path, json=body, headers=bearer(key)) as answer:
        return answer.status, await answer.text()


async def test_it_reaches_the_stream_wherever_it_was_posted(two):
    (here, _), (there, _) = two
    async with aiohttp.ClientSession() as session, opened(session, here, ADMIN_KEY) as stream:
        assert await posted(session, there, stream.path, HELLO, ADMIN_KEY) == (202, "Accepted")
        assert json.loads(await stream.next())["result"]["serverInfo"]["name"] == "gateway"
        assert (await posted(session, here, stream.path, READY, ADMIN_KEY))[0] == 202
        assert (await posted(session, there, stream.path, call(1, "get_health"), ADMIN_KEY))[0] == 202
        told = json.loads(await stream.next())
        assert told["id"] == 1 and not told["result"].get("isError")


async def test_the_key_and_its_scopes_travel_along(two):
    (here, _), (there, _) = two
    async with aiohttp.ClientSession() as session, opened(session, here, READER) as stream:
        for body in (HELLO, READY):
            assert (await posted(session, there, stream.path, body, READER))[0] == 202
        await stream.next()
        assert (await posted(session, there, stream.path, call(1, "get_config"), READER))[0] == 202
        assert "needs read:config, which your key does not hold" in await stream.next()
        for key, status in ((ADMIN_KEY, 404), ("", 401)):
            assert (await posted(session, there, stream.path, call(2, "list_models"), key))[0] == status


async def test_a_session_that_nobody_holds_is_told_as_that(two):
    (here, _), (there, _) = two
    async with aiohttp.ClientSession() as session:
        async with opened(session, here, ADMIN_KEY) as stream:
            path = stream.path
        for url in (here, there):
            async with asyncio.timeout(5):
                while (told := await posted(session, url, path, call(1, "get_health"), ADMIN_KEY))[0] == 202:
                    await asyncio.sleep(0.01)
            assert told[0] == 404 and "Open a new one at /mcp/sse" in json.loads(told[1])["error"]["message"]


async def test_where_a_worker_does_not_answer_nobody_says_that_the_session_is_gone(two):
    (here, of), _ = two

    async def silent(letter):
        return [], False
    of.others = silent
    async with aiohttp.ClientSession() as session:
        path = "/mcp/messages?session_id=" + "0" * 32
        async with session.post(here + path, json=READY, headers=bearer(ADMIN_KEY)) as answer:
            assert answer.status == 503 and answer.headers["Retry-After"] == "1"


async def test_a_key_that_the_other_worker_does_not_know_opens_nothing_there(two):
    _, (_, of) = two
    letter = {"query": b"session_id=0", "kind": "application/json", "body": b"", "caller": "mcp:stranger", "scopes": ["read:models"]}
    assert (await of.take(letter))["status"] == 404


async def test_clients_that_do_not_read_are_not_waited_for_without_end(two, monkeypatch):
    (here, of), _ = two
    monkeypatch.setattr(letters, "MAX_UNDER_WAY", 2)
    release = asyncio.Event()

    async def full(scope, receive, send):
        await send({"type": "http.response.start", "status": 202})
        await send({"type": "http.response.body", "body": b"Accepted"})
        await release.wait()
    of.app = full
    async with aiohttp.ClientSession() as session:
        path = "/mcp/messages?session_id=" + "0" * 32
        assert [(await posted(session, here, path, READY, ADMIN_KEY))[0] for _ in range(3)] == [202, 202, 503]
        release.set()


async def test_what_fails_inside_is_told_without_its_inside(two, caplog):
    (here, of), _ = two

    async def broken(scope, receive, send):
        raise RuntimeError("the inside")
    of.app = broken
    async with aiohttp.ClientSession() as session:
        status, text = await posted(session, here, "/mcp/messages?session_id=" + "0" * 32, READY, ADMIN_KEY)
    assert status == 500 and "the inside" not in text and "the inside" in caplog.text
