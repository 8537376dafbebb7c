"""How does a connection come about? Name, addresses, socket, perhaps a tunnel through a proxy, perhaps TLS."""
import asyncio
import socket
import ssl
from errno import ECONNRESET
from typing import Final

import aiohappyeyeballs

from gateway.core.errors import GatewayError
from gateway.upstream import metadata
from gateway.upstream.failures import told
from gateway.upstream.h1 import tunnel
from gateway.upstream.h1.connection import Connection
from gateway.upstream.h1.names import Names
from gateway.upstream.h1.pool import Origin, Pool, Proxy
from gateway.upstream.h1.tls import resuming

EYEBALLS_S: Final = 0.25                     # RFC 8305 5: a head start for each address
GOODBYE_S: Final = 2.0                       # what closing TLS politely may take


class Dialer:
    """Makes connections for a pool."""

    __slots__ = ("_pool", "_names", "_tls", "_contexts")

    def __init__(self, pool: Pool, tls: ssl.SSLContext | None) -> None:
        self._pool = pool
        self._names = Names()
        self._tls = tls
        self._contexts: dict[bool, ssl.SSLContext] = {}

    async def connect(self, origin: Origin) -> Connection:
        """A connection that is ready. Raises GatewayError("transport"), or "shed" when this machine has run out of something."""
        conn = Connection(origin, self._pool)
        try:
            await (self._straight(conn, origin) if origin.proxy is None else self._through(conn, origin, origin.proxy))
        except OSError as exc:
            conn.drop()
            raise told(exc, connecting=True) from None
        except BaseException:
            conn.drop()
            raise
        return conn

    async def _straight(self, conn: Connection, origin: Origin) -> None:
        loop, sock = asyncio.get_running_loop(), await self._socket(origin.host, origin.port)
        if origin.tls:
            await loop.create_connection(lambda: conn, sock=sock, ssl=self.context(origin.verify),
                                         server_hostname=_name(origin), ssl_shutdown_timeout=GOODBYE_S)
        else:
            await loop.create_connection(lambda: conn, sock=sock)

    async def _through(self, conn: Connection, origin: Origin, proxy: Proxy) -> None:
        """To the proxy, and for TLS through it."""
        loop = asyncio.get_running_loop()
        try:
            sock = await self._socket(proxy.host, proxy.port)
            if not origin.tls:
                await loop.create_connection(lambda: conn, sock=sock)
                return
            transport = await tunnel.opened(sock, origin.host, origin.port, proxy.login)
        except OSError as exc:
            error = told(exc, connecting=True)
            raise (error if error.kind == "shed" else GatewayError("transport", f"proxy: {error.message}")) from None
        try:
            wrapped = await loop.start_tls(transport, conn, self.context(origin.verify), server_hostname=_name(origin),
                                           ssl_shutdown_timeout=GOODBYE_S)
        except BaseException:
            transport.abort()
            raise
        if wrapped is None:
            raise ConnectionResetError(ECONNRESET, "closed after the handshake")
        conn.connection_made(wrapped)

    async def _socket(self, host: str, port: int) -> socket.socket:
        addresses = await self._names.find(host, port)
        try:
            return await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=EYEBALLS_S,
                                                           loop=asyncio.get_running_loop(), socket_factory=metadata.opened)
        except OSError:
            self._names.forget(host, port)
            raise

    def context(self, verify: bool) -> ssl.SSLContext:
        """Made on first use: to load the system's certificates takes 20 ms."""
        if verify and self._tls is not None:
            return self._tls
        context = self._contexts.get(verify)
        if context is None:
            context = self._contexts[verify] = resuming(verify)
        return context


def _name(origin: Origin) -> str:
    return origin.host.rstrip(".")
