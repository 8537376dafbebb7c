"""Does any sequence of bytes make two readers see two different requests? Over real sockets, through the whole server.

The same conversations go to a gateway that takes plain requests from their bytes and to one that leaves all of them to aiohttp:
what is asked of the upstream, and every answer, are the same, and nothing that hides in a body or a header is ever a request.
"""
import asyncio
import json
import re

import pytest

from gateway.mock import script as say
from gateway.server import succession
from gateway.server.plain import MAX_FIELDS, Head
from tests.conftest import client_key, provider
from tests.fuzz.door import CONVERSATIONS, GET, asking, running, talk

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
KEYED = b"Authorization: Bearer gw-test-key"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
# Said by a request that hides where none may be.
HIDDEN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + KEYED + b"\r\nX-Request-ID: hidden\r\nContent-Length: 2\r\n\r\n{}"


def keyed(data: bytes) -> bytes:
    """The conversation as somebody would have it who may ask, with bodies that can be answered."""
    data = data.replace(b"Authorization: Bearer k", KEYED).replace(b'{"model":"m"}', BODY)
    return data.replace(b"Content-Length: 13", b"Content-Length: %d" % len(BODY)).replace(b"0013", b"00%d" % len(BODY))


async def answered(base_url: str, data: bytes) -> tuple[list[int], bytes]:
    """The statuses, and all bytes, of what is said to one connection whose client then sends no more."""
    host, port = base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    got = b""
    try:
        writer.write(data)
        async with asyncio.timeout(5):
            while piece := await asyncio.wait_for(reader.read(65_536), 0.2):
                got += piece
    except (TimeoutError, ConnectionError):
        pass                                         # it stays open, or was closed with bytes unread
    writer.close()
    return [int(status) for status in STATUS.findall(got)], got


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_both_readers_see_the_same_requests_however_they_are_cut(name):
    data = CONVERSATIONS[name]
    halves = [part for part in (data[:len(data) // 2], data[len(data) // 2:]) if part]
    for reads in ([data], halves, [data[i:i + 1] for i in range(min(len(data), 400))]):
        mine, theirs = (running().run_until_complete(talk(reads, plain, True)) for plain in (True, False))
        assert mine[:3] == theirs[:3]


def test_that_comparison_compares():
    """Plain requests are taken by our reader, and one that it read wrongly would be found."""
    (heard, n_answers, stays, n_taken), (_, _, _, none) = (running().run_until_complete(talk([asking()], plain, True))
                                                          for plain in (True, False))
    assert (len(heard), n_answers, stays, n_taken, none) == (1, 1, True, 1, 0)


async def through(gateway, upstream, monkeypatch, plain):
    monkeypatch.setattr(succession, "PATHS", succession.PATHS if plain else frozenset())
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    found = {}
    for name, data in CONVERSATIONS.items():
        before = len(up.requests)
        statuses, got = await answered(base, keyed(data))
        found[name] = statuses, [asked.body for asked in up.requests[before:]]
        assert all(status in (100, 200, 400, 401, 403, 404, 405, 408, 411, 413, 414, 421) for status in statuses), (name, statuses)
        assert statuses.count(200) - (b"GET" in data) * (b'"object":"list"' in got) == len(up.requests) - before, name
        assert b"Traceback" not in got and b"aiohttp" not in got, name
    assert gateway.listener.parts.inflight.count == 0
    return found


async def test_the_whole_server_answers_the_same_over_both(gateway, upstream, monkeypatch):
    mine, theirs = [await through(gateway, upstream, monkeypatch, plain) for plain in (True, False)]
    assert mine == theirs
    assert mine["one"][0] == [200] and mine["two"][0][0] == 200 and mine["length and chunks"] == mine["no version"] == ([400], [])


@pytest.mark.parametrize("more", [
    "Transfer-Encoding: chunked\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: xchunked\r\n", "X: a\r\n Content-Length: 0\r\n",
    "X: a\nContent-Length: 0\r\n", "X: a\rContent-Length: 0\r\n", "Content-Length : 0\r\n", "Content-Length\0: 0\r\n"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
async def test_a_request_inside_a_body_is_never_answered(gateway, upstream, more, path):
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    data = keyed(asking(BODY[:-1] + b" " * 10 + b"\r\n\r\n" + HIDDEN, path=path, more=more))
    _, got = await answered(base, data)
    assert b"hidden" not in got and not up.requests


@pytest.mark.parametrize("more", ["".join(f"X-{n}: 1\r\n" for n in range(MAX_FIELDS)), "X: a\0b\r\n", "X: a\x0bb\r\n", ": a\r\n"])
def test_what_aiohttp_refuses_is_not_plain(more):
    assert Head().read(asking(more=more)) is None


def test_a_request_without_a_host_is_not_plain():
    """https://www.rfc-editor.org/rfc/rfc9112#section-3.2: it is refused. Who asks from a browser is told by it, too."""
    assert Head().read(asking().replace(b"Host: localhost\r\n", b"")) is None and GET


def test_blanks_around_a_value_are_not_of_it():
    found = Head().read(asking(more="X-Session-Id: \t 7 \t\r\n"))
    assert found is not None and found[1]["x-session-id"] == "7"
