"""Do both readers of a client's bytes see the same requests? server/plain.py with aiohttp behind it, against aiohttp's parser alone.

What plain.py takes itself must be what aiohttp would have taken: path, headers, body, and where the next request begins. Each
connection is the server's own protocol over a socket that goes nowhere; its handler reads as the doors do, and answers briefly.
"""
import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.pipeline.deliver import Client
from gateway.pipeline.direct import Direct, possible
from gateway.server.http import HttpProtocol, HttpServer
from gateway.server.plain import Plain
from gateway.wire import WIRES
from tests.fuzz.engine import dice_of, pieces
from tests.property.test_h1 import Wire

LIMIT = 100_000
TURNS = 12                                       # of the loop between two reads: enough for an answer to a whole request
Heard = list[tuple[Any, ...]]


class Socket(Wire):
    """Closes at once, and is asked who is there."""

    def close(self) -> None:
        self.closed = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


def handler(heard: Heard) -> Any:
    async def answer(http: BaseRequest) -> web.StreamResponse:
        fields = sorted((name.lower(), value) for name, value in http.headers.items() if name.lower() != "content-length")
        row = [http.method, http.raw_path, http.version, http.keep_alive, fields, http.content_length]
        client = Client(http, None, WIRES["openai-chat"], {}, None)  # type: ignore[arg-type]
        heard.append((*row, "asked"))
        place = len(heard) - 1
        try:
            raw = await client._read(LIMIT) if getattr(http, "whole", None) is None else http.whole  # type: ignore[attr-defined]
            heard[place] = (*row, raw)
        except Exception as error:
            heard[place] = (*row, type(error).__name__)
            raise
        if possible(http):
            made = Direct(http, 200, {}, 0.0)
            await made.whole(b"ok")
            return made
        return web.Response(body=b"ok")
    return answer


async def talk(reads: Sequence[bytes], plain: bool, patient: bool) -> tuple[Heard, int, bool, int]:
    """What the handler heard, how many answers there were, whether the connection stays, and how many requests plain.py took."""
    heard: Heard = []
    server = HttpServer(handler(heard), handler_cancellation=True, access_log=None, auto_decompress=False, lingering_time=0)
    protocol, wire = HttpProtocol(server, loop=asyncio.get_running_loop(), **server._kwargs), Socket()
    if not plain:
        protocol._head = None
    taken = 0
    protocol.connection_made(wire)
    await asyncio.sleep(0)
    for data in reads:
        if wire.closed:
            break
        protocol.data_received(data)
        taken += sum(type(message) is Plain for message, _ in protocol._messages)
        for _ in range(TURNS if patient else 1):
            await asyncio.sleep(0)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    stays = not wire.closed
    answers = b"".join(wire.sent).count(b"HTTP/1.1 200") + b"".join(wire.sent).count(b"HTTP/1.0 200")
    protocol.connection_lost(None)
    for _ in range(3):
        await asyncio.sleep(0)
    return heard, answers, stays, taken


def door(data: bytes) -> str:
    """Both readers, the same reads at the same pace."""
    dice = dice_of(data)
    reads, patient = pieces(data, dice) or [b""], dice.random() < 0.5
    loop = running()
    mine, theirs = (loop.run_until_complete(talk(reads, plain, patient)) for plain in (True, False))
    assert mine[:3] == theirs[:3], f"{mine} {theirs}"
    heard, answers, stays, taken = mine
    return f"{taken} {answers} {stays} {[(row[0], row[1][:24], row[-1] if isinstance(row[-1], str) else len(row[-1]) > 9) for row in heard]}"


@cache
def running() -> asyncio.AbstractEventLoop:
    """One for all inputs: to make one costs more than an input does."""
    return asyncio.new_event_loop()


def asking(body: bytes = b'{"model":"m"}', *, path: str = "/v1/chat/completions", length: str = "", more: str = "") -> bytes:
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\n"
            f"Content-Length: {length or len(body)}\r\n{more}\r\n").encode("latin-1") + body


