"""TLS, straight and through a proxy: who is believed, which sessions are offered again, and what goes wrong in a tunnel."""
import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.core.errors import GatewayError
from gateway.mock import script as s
from gateway.mock.upstream import Upstream
from gateway.upstream.h1.tls import resuming
from gateway.upstream.h1.transport import H1Transport
from gateway.upstream.transport import Outgoing, Timeouts

Certificate = tuple[str, ssl.SSLContext]
END = b"\r\n\r\n"


def call(up: Upstream, **changed: Any) -> Outgoing:
    fields: dict[str, Any] = {"method": "POST", "url": f"https://localhost:{up.port}/v1", "headers": {}, "body": b"{}",
                              "timeouts": Timeouts(connect_s=2)}
    return Outgoing(**{**fields, **changed})


async def read(transport: H1Transport, out: Outgoing) -> bytes:
    return await (await transport.send(out)).read(100_000)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_the_second_handshake_is_a_short_one(certificate: Certificate, newest: ssl.TLSVersion) -> None:
    path, server = certificate
    context = resuming(True, path)
    context.maximum_version = newest
    transport, reused = H1Transport(tls=context), []
    async with Upstream(s.reply("x")) as plain, Upstream(s.reply("hello"), tls=server) as up:
        for _ in range(3):
            assert b"hello" in await read(transport, call(up))
            (origin,) = transport._pool._idle
            (conn,) = origin.idle
            assert conn.transport is not None
            spoken = conn.transport.get_extra_info("ssl_object")
            reused.append(spoken.session_reused)
            assert spoken.version() == newest.name.replace("_", ".")
            up.drop_idle()
            await up.until(lambda: up.open_connections == 0)
        assert plain.requests == []
    assert reused == [False, True, True]
    await transport.close()


async def test_large_bodies_pass_through_tls(certificate: Certificate) -> None:
    path, server = certificate
    transport = H1Transport(tls=resuming(True, path))
    body = bytes(range(256)) * 8_000
    async with Upstream(s.reply("x" * 900_000), tls=server) as up:
        assert len(await (await transport.send(call(up, body=body))).read(1 << 20)) > 900_000
        assert up.requests[0].body == body
    await transport.close()


# -- through a proxy

class Tunnel:
    """A proxy that understands CONNECT. ``answer``: what it says before it passes bytes on."""

    def __init__(self, port: int, answer: bytes) -> None:
        self.port = port
        self.answer = answer
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(END))
        writer.write(self.answer)
        if not self.answer.startswith(b"HTTP/1.1 200") or self.answer[-1:] != b"\n":
            await writer.drain()
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer))


async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            sink.write(data)
    except ConnectionError:
        pass
    sink.close()


@asynccontextmanager
async def tunnel(port: int, answer: bytes = b"HTTP/1.1 200 Connection established" + END) -> AsyncIterator[tuple[Tunnel, str]]:
    proxy = Tunnel(port, answer)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    yield proxy, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def test_a_tunnel_is_kept_like_any_connection_and_hides_the_request(certificate: Certificate) -> None:
    path, server = certificate
    transport = H1Transport(tls=resuming(True, path))
    async with Upstream(s.reply("far"), tls=server) as up:
        async with tunnel(up.port) as (proxy, address):
            out = call(up, headers={"Authorization": "Bearer k"}, proxy=f"http://user:p%40ss@{address}")
            for _ in range(2):
                assert b"far" in await read(transport, out)
            host = f"localhost:{up.port}"
            assert proxy.heads == [f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic dXNlcjpwQHNz".encode() + END]
            assert "proxy-authorization" not in up.requests[0].headers and up.connections == 1
            with pytest.raises(GatewayError, match="certificate not accepted"):
                await transport.send(call(up, url=f"https://127.0.0.1:{up.port}/", proxy=f"http://{address}"))
            assert transport.open_connections() == 0
            await transport.close()
            await up.until(lambda: up.open_connections == 0)


@pytest.mark.parametrize(("answer", "words"), [
    (b"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic" + END, "proxy answered 407"),
    (b"HTTP/1.1 200 OK\r\nX: y" + END + b"and more", "proxy: the answer is not HTTP"),
    (b"SSH-2.0-x" + END, "proxy: the answer is not HTTP"),
    (b"HTTP/1.1 502 Bad" + b"x" * 20_000, "proxy: the answer is not HTTP"),
    (b"HTTP/1.1 4", "proxy: connection closed before an answer came"),
])
async def test_what_a_proxy_says_instead_is_told(answer: bytes, words: str) -> None:
    transport = H1Transport()
    async with tunnel(1, answer) as (_, address):
        out = Outgoing(method="POST", url="https://upstream.invalid/", headers={}, body=b"", timeouts=Timeouts(connect_s=2),
                       proxy=f"http://{address}")
        with pytest.raises(GatewayError, match=f"^{words}$") as caught:
            await transport.send(out)
        assert caught.value.kind == "transport" and transport.open_connections() == 0
    await transport.close()


async def test_a_proxy_that_says_nothing_has_the_time_of_a_connection(certificate: Certificate) -> None:
    async with Upstream(s.hang()) as proxy:
        transport = H1Transport()
        out = Outgoing(method="POST", url="https://upstream.invalid/", headers={}, body=b"", timeouts=Timeouts(connect_s=0.05),
                       proxy=f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(GatewayError, match="no connection within 0.05 s"):
            await transport.send(out)
        assert transport.open_connections() == 0
        await proxy.until(lambda: proxy.open_connections == 0)
        await transport.close()


async def test_a_proxy_spoken_to_over_tls_is_the_other_client_s() -> None:
    transport = H1Transport()
    out = Outgoing(method="POST", url="http://upstream.invalid/", headers={}, body=b"", timeouts=Timeouts(connect_s=2),
                   proxy="https://127.0.0.1:1")
    with pytest.raises(GatewayError, match="proxy: connection refused"):
        await transport.send(out)
    assert transport.plain._pools
    await transport.close()


async def test_a_connection_that_we_closed_spoils_no_session(certificate: Certificate) -> None:
    path, server = certificate
    transport, reused = H1Transport(tls=resuming(True, path)), []
    async with Upstream(s.reply("hello"), tls=server) as up:
        for _ in range(3):
            await read(transport, call(up))
            (origin,) = transport._pool._idle
            (conn,) = origin.idle
            assert conn.transport is not None
            reused.append(conn.transport.get_extra_info("ssl_object").session_reused)
            conn.drop()
            await up.until(lambda: up.open_connections == 0)
    assert reused == [False, True, True]
    await transport.close()
