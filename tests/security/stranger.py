"""How does somebody ask from another machine, and how are ten thousand requests made quickly? Raw requests over kept connections."""
import asyncio
import json
from typing import Any

from gateway.server.http import HttpProtocol

FAR = ("192.0.2.7", 40_000)


class Elsewhere:
    """A connection's transport, as it looks when the peer is another machine."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return FAR if name == "peername" else self._transport.get_extra_info(name, default)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def move_away(monkeypatch: Any) -> None:
    """From now on whoever connects is another machine."""
    made = HttpProtocol.connection_made
    monkeypatch.setattr(HttpProtocol, "connection_made", lambda self, transport: made(self, Elsewhere(transport)))


class Heard:
    """An answer. ``body`` is empty where it is a stream that goes on."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """Asks one address; a connection is used as long as it lasts."""

    def __init__(self, base_url: str) -> None:
        host, _, port = base_url.removeprefix("http://").partition(":")
        self._where = host, int(port)
        self.host = f"{host}:{port}"
        self._until_end = False
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes = b"") -> Heard:
        reader, writer = self._open or await asyncio.open_connection(*self._where)
        self._open = reader, writer
        named = {name.lower() for name, _ in headers}
        usual = [("Host", self.host)] if "host" not in named else []
        usual += [("Content-Type", "application/json")] if method not in ("GET", "HEAD") else []
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (*usual, *headers)),
                 f"Content-Length: {len(body)}"]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        async with asyncio.timeout(20):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            told = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
            status, streams = int(head[0].split()[1]), told.get("content-type", "").startswith("text/event-stream")
            streams = streams and not self._until_end
            data = b"" if streams or status == 304 else await self._body(reader, told)
        if streams or told.get("connection", "").lower() == "close":
            self.close()
        return Heard(status, told, data)

    async def whole(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes = b"") -> Heard:
        """The same, and streams to their end."""
        self._until_end = True
        try:
            return await self.ask(method, path, headers, body)
        finally:
            self._until_end = False

    async def _body(self, reader: asyncio.StreamReader, told: dict[str, str]) -> bytes:
        if told.get("transfer-encoding") != "chunked":
            return await reader.readexactly(int(told.get("content-length", 0)))
        data = b""
        while size := int(await reader.readline() or b"0", 16):
            data += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return data

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None
