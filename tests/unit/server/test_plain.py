"""A plain request is answered as aiohttp's parser would have it, however its bytes are cut; what is not plain is left to aiohttp."""
import asyncio
import json

import pytest

from gateway.mock import script as say
from gateway.server.plain import Head
from gateway.server.succession import PATHS
from tests.conftest import KEY, client_key, provider

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def asking(body=BODY, *, path="/v1/chat/completions", version="1.1", length=None, more=""):
    return (f"POST {path} HTTP/{version}\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n{more}\r\n").encode() + body


async def answers(base_url, pieces, n=1):
    """The bodies of ``n`` answers to what is sent piece by piece."""
    host, port = base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0.01)
    found = []
    for _ in range(n):
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        length = next(int(line[15:]) for line in head.decode().lower().split("\r\n") if line.startswith("content-length:"))
        found.append((int(head.split()[1]), json.loads(await reader.readexactly(length))))
    writer.close()
    return found


def test_what_a_plain_request_says_is_read():
    path, headers, n_body, at = Head().read(asking())
    assert path in PATHS and headers["authorization"] == f"Bearer {KEY}" and n_body == len(BODY) and asking()[at:] == BODY


@pytest.mark.parametrize("data", [
    asking(version="1.0"), asking(more="Connection: close\r\n"), asking(more="Connection: upgrade\r\nUpgrade: h2c\r\n"),
    asking(more="Expect: 100-continue\r\n"), asking(more="Transfer-Encoding: chunked\r\n"), asking(more="host: other\r\n"),
    asking(more=f"Content-Length: {len(BODY)}\r\n"), asking(length="+5"), asking(length="0x5"), asking(length=""), asking(length="٣"),
    asking() + b"POST / HTTP/1.1\r\n", asking() + asking(), asking()[:40], asking(more="X-A: b\r\n c\r\n"), asking(more="X-A: b\n"),
    asking().replace(b"Host", b"X-Length: 5\r\nHost"), asking().replace(b"Content-Length: ", b"Content-Length:"),
    asking().replace(b"Content-Length: ", b"X-Content-Length: "), asking(more="X A: b\r\n"), asking(more="X-A: \0\r\n"), asking(more=f"X-A: {'b' * 9_000}\r\n"), b"", b"\r\n\r\n", b"\x16\x03\x01",
])
def test_what_is_not_plain_is_left_to_aiohttp(data):
    assert Head().read(data) is None


def test_a_reader_forgets_what_it_could_not_read():
    head = Head()
    for data in (asking(more="Expect: 100-continue\r\n"), asking()[:-5], asking()):
        found = head.read(data)
    assert found is not None and found[0] == "/v1/chat/completions" and "expect" not in found[1]


def test_heads_that_differ_in_their_length_alone_are_read_once_and_all_others_anew():
    head = Head()
    first, longer = head.read(asking()), head.read(asking(BODY + b"  "))
    assert longer[1] is first[1] and longer[2] == first[2] + 2
    other = head.read(asking(more="X-Session-Id: 7\r\n"))
    assert other[1]["x-session-id"] == "7" and "x-session-id" not in head.read(asking())[1]
    assert head.read(asking(path="/v1/messages"))[0] == "/v1/messages"


@pytest.mark.parametrize("cut", [1, 60, 140, len(asking()) - len(BODY) - 1, len(asking()) - len(BODY), len(asking()) - 3])
async def test_a_request_in_two_reads_is_one(gateway, upstream, cut):
    up = await upstream(say.reply("hello"))
    data = asking()
    [(status, body)] = await answers(await gateway(client_key() + provider(up)), [data[:cut], data[cut:]])
    assert (status, body["choices"][0]["message"]["content"]) == (200, "hello")


async def test_the_next_request_may_come_behind_the_body_of_the_one_before(gateway, upstream):
    up = await upstream([say.reply("hello"), say.reply("again")])
    data = asking()
    found = await answers(await gateway(client_key() + provider(up)), [data[:-5], data[-5:] + data], 2)
    assert [body["choices"][0]["message"]["content"] for _, body in found] == ["hello", "again"]


async def test_requests_of_one_connection_do_not_mix(gateway, upstream):
    up = await upstream([say.reply(f"answer {i}") for i in range(4)])
    base = await gateway(client_key() + provider(up))
    host, port = base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for i, data in enumerate([asking(), asking(more="X-Request-ID: second\r\n"), asking(b"{}"), asking()]):
        writer.write(data)
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)).decode()
        length = next(int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        await reader.readexactly(length)
        assert ("second" in head) == (i == 1) and head.startswith("HTTP/1.1 400" if i == 2 else "HTTP/1.1 200")
    writer.close()


async def test_a_client_that_leaves_within_its_body_leaves_nothing_behind(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    host, port = base.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(asking()[:-5])
    await asyncio.sleep(0.05)
    writer.close()
    await asyncio.sleep(0.05)
    [(status, _)] = await answers(base, [asking()])
    assert status == 200 and len(up.requests) == 1


async def test_a_body_above_the_bound_is_refused_before_it_has_come(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base = await gateway("[server]\nmax_body_bytes = 2000\n" + client_key() + provider(up))
    [(status, body)] = await answers(base, [asking(b"x" * 10, length=4_000)])
    assert status == 413 and body["error"]["message"]


async def test_a_large_body_in_many_reads_holds_the_connection_back_and_arrives(gateway, upstream):
    up = await upstream(say.reply("hello"))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "word " * 400_000}]}).encode()
    [(status, _)] = await answers(await gateway(client_key() + provider(up)), [asking(body)])
    assert status == 200 and len(up.requests[0].json()["messages"][0]["content"]) == 2_000_000
