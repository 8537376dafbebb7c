"""What may a client, or an upstream, make the gateway hold, and for how long? A bounded part, whoever swells or stalls it."""
import asyncio
import gzip
import json
import socket
import zlib
from types import SimpleNamespace

import brotli
import pytest

from gateway.mock import script as say
from gateway.server import http as server
from gateway.upstream.encoding import MAX_LAYERS
from tests.conftest import KEY, client_key, provider
from tests.fuzz.door import Socket
from tests.talk import AUTH, ask

LIMIT = 1 << 20
SMALL = f"[server]\nmax_body_bytes = {LIMIT}\n"
ZEROS = b'{"model":"m","x":"' + bytes(64 << 20)
SURFACES = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1beta/models/m:generateContent",
            "/api/chat", "/api/generate", "/v1/messages/count_tokens", "/v1/rerank"]


def zstd(data):
    return pytest.importorskip("backports.zstd").compress(data)


BOMBS = {"gzip": gzip.compress, "deflate": zlib.compress, "br": lambda data: brotli.compress(data, quality=1), "zstd": zstd,
         "gzip, gzip": lambda data: gzip.compress(gzip.compress(data)), "br, gzip": lambda data: gzip.compress(brotli.compress(data, quality=1)),
         "gzip, br, zstd": lambda data: zstd(brotli.compress(gzip.compress(data, 1), quality=1))}


@pytest.mark.parametrize("coding", BOMBS)
async def test_a_body_that_swells_is_refused_at_the_bound(gateway, upstream, coding):
    up = await upstream(say.reply("hello"))
    base = await gateway(SMALL + client_key() + provider(up))
    packed = BOMBS[coding](ZEROS)
    assert len(packed) < LIMIT
    answer = await ask(base, raw=packed, headers=AUTH | {"Content-Encoding": coding})
    assert answer.status in (400, 413) and not up.requests
    assert (await ask(base)).status == 200


async def test_codings_on_codings_end_somewhere(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    data = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
    for _ in range(MAX_LAYERS):
        data = gzip.compress(data)
    layers = ", ".join(["gzip"] * MAX_LAYERS)
    assert (await ask(base, raw=data, headers=AUTH | {"Content-Encoding": layers})).status == 200
    assert (await ask(base, raw=gzip.compress(data), headers=AUTH | {"Content-Encoding": layers + ", gzip"})).status == 415


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, gzip"])
async def test_an_answer_that_swells_is_its_provider_s_failure(gateway, upstream, coding, stream):
    packed = BOMBS[coding](b'{"choices":[{"message":{"content":"' + bytes(64 << 20))
    kind = "text/event-stream" if stream else "application/json"
    bomb = await upstream(say.Script([say.Head(200, {"Content-Type": kind, "Content-Encoding": coding}), say.Send(packed), say.End()]))
    up = await upstream(say.stream("hello") if stream else say.reply("hello"))
    answer = await ask(await gateway(client_key() + provider(bomb, "bomb") + provider(up)), stream=stream)
    assert answer.status == 200 and b"hello" in answer.body and "bomb/m" in str(answer.headers)


DEEP = b"[" * 100_000
ODD = {
    "depth": b'{"model":"m","messages":' + DEEP, "depth that ends": b'{"model":"m","messages":' + DEEP + b"]" * 100_000 + b"}",
    "objects": b'{"model":"m","messages":[' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"]}",
    "digits": b'{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":' + b"9" * 100_000 + b"}",
    "an exponent": b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e999999999}',
    "a fraction": b'{"model":"m","messages":[{"role":"user","content":"x"}],"seed":0.' + b"1" * 100_000 + b"}",
    "a schema": json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], "response_format": {
        "type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": "DEEP"}}}).encode().replace(
            b'"DEEP"', b'{"type":"object","properties":{"a":' * 3_000 + b"{}" + b"}}" * 3_000),
    "a tool": json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {
        "name": "f", "parameters": "DEEP"}}]}).encode().replace(b'"DEEP"', b'{"items":' * 5_000 + b"{}" + b"}" * 5_000),
    "many keys": b'{"model":"m","messages":[],' + b",".join(b'"k%d":1' % n for n in range(120_000)) + b"}",
    "many messages": b'{"model":"m","messages":[' + b",".join([b'{"role":"user","content":"x"}'] * 40_000) + b"]}",
    "one key often": b'{"model":"m",' + b'"messages":[],' * 50_000 + b'"n":1}', "nothing": b"", "blanks": b" " * 900_000, "a nul": b"{\0}",
    "half a text": b'{"model":"m","messages":"' + b"a" * 900_000, "utf-16": '{"model":"m"}'.encode("utf-16"),
}


@pytest.mark.parametrize("path", SURFACES)
async def test_json_of_any_shape_is_answered_by_its_surface(gateway, upstream, path):
    """Refused, or passed on to an upstream whose affair it is; never a failure of ours, and the next request is served."""
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    for name, raw in ODD.items():
        answer = await ask(base, raw=raw, path=path)
        assert answer.status not in (500, 501) and answer.json is not None, (name, answer.body[:300])
    assert (await ask(base)).status == 200 and gateway.listener.parts.inflight.count == 0


