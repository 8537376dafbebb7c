"""How are a response's bytes written? By hand, where a request is what nearly all are: HTTP/1.1 on a connection that stays.

aiohttp parses and frames requests; its response objects cost 15 µs of a request's 200 for generality that is not used here
(cookies, compression, ranges). What cannot be answered this way, HTTP/1.0, ``Connection: close`` and HEAD, is answered by them.
"""
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectionResetError, HttpVersion11, web
from aiohttp.web_request import BaseRequest

_STARTS: Final = {int(status): f"HTTP/1.1 {int(status)} {status.phrase}\r\n" for status in HTTPStatus}


def possible(http: BaseRequest) -> bool:
    return bool(http.version == HttpVersion11 and http.keep_alive and http.method != "HEAD")


class Direct(web.StreamResponse):
    """A response to aiohttp by its type only: it is prepared and at its end before aiohttp sees it."""

    _eof_sent = True
    _keep_alive = True

    def __init__(self, http: BaseRequest, status: int, headers: Mapping[str, str], wall: float) -> None:
        # nothing of the base class's own state is used, so it is not made
        self._status = status
        self._http = http
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise ValueError("a header of the answer contains a line break")
        self._head = f"{_STARTS[status]}{lines}Date: {_date(int(wall))}\r\n"
        self._open = False                           # a chunked body is not at its end

    async def whole(self, body: bytes) -> None:
        """Head and body in one write."""
        await self._put(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def begin(self) -> None:
        """A body of unknown length follows; the head leaves with its first bytes."""
        self._open = True
        self._head += "Transfer-Encoding: chunked\r\n\r\n"

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        head, self._head = self._head, ""
        await self._put(b"".join((head.encode(), b"%x\r\n" % len(data), data, b"\r\n")))

    async def write_eof(self, data: bytes = b"") -> None:
        """Also called by aiohttp when the request is over: then nothing is left to do."""
        if self._open:
            self._open = False
            chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            await self._put(b"%b%b0\r\n\r\n" % (self._head.encode(), chunk))

    async def _put(self, data: bytes) -> None:
        """Waits while the client reads slower than we write."""
        transport = self._http.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError("the client closed the connection")
        transport.write(data)
        protocol = self._http.protocol
        if protocol is not None and protocol.writing_paused:
            await protocol._drain_helper()


@lru_cache(maxsize=4)
def _date(wall: int) -> str:
    return formatdate(wall, usegmt=True)
