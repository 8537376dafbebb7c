"""An upstream that writes exactly these bytes, and a client that asks it."""
import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from gateway.core.errors import GatewayError
from gateway.upstream.h1.transport import H1Transport
from gateway.upstream.transport import Outgoing, Timeouts

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"Content-Length: 2\r\n\r\nhi"
CLOSE = object()                             # the upstream ends the connection here
RESET = object()

Story = Sequence[Any]                        # what one request is answered with: bytes (one write each), CLOSE, RESET


class Raw:
    """Answers the n-th request with the n-th story; the last one stays."""

    def __init__(self, stories: Sequence[Story]) -> None:
        self.stories = list(stories)
        self.requests: list[bytes] = []
        self.n_connections = self.n_lost = 0
        self.url = ""
        self.writers: list[asyncio.StreamWriter] = []
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                n_body = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
                self.requests.append(head + await reader.readexactly(n_body))
                story = self.stories.pop(0) if len(self.stories) > 1 else self.stories[0]
                for part in story:
                    if part is CLOSE:
                        return
                    if part is RESET:
                        sock = writer.get_extra_info("socket")
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        writer.transport.abort()
                        return
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0.001)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.n_lost += 1
            self.changed.set()
            writer.close()

    async def until(self, test: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not test():
                self.changed.clear()
                await self.changed.wait()

    def call(self, **changed: Any) -> Outgoing:
        fields: dict[str, Any] = {"method": "POST", "url": self.url, "headers": {"A": "b"}, "body": b"{}",
                                  "timeouts": Timeouts(connect_s=2)}
        return Outgoing(**{**fields, **changed})


@asynccontextmanager
async def raw(*stories: Story, **settings: Any) -> AsyncIterator[tuple[H1Transport, Raw]]:
    up, transport = Raw(stories), H1Transport(**settings)
    server = await asyncio.start_server(up.serve, "127.0.0.1", 0)
    up.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/x"
    try:
        yield transport, up
    finally:
        await transport.close()
        server.close()
        for writer in up.writers:
            writer.close()
        await up.until(lambda: up.n_lost == up.n_connections)


async def told(transport: H1Transport, up: Raw, **changed: Any) -> tuple[int, bytes, str | None]:
    """Status, body and kind of failure of one call; what came before a failure counts."""
    status, got = 0, b""
    try:
        async with asyncio.timeout(5):
            reply = await transport.send(up.call(**changed))
            status = reply.status
            while data := await reply.chunk():
                got += data
    except GatewayError as error:
        return status, got, error.kind
    return status, got, None
