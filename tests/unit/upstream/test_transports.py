"""Bytes to an upstream and back: exactly ours on the way out, opened and bounded on the way in."""
import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from typing import Any

import brotli
import pytest
import uvloop

from gateway.core.errors import GatewayError
from gateway.mock import script as s
from gateway.mock.upstream import Asked, Upstream
from gateway.upstream.transport import Outgoing, Timeouts
from tests.transports import MAKERS, Either, trusting

LIMITS = Timeouts(connect_s=2)


@pytest.fixture(params=MAKERS)
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    made = MAKERS[request.param]()
    yield made
    await made.close()


def call(up: Upstream, **changed: Any) -> Outgoing:
    fields: dict[str, Any] = {"method": "POST", "url": up.base_url + "/chat/completions?a=b%20c", "body": b'{"x":1}',
                              "headers": {"Content-Type": "application/json", "Authorization": "Bearer k"}, "timeouts": LIMITS}
    return Outgoing(**{**fields, **changed})


async def test_what_is_sent_is_what_was_given_and_nothing_else(transport: Either) -> None:
    async with Upstream(s.reply("hi")) as up:
        reply = await transport.send(call(up))
        assert reply.status == 200 and reply.headers["content-type"] == "application/json"
        assert b"hi" in await reply.read(10_000)
        asked = up.requests[0]
        assert (asked.method, asked.path, asked.body) == ("POST", "/v1/chat/completions?a=b%20c", b'{"x":1}')
        assert asked.headers == {"host": f"127.0.0.1:{up.port}", "content-type": "application/json", "authorization": "Bearer k",
                                 "content-length": "7"}


async def test_a_get_has_no_body_and_no_length(transport: Either) -> None:
    async with Upstream(s.reply()) as up:
        await (await transport.send(call(up, method="GET", body=None))).read(10_000)
        assert up.requests[0].method == "GET" and "content-length" not in up.requests[0].headers


async def test_connections_are_kept_and_cookies_are_not(transport: Either) -> None:
    cookie = s.body_of(b"{}", headers={"Set-Cookie": "session=1", "Content-Type": "application/json"})
    async with Upstream(cookie) as up:
        for _ in range(3):
            await (await transport.send(call(up))).read(100)
            assert transport.open_connections() == 0
        assert up.connections == 1
        assert all("cookie" not in asked.headers for asked in up.requests)


async def test_redirects_are_answers(transport: Either) -> None:
    async with Upstream(s.body_of(b"", 307, {"Location": "http://127.0.0.1:1/"})) as up:
        reply = await transport.send(call(up))
        assert reply.status == 307 and await reply.read(10) == b""
        assert len(up.requests) == 1


async def test_sse_lines_may_be_larger_than_any_buffer(transport: Either) -> None:
    huge = s.frame("x" * 1_000_000)
    async with Upstream(s.script(s.Head(200, s.SSE), s.Send(huge), s.Send(s.DONE))) as up:
        assert await (await transport.send(call(up))).read(2_000_000) == huge + s.DONE


async def test_reading_too_much_closes_the_connection(transport: Either) -> None:
    async with Upstream(s.reply("x" * 500_000)) as up:
        reply = await transport.send(call(up))
        with pytest.raises(GatewayError, match="larger than 1000 bytes"):
            await reply.read(1_000)
        await up.until(lambda: up.open_connections == 0)


async def test_an_unread_answer_holds_its_upstream_back(transport: Either) -> None:
    block = s.Send(b"x" * 65_536)
    async with Upstream(s.script(s.Head(200, s.SSE), *[block] * 400)) as up:
        reply = await transport.send(call(up))
        await asyncio.sleep(0.05)
        held = reply._n_held if hasattr(reply, "_n_held") else reply._payload._size
        assert 0 < held < 1 << 20
        assert len(await reply.read(1 << 26)) == 400 * 65_536


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("br", brotli.compress), ("GZIP", gzip.compress)])
async def test_compressed_answers_are_opened(transport: Either, coding: str, pack: Any) -> None:
    text = b"".join(s.frame(f"word {i}") for i in range(300))
    packed = pack(text)
    head = s.Head(200, {**s.SSE, "Content-Encoding": coding})
    async with Upstream(s.script(head, *[s.Send(packed[i:i + 7]) for i in range(0, len(packed), 7)])) as up:
        reply = await transport.send(call(up))
        assert await reply.read(1 << 20) == text
        assert transport.open_connections() == 0


async def test_a_wrong_label_over_a_plain_body_does_no_harm(transport: Either) -> None:
    async with Upstream(s.body_of(b'{"plain":"body"}', headers={"Content-Encoding": "br"})) as up:
        assert await (await transport.send(call(up))).read(100) == b'{"plain":"body"}'


