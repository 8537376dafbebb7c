"""How do bytes get to an upstream and back, with as little between them as possible? HTTP/1.1 over kept connections, by ourselves.

What this client has no way to, SOCKS and proxies that are spoken to over TLS, goes through aiohttp (``plain``).
"""
import asyncio
import ssl

from gateway.core.bounded import LruMap
from gateway.core.errors import GatewayError
from gateway.upstream.aiohttp_transport import AiohttpTransport
from gateway.upstream.h1.connection import Connection
from gateway.upstream.h1.dial import Dialer
from gateway.upstream.h1.pool import Origin, Pool
from gateway.upstream.h1.route import Key, Route, planned
from gateway.upstream.transport import Outgoing, Reply

MAX_ROUTES = 2_048                           # remembered addresses


class H1Transport:
    """``transport.Transport``. Made anywhere, used in one event loop."""

    def __init__(self, *, keepalive_s: float = 30.0, tls: ssl.SSLContext | None = None) -> None:
        self.plain = AiohttpTransport(keepalive_s=keepalive_s, tls=tls)
        self._pool = Pool(keepalive_s)
        self._dialer = Dialer(self._pool, tls)
        self._routes: LruMap[tuple[str, str, str, bool], Route] = LruMap(MAX_ROUTES)
        self._origins: LruMap[Key, Origin] = LruMap(MAX_ROUTES)
        self._n_dialing = 0
        self._closed = False

    def open_connections(self) -> int:
        """Connections in use: those of answers not yet read to their end, and those being made. Idle ones are not counted."""
        return len(self._pool.busy) + self._n_dialing + self.plain.open_connections()

    async def send(self, out: Outgoing) -> Reply:
        key = (out.url, out.proxy, out.method, out.tls_verify)
        route = self._routes.get(key) or self._route(key, out)
        origin = route.origin
        if origin is None:
            return await self.plain.send(out)
        head = route.head(out)
        conn = self._pool.take(origin)
        while True:
            if conn is None:
                conn = await self._connect(origin, out.timeouts.connect_s)
            waiter = conn.begin(head, out.body, out.method == "HEAD")
            try:
                reply = await waiter
            except BaseException:
                conn.give_up(waiter)
                raise
            if reply is not None:
                break
            # contract 8: a kept connection that dies without an answer was closed before our request came
            if not conn.reused or conn.answered:
                raise GatewayError(*conn.failed)
            conn = None
        coding = reply.headers.get("content-encoding")
        if coding:
            reply.unpack(coding)
        return reply

    async def _connect(self, origin: Origin, connect_s: float) -> Connection:
        if self._closed:
            raise GatewayError("transport", "the gateway is shutting down")
        self._n_dialing += 1
        try:
            async with asyncio.timeout(connect_s or None):
                conn = await self._dialer.connect(origin)
        except TimeoutError:
            raise GatewayError("timeout", f"no connection within {connect_s:g} s") from None
        finally:
            self._n_dialing -= 1
        if self._closed:
            conn.drop()
            raise GatewayError("transport", "the gateway is shutting down")
        self._pool.busy.add(conn)
        return conn

    def _route(self, key: tuple[str, str, str, bool], out: Outgoing) -> Route:
        where, start = planned(out)
        origin: Origin | None = None
        if where is not None:
            origin = self._origins.get(where)
            if origin is None:
                origin = Origin(*where)
                self._origins.put(where, origin)
        route = Route(origin, start)
        self._routes.put(key, route)
        return route

    async def close(self) -> None:
        self._closed = True
        for conn in list(self._pool.busy):
            conn.shut()
        self._pool.close()
        await self.plain.close()
