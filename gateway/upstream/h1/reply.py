"""What has come of an answer, and is more to come? The body of one exchange between the connection and its reader.

The connection puts in what a read brought; the reader takes all that is there, or waits with one future. Above a limit the
connection stops reading, so a slow client slows its upstream. A failure is told after everything that came before it.
"""
import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gateway.core.errors import GatewayError
from gateway.upstream.unpack import Unpacked, unpacked

if TYPE_CHECKING:
    from gateway.upstream.h1.connection import Connection

HOLD_BYTES: Final = 131_072                  # unread above this, the connection pauses


class H1Reply:
    """``transport.Reply``."""

    __slots__ = ("status", "headers", "_conn", "_data", "_n_held", "_waiter", "_over", "_failed", "_unpacked")

    def __init__(self, status: int, headers: Mapping[str, str], conn: "Connection") -> None:
        self.status = status
        self.headers = headers
        self._conn: Connection | None = conn
        self._data: list[bytes] = []
        self._n_held = 0
        self._waiter: asyncio.Future[None] | None = None
        self._over = False
        self._failed: tuple[str, str] | None = None
        self._unpacked: Unpacked | None = None

    # -- for the reader

    @property
    def complete(self) -> bool:
        return self._conn is None

    def unpack(self, header: str) -> None:
        """The body is compressed. Raises bad_reply if nobody can open it; the connection is closed then."""
        try:
            self._unpacked = unpacked(header)
        except GatewayError:
            self.close()
            raise

    async def chunk(self) -> bytes:
        if self._unpacked is not None:
            return await self._unpacked.chunk(self._raw)
        if not self._data:
            await self._more()
        return self._take()

    async def _raw(self) -> bytes:
        if not self._data:
            await self._more()
        return self._take()

    async def read(self, limit: int) -> bytes:
        parts: list[bytes] = []
        n_bytes = 0
        while data := await self.chunk():
            n_bytes += len(data)
            if n_bytes > limit:
                self.close()
                raise GatewayError("bad_reply", f"the answer is larger than {limit} bytes")
            parts.append(data)
            if self._over and not self._data and self._unpacked is None and self._failed is None:
                break                                             # the usual case, one read: no second await to learn of the end
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._over = True
        self._data.clear()
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.drop()
        if self._waiter is not None:
            self._failed = ("transport", "the connection was closed")
            self._wake()

    async def _more(self) -> None:
        """Wait until there are bytes, or the end."""
        while not self._data:
            if self._failed is not None:
                raise GatewayError(*self._failed)
            if self._over:
                return
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _take(self) -> bytes:
        parts = self._data
        if not parts:
            return b""
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        if self._n_held > HOLD_BYTES and self._conn is not None:
            self._conn.read_on()
        self._n_held = 0
        return data

    # -- for the connection

    def put(self, data: bytes) -> bool:
        """More of the body. Is it enough for now?"""
        self._data.append(data)
        self._n_held += len(data)
        if self._waiter is not None:
            self._wake()
        return self._n_held > HOLD_BYTES

    def end(self, failed: tuple[str, str] | None = None) -> None:
        """Nothing follows: the body is whole, or ``failed`` says why not. The connection is no longer ours."""
        self._over = True
        self._failed = failed
        self._conn = None
        if self._waiter is not None:
            self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
