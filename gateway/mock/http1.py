"""How does a server read HTTP/1.1 requests off a socket with as little work as possible? (For mocks and benchmarks only.)

It understands what HTTP clients really send: a head, a body by length or in chunks, ``Expect: 100-continue``, pipelining.
"""
import asyncio
import re
from abc import ABC, abstractmethod
from typing import Final, cast

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.I)
_EXPECT: Final = re.compile(rb"\r\nexpect: *100-continue", re.I)


def chunk(data: bytes) -> bytes:
    """``data`` as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK: Final = b"0\r\n\r\n"


def unchunk(data: bytes, start: int) -> tuple[bytes, int] | None:
    """A chunked body that begins at ``start``: the body and where it ends; None while it is incomplete."""
    parts: list[bytes] = []
    while True:
        line = data.find(b"\r\n", start)
        if line < 0:
            return None
        size = int(data[start:line].split(b";")[0], 16)
        start = line + 2 + size + 2
        if len(data) < start:
            return None
        if not size:
            return b"".join(parts), start
        parts.append(data[line + 2:start - 2])


class HttpServerProtocol(asyncio.Protocol, ABC):
    """Calls ``request(head, body)`` for one request at a time; the next one waits until ``answered`` is called."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.busy = False
        self._data = b""
        self._parts: list[bytes] = []
        self._need = self._have = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    def data_received(self, data: bytes) -> None:
        # large bodies come in many reads: they are joined once, when enough is there
        self._parts.append(data)
        self._have += len(data)
        if not self.busy and self._have >= self._need:
            self._parse()

    @abstractmethod
    def request(self, head: bytes, body: bytes) -> None:
        """One request came. ``head`` ends with the line break of its last line."""

    def answered(self) -> None:
        self.busy = False
        if self._parts and self.transport is not None:
            self._parse()

    def _parse(self) -> None:
        data = b"".join(self._parts)
        self._parts, self._need, self._have = [data], 0, len(data)
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        head, start = data[:end + 2], end + 4
        length = _LENGTH.search(head)
        if length is None and _CHUNKED.search(head):
            found = unchunk(data, start)
            if found is None:
                self._wait(head, len(data) == start, len(data) + 1)
                return
            body, stop = found
        else:
            stop = start + (int(length.group(1)) if length else 0)
            if len(data) < stop:
                self._wait(head, len(data) == start, stop)
                return
            body = data[start:stop]
        rest = data[stop:]
        self._parts, self._have = ([rest] if rest else []), len(rest)
        self.busy = True
        self.request(head, body)

    def _wait(self, head: bytes, nothing_yet: bool, need: int) -> None:
        self._need = need
        if nothing_yet and self.transport is not None and _EXPECT.search(head):
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
