"""Transport: the one door to the network that the pipeline knows, and what comes back through it."""
from collections.abc import Mapping
from typing import Protocol

import msgspec

from gateway.core.timeouts import Timeouts as Timeouts


class Outgoing(msgspec.Struct, kw_only=True):
    """One request to an upstream, ready to be sent. ``headers`` are complete (guard.py made them)."""
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeouts: Timeouts
    proxy: str = ""
    tls_verify: bool = True
    stream: bool = False

    def __repr__(self) -> str:
        return f"Outgoing({self.method})"            # address, headers and proxy may hold secrets


class Reply(Protocol):
    """A started answer. Leaving it unread is safe: ``close`` ends the connection, ``release`` gives it back."""
    status: int
    headers: Mapping[str, str]                   # case-insensitive

    @property
    def complete(self) -> bool:
        """Has the end been received, so that nothing can follow and the connection is free?"""
        ...

    async def chunk(self) -> bytes:
        """The next read, decoded (gzip, br, zstd); b"" at the clean end. Raises GatewayError("transport"|"truncated")."""
        ...

    async def read(self, limit: int) -> bytes:
        """The whole rest, at most ``limit`` bytes, else GatewayError("bad_reply")."""
        ...

    def close(self) -> None:
        """Drop the connection now (client gone, turn over early). Idempotent, synchronous."""
        ...


class Transport(Protocol):
    async def send(self, out: Outgoing) -> Reply:
        """Raises GatewayError("transport") (refused, reset, DNS, TLS, proxy) or "timeout" (connect). A reused connection that
        died without an answer has been tried once more on a fresh one."""
        ...

    async def close(self) -> None: ...

    def open_connections(self) -> int: ...