async def test_a_compressed_answer_that_is_cut_is_truncated(transport: Either) -> None:
    packed = gzip.compress(b"".join(str(i).encode() for i in range(9_999)))[:-9]
    async with Upstream(s.body_of(packed, headers={"Content-Encoding": "gzip"})) as up:
        with pytest.raises(GatewayError) as caught:
            await (await transport.send(call(up))).read(1 << 20)
        assert caught.value.kind == "truncated"
        assert transport.open_connections() == 0


async def test_an_unknown_coding_is_refused_and_the_connection_dropped(transport: Either) -> None:
    async with Upstream(s.body_of(b"{}", headers={"Content-Encoding": "rot13"})) as up:
        with pytest.raises(GatewayError, match="content encoding"):
            await transport.send(call(up))
        assert transport.open_connections() == 0


async def test_bytes_beyond_the_stated_length_are_noticed(transport: Either) -> None:
    async with Upstream(s.script(s.Head(200, s.JSON, 4), s.Send(b'{"a":1} and more'), s.Close())) as up:
        with pytest.raises(GatewayError) as caught:
            await (await transport.send(call(up))).read(100)
        assert caught.value.kind in ("truncated", "transport")
        assert transport.open_connections() == 0


async def test_a_body_that_only_the_end_of_the_connection_ends_is_whole(transport: Either) -> None:
    async with Upstream(s.script(s.Head(200, s.JSON, "close"), s.Send(b'{"a":1}'))) as up:
        assert await (await transport.send(call(up))).read(100) == b'{"a":1}'


async def test_unless_it_was_reset(transport: Either) -> None:
    story = s.script(s.Head(200, s.JSON, "close"), s.Send(b'{"a":'), s.Wait(0.02), s.Reset())
    async with Upstream(story) as up:
        reply = await transport.send(call(up))
        assert await reply.chunk() == b'{"a":'
        with pytest.raises(GatewayError) as caught:
            await reply.chunk()
        assert caught.value.kind == "truncated"


async def test_informational_answers_are_passed_over(transport: Either) -> None:
    early = s.Raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    async with Upstream(s.script(early, *s.reply("x").steps)) as up:
        assert (await transport.send(call(up))).status == 200


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 400])
async def test_the_answers_headers_are_bounded(transport: Either, head: bytes) -> None:
    async with Upstream(s.script(s.Raw(head + b"\r\n\r\n"), s.Hang())) as up:
        with pytest.raises(GatewayError) as caught:
            await transport.send(call(up))
        assert caught.value.kind == "transport"
        assert transport.open_connections() == 0


async def test_a_line_break_in_a_header_never_leaves(transport: Either) -> None:
    async with Upstream(s.reply()) as up:
        for value in ("a\r\nX-Evil: 1", "a\nb", "a\rb"):
            with pytest.raises(GatewayError, match="line break"):
                await transport.send(call(up, headers={"X": value}))
        assert not up.requests


@pytest.mark.parametrize(("url", "words"), [
    ("http://127.0.0.1:1/v1", "connection refused"), ("http://localhost:1/v1", "connection refused"),
    ("http://no-such-name.invalid/v1", "name not resolved"), ("ftp://127.0.0.1/", "not an http"), ("/v1", "not an http")])
async def test_failures_to_connect_say_why_without_saying_where(transport: Either, url: str, words: str) -> None:
    with pytest.raises(GatewayError, match=words) as caught:
        await transport.send(Outgoing(method="POST", url=url, headers={}, body=b"", timeouts=LIMITS))
    assert caught.value.kind == "transport"
    assert "127" not in caught.value.message and "localhost" not in caught.value.message and "invalid" not in caught.value.message


async def test_connecting_has_its_own_limit(transport: Either, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*args: Any, **kw: Any) -> Any:
        await asyncio.Event().wait()
    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", never)
    with pytest.raises(GatewayError, match="no connection within 0.05 s") as caught:
        await transport.send(Outgoing(method="POST", url="http://192.0.2.1/", headers={}, body=b"",
                                      timeouts=Timeouts(connect_s=0.05)))
    assert caught.value.kind == "timeout" and transport.open_connections() == 0


async def test_a_server_that_does_not_speak_tls_is_a_tls_failure(transport: Either) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    with pytest.raises(GatewayError, match="^TLS: ") as caught:
        await transport.send(Outgoing(method="POST", url=url, headers={}, body=b"", timeouts=LIMITS))
    assert caught.value.kind == "transport"
    server.close()