# ------------------------------------------------------------------ whoever is slow
async def dialled(base, receive=0):
    host, port = base.removeprefix("http://").split(":")
    sock = socket.socket()
    if receive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
    return sock


HEAD = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n".encode()


@pytest.mark.parametrize("sent", [b"", b"POST", HEAD, HEAD + b"X-A: "])
async def test_a_head_that_never_ends_is_given_up_however_it_trickles(gateway, upstream, monkeypatch, sent):
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    base, loop = await gateway(client_key() + provider(await upstream(say.reply("hello")))), asyncio.get_running_loop()
    sock = await dialled(base)
    await loop.sock_sendall(sock, sent)

    async def trickle():
        while True:
            await asyncio.sleep(0.02)
            await loop.sock_sendall(sock, b"a")
    task = asyncio.create_task(trickle()) if sent else None
    async with asyncio.timeout(20):
        try:
            while await loop.sock_recv(sock, 4_096):
                pass
        except ConnectionError:
            pass
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
    sock.close()


async def test_a_body_that_trickles_is_given_up_although_it_never_stalls(gateway, upstream, monkeypatch):
    monkeypatch.setattr("gateway.pipeline.deliver.UPLOAD_IDLE_S", 0.3)
    up = await upstream(say.reply("hello"))
    base, loop = await gateway(client_key() + provider(up)), asyncio.get_running_loop()
    sock = await dialled(base)
    await loop.sock_sendall(sock, HEAD + b"Content-Length: 100000\r\n\r\n{")
    answered = asyncio.create_task(loop.sock_recv(sock, 4_096))
    async with asyncio.timeout(20):
        while not answered.done():
            await asyncio.sleep(0.02)
            await loop.sock_sendall(sock, b" ")
    assert b" 408 " in answered.result() and not up.requests
    sock.close()


async def streaming(base):
    """A connection with little room that has asked for a stream."""
    sock = await dialled(base, receive=4_096)
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
    await asyncio.get_running_loop().sock_sendall(sock, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return sock


async def test_a_client_that_stops_reading_is_left_and_held_a_bounded_part(gateway, upstream, monkeypatch):
    monkeypatch.setattr(server, "STALL_S", 0.4)
    up = await upstream(say.stream(*["x" * 8_000] * 4_000))
    base = await gateway(client_key() + provider(up))
    sock = await streaming(base)
    parts, most = gateway.listener.parts, 0
    async with asyncio.timeout(20):
        while not up.requests or parts.inflight.count:
            await asyncio.sleep(0.01)
            most = max([most, *(one.transport.get_write_buffer_size() for one in gateway.listener._server.connections if one.transport)])
    assert 0 < most < 1 << 20
    await up.until(lambda: not up.open_connections, 5.0)
    assert parts.transports["network"].open_connections() == 0
    sock.close()


class Taking(Socket):
    """Its client takes what ``taken`` says between two looks."""

    def __init__(self, *sizes):
        super().__init__()
        self.sizes = list(sizes)

    def get_write_buffer_size(self):
        return self.sizes.pop(0)


class Later:
    """A loop whose time comes when the test says so."""

    def __init__(self):
        self.calls = []

    def call_later(self, _seconds, call, *given):
        self.calls.append((call, given))


@pytest.mark.parametrize(("sizes", "left"), [
    ((99_999, 99_999), True), ((99_999, 99_998), True), ((99_999, 95_904), True), ((99_999, 90_000, 89_990), True),
    ((99_999, 120_000), True), ((99_999, 95_903), False), ((99_999, 90_000, 80_000, 70_000), False)])
def test_who_takes_enough_is_waited_for_and_a_byte_now_and_then_is_not(sizes, left):
    protocol = server.HttpProtocol.__new__(server.HttpProtocol)
    protocol.transport, protocol._loop, protocol._current_request = Taking(*sizes), Later(), None
    protocol._watch(-1)
    for _ in sizes[1:]:
        call, given = protocol._loop.calls.pop()
        call(*given)
    assert protocol.transport.closed == left and not protocol.transport.sizes


@pytest.mark.parametrize(("written", "left"), [(30_000, False), (20_001, True)])
def test_what_is_written_meanwhile_does_not_count_against_the_client(written, left):
    protocol = server.HttpProtocol.__new__(server.HttpProtocol)
    writer = SimpleNamespace(output_size=500)
    protocol.transport, protocol._loop = Taking(99_999, 120_000), Later()
    protocol._current_request = SimpleNamespace(writer=writer)
    protocol._watch(-1)
    writer.output_size += written
    call, given = protocol._loop.calls.pop()
    call(*given)
    assert protocol.transport.closed == left


async def test_a_client_that_takes_a_byte_now_and_then_is_left(gateway, upstream, monkeypatch):
    monkeypatch.setattr(server, "STALL_S", 0.4)
    up = await upstream(say.stream(*["x" * 8_000] * 4_000))
    base, loop = await gateway(client_key() + provider(up)), asyncio.get_running_loop()
    sock = await streaming(base)
    async with asyncio.timeout(20):
        while not up.requests or gateway.listener.parts.inflight.count:
            await asyncio.sleep(0.05)
            try:
                await loop.sock_recv(sock, 1)
            except ConnectionError:
                break
    await up.until(lambda: not up.open_connections, 5.0)
    sock.close()
