"""The mocks read whatever an HTTP client sends, however it is cut."""
import asyncio

import pytest

from gateway.mock.http1 import LAST_CHUNK, HttpServerProtocol, chunk, unchunk


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


class Server(HttpServerProtocol):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bytes, bytes]] = []
        self.connection_made(Wire())

    def request(self, head: bytes, body: bytes) -> None:
        self.seen.append((head.split(b"\r\n")[0], body))
        self.answered()


LENGTH = b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"0\r\n\r\n") + chunk(b"rest") + LAST_CHUNK
PLAIN = b"GET /c HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_requests_follow_each_other_whatever_the_cut(size: int) -> None:
    server, data = Server(), LENGTH + CHUNKED + PLAIN + LENGTH
    for at in range(0, len(data), size):
        server.data_received(data[at:at + size])
    assert server.seen == [(b"POST /a HTTP/1.1", b"hello"), (b"POST /b HTTP/1.1", b"0\r\n\r\nrest"), (b"GET /c HTTP/1.1", b""),
                           (b"POST /a HTTP/1.1", b"hello")]


def test_a_client_that_asks_whether_to_go_on_is_told_once() -> None:
    server = Server()
    server.data_received(b"POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    server.data_received(b"he")
    server.data_received(b"llo")
    assert server.seen and server.transport.written == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_chunks_are_taken_apart() -> None:
    whole = chunk(b"ab") + chunk(b"c") + LAST_CHUNK
    assert unchunk(whole + b"more", 0) == (b"abc", len(whole))
    assert unchunk(chunk(b"ab"), 0) is None
