"""What counts as an answer, where does it end, and what is refused? Bytes of a raw upstream, one oddity each."""
import pytest

from gateway.core.errors import GatewayError
from tests.unit.upstream.h1.raw import CLOSE, HI, OK, RESET, raw, told

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n"

GOOD = {
    "length": ([HI], 200, b"hi"),
    "no body at all": ([OK + b"Content-Length: 0\r\n\r\n"], 200, b""),
    "chunks": ([CHUNKED + b"\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"], 200, b"hi"),
    "chunks byte by byte": ([bytes([c]) for c in CHUNKED + b"\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"], 200, b"hi"),
    "chunk extensions": ([CHUNKED + b"\r\n2;a=b\r\nhi\r\n0;z\r\n\r\n"], 200, b"hi"),
    "trailers": ([CHUNKED + b"\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\nX-Empty:\r\n\r\n"], 200, b"hi"),
    "CHUNKED": ([OK + b"transfer-ENCODING: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"], 200, b"hi"),
    "no reason": ([b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi"], 200, b"hi"),
    "an empty header": ([OK + b"X-Empty:\r\nContent-Length: 2\r\n\r\nhi"], 200, b"hi"),
    "to the end": ([OK + b"\r\nhi", CLOSE], 200, b"hi"),
    "HTTP/1.0": ([b"HTTP/1.0 200 OK\r\n\r\nhi", CLOSE], 200, b"hi"),
    "204": ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
    "204 with a length": ([b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"], 204, b""),
    "304 with a length": ([b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"], 304, b""),
    "101": ([b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], 101, b""),
    "100, 103, then the answer": ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HI], 200, b"hi"),
    "100 in two halves": ([b"HTTP/1.1 100 Con", b"tinue\r\n\r\n" + HI], 200, b"hi"),
    "an upgrade that is none": ([OK + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nhi"], 200, b"hi"),
    "a line break too many": ([HI + b"\r\n"], 200, b"hi"),
}


@pytest.mark.parametrize("name", GOOD)
async def test_an_answer_is_read_to_its_own_end(name: str) -> None:
    story, status, body = GOOD[name]
    async with raw(story) as (transport, up):
        assert await told(transport, up) == (status, body, None)
        assert transport.open_connections() == 0


REFUSED = {
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
    "one length twice": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
    "a list of lengths": OK + b"Content-Length: 2, 2\r\n\r\nhi",
    "a signed length": OK + b"Content-Length: +2\r\n\r\nhi",
    "a length in hex": OK + b"Content-Length: 0x2\r\n\r\nhi",
    "an endless length": OK + b"Content-Length: 99999999999999999999999\r\n\r\nhi",
    "an empty length": OK + b"Content-Length:\r\n\r\nhi",
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "chunks and length": CHUNKED + b"Content-Length: 2\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "another transfer coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "chunked twice": CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "identity": OK + b"Transfer-Encoding: identity\r\n\r\nhi",
    "a folded line": OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nhi",
    "a folded length": OK + b"Content-Length:\r\n 2\r\n\r\nhi",
    "NUL": OK + b"X: a\x00b\r\nContent-Length: 2\r\n\r\nhi",
    "CR in a value": OK + b"X: a\rContent-Length: 3\r\nContent-Length: 2\r\n\r\nhi",
    "LF alone": OK + b"X: a\nContent-Length: 2\r\n\r\nhi",
    "LF everywhere": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    "a space before the colon": OK + b"Content-Length : 2\r\n\r\nhi",
    "a space before the first name": OK + b" Content-Length: 2\r\n\r\nhi",
    "no colon": OK + b"Content-Length\r\n\r\nhi",
    "no name": OK + b": x\r\n\r\nhi",
    "a name that is none": OK + "é: x\r\n\r\nhi".encode(),
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "RTSP": b"RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "status 99": b"HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nhi",
    "status of two digits": b"HTTP/1.1 20 Odd\r\nContent-Length: 2\r\n\r\nhi",
    "100 with a body": b"HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\nhi" + HI,
    "100 for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * 40 + HI,
    "a head without end": OK + b"X: " + b"x" * 70_000,
    "a head too large": OK + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    "too many headers": OK + b"A: b\r\n" * 300 + b"\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.7\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_two_readers_could_read_differently_is_no_answer(name: str) -> None:
    async with raw([REFUSED[name]]) as (transport, up):
        with pytest.raises(GatewayError) as caught:
            await transport.send(up.call())
        assert caught.value.kind == "transport" and len(up.requests) == 1
        assert transport.open_connections() == 0
        await up.until(lambda: up.n_lost == 1)


BROKEN = {
    "a size that is no number": CHUNKED + b"\r\n2\r\nhi\r\nzz\r\n",
    "a size in 0x": CHUNKED + b"\r\n2\r\nhi\r\n0x2\r\n",
    "a negative size": CHUNKED + b"\r\n2\r\nhi\r\n-1\r\n",
    "a size beyond 64 bits": CHUNKED + b"\r\n2\r\nhi\r\nfffffffffffffffff\r\n",
    "a space behind the size": CHUNKED + b"\r\n2\r\nhi\r\n2 \r\nhi\r\n",
    "a chunk longer than its size": CHUNKED + b"\r\n2\r\nhi!\r\n0\r\n\r\n",
    "LF behind a size": CHUNKED + b"\r\n2\r\nhi\r\n2\nhi\r\n",
    "a length among the trailers": CHUNKED + b"\r\n2\r\nhi\r\n0\r\nContent-Length: 3\r\n\r\n",
    "bytes beyond the length": OK + b"Content-Length: 2\r\n\r\nhi there",
    "another answer behind it": HI + HI,
    "a connection that ends too early": OK + b"Content-Length: 3\r\n\r\nhi",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_body_that_breaks_is_told_after_what_came(name: str) -> None:
    async with raw([BROKEN[name], CLOSE]) as (transport, up):
        assert await told(transport, up) == (200, b"hi", "truncated")
        assert transport.open_connections() == 0
        await up.until(lambda: up.n_lost == 1)
        assert (await told(transport, up))[2] == "truncated" and up.n_connections == 2     # it was not used again


async def test_extensions_without_any_body_come_to_an_end() -> None:
    async with raw([CHUNKED + b"\r\n2;", *[b"x" * 16_384] * 8]) as (transport, up):
        assert await told(transport, up) == (200, b"", "truncated")


async def test_head_has_no_body_whatever_the_length_says() -> None:
    async with raw([OK + b"Content-Length: 5\r\n\r\n"]) as (transport, up):
        for _ in range(2):
            assert await told(transport, up, method="HEAD", body=None) == (200, b"", None)
        assert up.n_connections == 2                 # a body may follow after all: such a connection is not trusted again


async def test_names_of_headers_have_no_case_and_the_first_of_two_counts() -> None:
    async with raw([OK + b"X-One: 1\r\nx-one: 2\r\nX-Text: \xc3\xa9\r\nContent-Length: 2\r\n\r\nhi"]) as (transport, up):
        headers = (await transport.send(up.call())).headers
        assert headers["X-ONE"] == "1" and headers.get("x-text") == "é" and headers.get("none") is None
        assert "X-One" in headers and 1 not in headers
        assert dict(headers) == {"x-one": "1", "x-text": "é", "content-length": "2"} and len(headers) == 3


async def test_codings_on_several_lines_are_all_opened() -> None:
    import gzip
    body = gzip.compress(gzip.compress(b"twice"))
    head = OK + b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with raw([head + body]) as (transport, up):
        assert await told(transport, up) == (200, b"twice", None)


async def test_a_body_without_a_length_that_a_reset_ends_is_not_whole() -> None:
    async with raw([OK + b"\r\nhi", RESET]) as (transport, up):
        assert (await told(transport, up))[2] == "truncated"