@pytest.mark.parametrize("name", MAKERS)
async def test_certificates_are_checked_unless_told_otherwise(name: str, certificate: tuple[str, ssl.SSLContext]) -> None:
    path, server = certificate
    believing, strict = trusting(name, path), MAKERS[name]()
    async with Upstream(s.stream("safe"), tls=server) as up:
        named = up.base_url.replace("127.0.0.1", "localhost")
        with pytest.raises(GatewayError, match=r"^TLS: certificate not accepted \(self-signed certificate\)$"):
            await strict.send(call(up, url=named))
        with pytest.raises(GatewayError, match=r"^TLS: certificate not accepted \(ip address mismatch\)$"):
            await believing.send(call(up))
        for transport, out in ((believing, call(up, url=named)), (strict, call(up, tls_verify=False))):
            assert b"safe" in await (await transport.send(out)).read(10_000)
        stalled = await believing.send(call(up, url=named))
        stalled.close()
        assert believing.open_connections() == strict.open_connections() == 0
        await up.until(lambda: up.busy == 0)
        await believing.close()
        await strict.close()


# -- proxies

def proxied(asked: Asked) -> s.Script:
    return s.reply("through the proxy") if asked.path.startswith("http://") else s.error(400)


async def test_an_http_proxy_is_asked_in_absolute_form_with_its_own_credentials(transport: Either) -> None:
    async with Upstream(proxied) as proxy:
        out = Outgoing(method="POST", url="http://upstream.invalid/v1/x", headers={"Authorization": "Bearer k"}, body=b"{}",
                       timeouts=LIMITS, proxy=f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        for _ in range(2):
            assert b"through the proxy" in await (await transport.send(out)).read(1_000)
        asked = proxy.requests[1]
        assert asked.path == "http://upstream.invalid/v1/x"
        assert asked.headers["host"] == "upstream.invalid" and asked.headers["authorization"] == "Bearer k"
        assert asked.headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"
        assert proxy.connections == 1


async def test_tls_through_a_proxy_is_a_tunnel_and_its_refusal_is_told(transport: Either) -> None:
    async with Upstream(s.error(403)) as proxy:
        out = Outgoing(method="POST", url="https://upstream.invalid/v1", headers={"Authorization": "Bearer k"}, body=b"{}",
                       timeouts=LIMITS, proxy=f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(GatewayError, match="proxy answered 403"):
            await transport.send(out)
        assert proxy.requests[0].method == "CONNECT" and proxy.requests[0].path == "upstream.invalid:443"
        assert "authorization" not in proxy.requests[0].headers


async def test_a_dead_proxy_fails_the_call_and_nothing_goes_out_directly(transport: Either) -> None:
    async with Upstream(s.reply()) as up:
        with pytest.raises(GatewayError, match="proxy: connection refused"):
            await transport.send(call(up, proxy="http://127.0.0.1:1"))
        assert not up.requests and up.connections == 0


async def test_a_proxy_that_cannot_be_used_is_an_error(transport: Either, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.upstream.proxies.importlib.util.find_spec", lambda name: None)
    async with Upstream(s.reply()) as up:
        with pytest.raises(GatewayError, match="pip install aiohttp-socks"):
            await transport.send(call(up, proxy="socks5://127.0.0.1:1"))
        assert not up.requests


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_socks_resolves_the_name_at_the_proxy(transport: Either, scheme: str) -> None:
    pytest.importorskip("aiohttp_socks")
    asked: list[bytes] = []

    async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            sink.write(data)
        sink.close()

    async with Upstream(s.reply("via socks")) as up:
        async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly((await reader.readexactly(2))[1])
            writer.write(b"\x05\x00")
            assert (await reader.readexactly(4))[3] == 3            # a name, not an address
            asked.append(await reader.readexactly((await reader.readexactly(1))[0]))
            await reader.readexactly(2)
            writer.write(b"\x05\x00\x00\x01" + bytes(6))
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", up.port)
            await asyncio.gather(pipe(reader, up_writer), pipe(up_reader, writer))
        server = await asyncio.start_server(socks, "127.0.0.1", 0)
        out = call(up, url="http://upstream.invalid/v1", proxy=f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for _ in range(2):
            assert b"via socks" in await (await transport.send(out)).read(1_000)
        assert asked == [b"upstream.invalid"]
        with pytest.raises(GatewayError, match="proxy refused"):
            await transport.send(call(up, proxy="socks5://127.0.0.1:1"))
        await transport.close()
        server.close()
        await up.until(lambda: up.open_connections == 0)


# -- both loops

@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("runner", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def test_it_works_on_either_loop(name: str, runner: Any) -> None:
    async def main() -> None:
        transport = MAKERS[name]()
        async with Upstream([s.stream("a"), s.reset_before_headers(), s.reply("b"), s.reset_after_headers()]) as up:
            assert s.DONE in await (await transport.send(call(up))).read(10_000)
            assert b"b" in await (await transport.send(call(up))).read(10_000)
            with pytest.raises(GatewayError, match="reset inside"):
                await (await transport.send(call(up))).read(10_000)
            with pytest.raises(GatewayError, match="connection refused"):
                await transport.send(call(up, url="http://localhost:1/"))
            assert transport.open_connections() == 0
        await transport.close()
    runner(main())
