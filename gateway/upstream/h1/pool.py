"""Which kept connection takes the next request, and for how long is one kept? Each decision in one step, without waiting."""
import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from gateway.upstream.h1.connection import Connection

MAX_IDLE: Final = 1_024                      # of one origin; above it the oldest goes
SWEEP_S: Final = 2.0


class Proxy(msgspec.Struct, frozen=True):
    """An HTTP proxy. ``login``: the value of Proxy-Authorization, or ""."""
    host: str
    port: int
    login: str


class Origin:
    """Where connections lead that can stand in for each other, and those that are idle, the most recently used last."""

    __slots__ = ("host", "port", "tls", "verify", "proxy", "idle")

    def __init__(self, host: str, port: int, tls: bool, verify: bool, proxy: Proxy | None) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        self.verify = verify
        self.proxy = proxy
        self.idle: dict[Connection, None] = {}


class Pool:
    """All connections of one transport."""

    __slots__ = ("busy", "_idle", "_keep_s", "_loop", "_timer", "_closed")

    def __init__(self, keep_s: float) -> None:
        self.busy: set[Connection] = set()
        self._idle: set[Origin] = set()                           # origins with idle connections
        self._keep_s = keep_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, origin: Origin) -> "Connection | None":
        """The connection used last, so that those too many grow old and leave."""
        idle = origin.idle
        while idle:
            conn, _ = idle.popitem()
            transport = conn.transport
            if transport is not None and not transport.is_closing() and conn.idle_until > self._now():
                self.busy.add(conn)
                return conn
            conn.drop()
        return None

    def give(self, conn: "Connection", hint_s: float | None) -> None:
        """Its answer is whole. ``hint_s``: after how long the upstream says that it closes."""
        self.busy.discard(conn)
        keep_s = self._keep_s if hint_s is None else min(self._keep_s, well_before(hint_s))
        if self._closed or keep_s <= 0:
            conn.drop()
            return
        origin = conn.origin
        conn.idle_until = self._now() + keep_s
        origin.idle[conn] = None
        self._idle.add(origin)
        if len(origin.idle) > MAX_IDLE:
            next(iter(origin.idle)).drop()
        if self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(SWEEP_S, self._sweep)

    def forget(self, conn: "Connection") -> None:
        self.busy.discard(conn)
        conn.origin.idle.pop(conn, None)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for origin in self._idle:
            for conn in list(origin.idle):
                conn.drop()
        self._idle.clear()

    def _now(self) -> float:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def _sweep(self) -> None:
        """Close what has been idle for too long. One timer for all, and none while nothing is idle."""
        self._timer = None
        now = self._now()
        for origin in list(self._idle):
            for conn in [conn for conn in origin.idle if conn.idle_until <= now]:
                conn.drop()
            if not origin.idle:
                self._idle.discard(origin)
        if self._idle and self._loop is not None:
            self._timer = self._loop.call_later(SWEEP_S, self._sweep)


def well_before(hint_s: float) -> float:
    """Until when a connection can be used whose upstream closes it after ``hint_s``: a request must not cross its end."""
    return max(min(hint_s - 1.0, hint_s * 0.8), hint_s * 0.5)
