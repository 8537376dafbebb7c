"""An upstream on a real socket that does what a script says, remembers what it was asked and counts who is connected.

    async with Upstream(stream("Hello")) as up:
        ... up.base_url ... up.requests[0].json() ... up.open_connections
"""
import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import msgspec

from gateway.mock.http1 import HttpServerProtocol
from gateway.mock.script import (
    Close,
    Drip,
    End,
    Hang,
    Head,
    Raw,
    Reset,
    Script,
    Send,
    Step,
    Wait,
    ending,
    framed,
)

MAX_REMEMBERED = 10_000


class Asked(msgspec.Struct):
    """One request as it came. ``headers``: names in lower case, the last of equal ones."""
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


Answering = Script | Sequence[Script] | Callable[[Asked], Script]


class Upstream:
    """``answer``: one script for all requests, one for each in turn (the last one stays), or a function of the request."""

    def __init__(self, answer: Answering, *, host: str = "127.0.0.1", port: int = 0, prefix: str = "/v1",
                 tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[Asked] = []
        self.connections = 0                     # ever made
        self._live: set[_Connection] = set()
        self._changed = asyncio.Event()
        self._host, self._port, self._prefix, self._tls = host, port, prefix, tls
        self._server: asyncio.Server | None = None

    @property
    def open_connections(self) -> int:
        return len(self._live)

    @property
    def busy(self) -> int:
        """Answers in progress."""
        return sum(connection.busy for connection in self._live)

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        return f"http{'s' if self._tls else ''}://{self._host}:{self._port}{self._prefix}"

    async def until(self, test: Callable[[], bool], timeout_s: float = 5.0) -> None:
        """Wait until ``test`` holds; looked at again whenever a connection or an answer begins or ends."""
        async with asyncio.timeout(timeout_s):
            while not test():
                self._changed.clear()
                await self._changed.wait()

    def drop_idle(self) -> None:
        """Close the connections that wait for a request, as a server does whose keep-alive time is up."""
        for connection in [c for c in self._live if not c.busy]:
            connection.close()

    def script_for(self, asked: Asked) -> Script:
        number = len(self.requests)
        if len(self.requests) < MAX_REMEMBERED:
            self.requests.append(asked)
        if isinstance(self.answer, Script):
            return self.answer
        if callable(self.answer):
            return self.answer(asked)
        return self.answer[min(number, len(self.answer) - 1)]

    def changed(self) -> None:
        self._changed.set()

    async def start(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self, self._live), self._host, self._port, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._live):
            connection.close()
        await self.until(lambda: not self._live)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()


class _Connection(HttpServerProtocol):
    def __init__(self, upstream: Upstream, live: "set[_Connection]") -> None:
        super().__init__()
        self._upstream, self._live = upstream, live
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._upstream.connections += 1
        self._number = self._upstream.connections
        self._live.add(self)
        self._upstream.changed()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._task is not None:
            self._task.cancel()
        self._live.discard(self)
        self._upstream.changed()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def request(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for line in lines if line for name, _, value in [line.partition(":")]}
        script = self._upstream.script_for(Asked(method, path, headers, body, self._number))
        self._task = asyncio.get_running_loop().create_task(self._play(script))
        self._upstream.changed()

    async def _play(self, script: Script) -> None:
        head: Head | None = None
        for step in (*script.steps, End()):
            transport = self.transport
            if transport is None:
                return
            if isinstance(step, Head):
                head = step
                transport.write(_head_bytes(step))
            elif isinstance(step, Send):
                transport.write(framed(step, head))
                await asyncio.sleep(0)
            elif isinstance(step, End):
                transport.write(ending(head))
                if head is None or head.framing == "close":
                    transport.close()
                self._task = None
                self.answered()
                self._upstream.changed()
                return
            elif await self._act(step, transport):
                return

    async def _act(self, step: Step, transport: asyncio.Transport) -> bool:
        """Steps beside the plain ones; True when nothing follows."""
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Raw):
            transport.write(step.data)
            await asyncio.sleep(0)
        elif isinstance(step, Drip):
            for byte in step.data:
                transport.write(bytes((byte,)))
                await asyncio.sleep(step.every_s)
        elif isinstance(step, Hang):
            await asyncio.get_running_loop().create_future()
        elif isinstance(step, Reset):
            _reset(transport)
            return True
        elif isinstance(step, Close):
            transport.close()
            return True
        return False


def _head_bytes(head: Head) -> bytes:
    status = HTTPStatus(head.status).phrase if head.status in HTTPStatus._value2member_map_ else "Unknown"
    lines = [f"HTTP/1.1 {head.status} {status}", *(f"{name}: {value}" for name, value in head.headers.items())]
    if head.framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
    elif head.framing == "close":
        lines.append("Connection: close")
    else:
        lines.append(f"Content-Length: {head.framing}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reset(transport: asyncio.Transport) -> None:
    """RST instead of FIN: closing with a linger time of zero."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