CHUNKED = b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nHost: a\r\nX-Length: 7\r\nConnection: keep-alive\r\n\r\n"
# Each is the beginning of a smuggled request somewhere: https://portswigger.net/web-security/request-smuggling
CONVERSATIONS = {
    "one": asking(), "two": asking() + asking(b"[]"), "one behind a whole one": asking() + GET, "a chunked one behind it": asking() + CHUNKED,
    "one behind a get": GET + asking(), "one behind a chunked one": CHUNKED + asking(),
    "length and chunks": asking(more="Transfer-Encoding: chunked\r\n"), "chunks in capitals": asking(more="Transfer-Encoding: CHUNKED\r\n"),
    "chunks behind a tab": asking(more="Transfer-Encoding:\tchunked\r\n"), "chunks with a space": asking(more="Transfer-Encoding : chunked\r\n"),
    "chunks folded": asking(more="Transfer-Encoding:\r\n chunked\r\n"), "chunks in a value": asking(more="X: a\nTransfer-Encoding: chunked\r\n"),
    "chunks and another": asking(more="Transfer-Encoding: chunked, identity\r\n"), "xchunked": asking(more="Transfer-Encoding: xchunked\r\n"),
    "two lengths": asking(more="Content-Length: 3\r\n"), "two equal lengths": asking(more="Content-Length: 13\r\n"),
    "a list of lengths": asking(length="13, 13"), "a signed length": asking(length="+13"), "a length in hex": asking(length="0xd"),
    "a length with a space": asking(length="1 3"), "a length with a gap": asking().replace(b"Content-Length:", b"Content-Length :"),
    "a length with zeros": asking(length="0013"), "a length with an underscore": asking(length="1_3"), "a huge length": asking(length="9" * 19),
    "a length of 2^64": asking(length=str(2**64 + 13)), "a minus": asking(length="-1"), "a length of nothing": asking(length=" "),
    "bare line feeds": asking().replace(b"\r\n", b"\n"), "bare returns": asking().replace(b"\r\n", b"\r"), "a nul": asking(more="X: a\0b\r\n"),
    "a nul in a name": asking(more="X\0: a\r\n"), "a folded value": asking(more="X: a\r\n b\r\n"), "no colon": asking(more="X\r\n"),
    "no name": asking(more=": a\r\n"), "a fold first": asking().replace(b"Host", b" Host"), "many fields": asking(more="X-A: 1\r\n" * 200),
    "many names": asking(more="".join(f"X-{n}: 1\r\n" for n in range(200))), "a long field": asking(more=f"X: {'a' * 9_000}\r\n"),
    "spaces behind": asking(more="X-A: b \t \r\n"), "nothing in it": asking(more="X-A:\r\nX-B: \r\n"), "old handshake": asking(more="Sec-WebSocket-Key1: 4\r\n"),
    "high bytes": asking(more="X-A: \xe9\xff\r\n"), "two hosts": asking(more="Host: b\r\n"), "no host": asking().replace(b"Host: localhost\r\n", b""),
    "absolute": asking(path="http://other/v1/chat/completions"), "elsewhere": asking(path="/v1/../v1/chat/completions"),
    "double slash": asking(path="/v1//chat/completions"), "escaped": asking(path="/v1/chat%2fcompletions"), "a query": asking(path="/v1/chat/completions?a=b"),
    "a fragment": asking(path="/v1/chat/completions#a"), "a nul in the path": asking(path="/v1/chat/completions\0"),
    "a dot": asking(path="/v1/chat/./completions"), "a backslash": asking(path="/v1/chat\\completions"), "a high path": asking(path="/v1/chat/complet\xefons"),
    "two spaces": asking(path=" /v1/chat/completions"), "an old version": asking().replace(b"HTTP/1.1", b"HTTP/1.0"),
    "no version": asking().replace(b" HTTP/1.1", b""), "a new version": asking().replace(b"HTTP/1.1", b"HTTP/2.0"),
    "close": asking(more="Connection: close\r\n") + asking(), "close in a list": asking(more="Connection: keep-alive, close\r\n") + asking(),
    "upgrade": asking(more="Connection: upgrade\r\nUpgrade: h2c\r\n") + asking(), "expect": asking(more="Expect: 100-continue\r\n"),
    "a connection's own fields": asking(more="Connection: content-length\r\n"), "a bad chunk": CHUNKED.replace(b"2;", b"2g;"),
    "a chunk of minus one": CHUNKED.replace(b"2;", b"-2;"), "a huge chunk": CHUNKED.replace(b"2;", b"f" * 17 + b";"),
    "a chunk with bare line feeds": CHUNKED.replace(b"b\r\n{", b"b\n{"), "a chunk without its end": CHUNKED.replace(b"{}\r\n", b"{}"),
    "a length in a trailer": CHUNKED.replace(b"X: y", b"Content-Length: 5"), "chunked twice": CHUNKED.replace(b"chunked", b"chunked, chunked"),
    "empty lines before": b"\r\n\r\n" + asking(), "a method in small letters": asking().replace(b"POST", b"post"), "connect": asking().replace(b"POST", b"CONNECT"),
    "a body too short": asking(length="50"), "a body too long": asking(length="3"), "nothing": b"", "tls": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
}
