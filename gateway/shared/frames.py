"""How do processes of one machine talk? Frames of msgpack on a UNIX socket: a length of four bytes, then a list."""
import asyncio
from typing import Any, Final

import msgspec

MAX_FRAME: Final = 16 * 1024 * 1024


class Channel:
    """One side of a connection. Writing never waits: a peer that does not read is cut off above ``MAX_FRAME`` bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, frame: Any) -> bool:
        data = msgspec.msgpack.encode(frame)
        transport = self._writer.transport
        if transport.is_closing() or len(data) > MAX_FRAME:
            return False
        if transport.get_write_buffer_size() > MAX_FRAME:
            transport.abort()
            return False
        self._writer.write(len(data).to_bytes(4, "big") + data)
        return True

    async def receive(self) -> Any:
        """The next frame. Raises EOFError at the end, and for a peer that speaks otherwise."""
        try:
            n_bytes = int.from_bytes(await self._reader.readexactly(4), "big")
            if n_bytes > MAX_FRAME:
                raise EOFError
            return msgspec.msgpack.decode(await self._reader.readexactly(n_bytes))
        except (OSError, asyncio.IncompleteReadError, msgspec.DecodeError):
            raise EOFError from None

    def close(self) -> None:
        self._writer.close()
