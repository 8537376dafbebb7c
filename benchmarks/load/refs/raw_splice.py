"""Reference: what does moving the bytes cost at least in Python? Each client connection is tied to one upstream connection.

Nothing is parsed, so no gateway in Python can be cheaper: this is the floor under all other figures.
"""
import argparse
import asyncio
from urllib.parse import urlsplit

import uvloop


class End(asyncio.Protocol):
    """One end of a tie: what it receives the other end sends."""

    def __init__(self, other: "End | None" = None) -> None:
        self.other = other
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()
        self.transport = None


class Door(End):
    """The client's end: what comes before its upstream end is there is kept."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._address = (host, port)
        self._early: list[bytes] = []

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self._tying = asyncio.get_running_loop().create_task(self._tie())

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            self.other.transport.write(data)

    async def _tie(self) -> None:
        try:
            _, other = await asyncio.get_running_loop().create_connection(lambda: End(self), *self._address)
        except OSError:
            if self.transport is not None:
                self.transport.abort()
            return
        self.other = other
        if self.transport is None:
            other.transport.close()
        else:
            other.transport.writelines(self._early)
            self._early.clear()


async def serve(port: int, upstream: str) -> None:
    parts = urlsplit(upstream)
    server = await asyncio.get_running_loop().create_server(lambda: Door(parts.hostname, parts.port), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True, help="base URL")
    given = parser.parse_args()
    uvloop.run(serve(given.port, given.upstream))


if __name__ == "__main__":
    main()
