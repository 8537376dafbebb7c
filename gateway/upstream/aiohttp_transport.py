"""How do bytes get to an upstream and back, on aiohttp?

Pool, DNS, happy eyeballs, TLS and CONNECT are aiohttp's connector; parsing is its C parser. Between them stands no
ClientSession: cookies, redirects, netrc, automatic headers and the environment are what a gateway must not have, and without
them (and without a task to write a body that is in memory) a call costs a third. Only this file knows aiohttp's exceptions; they
become ours here, in words without addresses.
"""
import asyncio
import importlib
import ssl
from collections.abc import Mapping
from typing import Any, Final, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from gateway.core.bounded import LruMap
from gateway.core.errors import GatewayError
from gateway.upstream import buffered, metadata
from gateway.upstream.failures import cut, told
from gateway.upstream.proxies import is_socks, problem
from gateway.upstream.transport import Outgoing
from gateway.upstream.unpack import Unpacked, unpacked

READ_BYTES: Final = 65_536                   # reading from an upstream pauses at twice this, so a slow client slows its upstream
HEADER_BYTES: Final = 32_768                 # one header line; some providers send large x-ratelimit and CSP lines
MAX_HEADERS: Final = 256
MAX_ROUTES: Final = 2_048                    # remembered (url, proxy) pairs
MAX_SOCKS: Final = 64                        # connectors for SOCKS proxies
DNS_TTL_S: Final = 60


class Route:
    """What is the same for all calls to one URL: whom to connect to, and the beginning of the head."""

    __slots__ = ("request", "start", "pool", "_headers", "_lines")

    def __init__(self, url: URL, request: ClientRequest, pool: str) -> None:
        self.request = request
        self.pool = pool
        self._headers: Mapping[str, str] = {}
        self._lines = ""
        target = url.raw_path_qs
        extra = ""
        if request.proxy is not None and not request.is_ssl():
            # RFC 9112 3.2.2: a proxy is asked in absolute form, and its credentials travel with each request
            target = str(url.with_user(None).with_fragment(None))
            if request.proxy.user or request.proxy.password:
                login = aiohttp.BasicAuth(request.proxy.user or "", request.proxy.password or "")
                extra = f"Proxy-Authorization: {login.encode()}\r\n"
        self.start = f" {target} HTTP/1.1\r\nHost: {request.headers['Host']}\r\n{extra}"

    def lines(self, headers: Mapping[str, str]) -> str:
        """The header lines. An account's headers are usually the very same mapping as the last time."""
        if headers is self._headers:
            return self._lines
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
            raise GatewayError("internal", "a header for the upstream contains a line break")
        self._headers, self._lines = headers, lines
        return lines


class AiohttpReply:
    """A started answer (``transport.Reply``)."""

    __slots__ = ("status", "headers", "_conn", "_protocol", "_payload", "_unpacked", "_over", "_open", "__weakref__")

    def __init__(self, message: Any, payload: Any, conn: Connection, protocol: ResponseHandler,
                 open_replies: "set[AiohttpReply]") -> None:
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self._conn: Connection | None = conn
        self._protocol = protocol
        self._payload = payload
        self._unpacked: Unpacked | None = None
        self._over = False
        self._open = open_replies
        open_replies.add(self)
        coding = message.headers.get("Content-Encoding")
        if coding:
            try:
                self._unpacked = unpacked(coding)
            except GatewayError:
                self.close()
                raise
        payload.on_eof(self._give_back)

    @property
    def complete(self) -> bool:
        return self._conn is None

    async def chunk(self) -> bytes:
        return await (self._raw() if self._unpacked is None else self._unpacked.chunk(self._raw))

    async def _raw(self) -> bytes:
        try:
            data = await buffered.read(self._payload)
        except (aiohttp.ClientError, OSError) as exc:
            return self._last_words(exc)
        if not data and not self._over:
            self._ended()
        return data

    async def read(self, limit: int) -> bytes:
        parts: list[bytes] = []
        n_bytes = 0
        while data := await self.chunk():
            n_bytes += len(data)
            if n_bytes > limit:
                self.close()
                raise GatewayError("bad_reply", f"the answer is larger than {limit} bytes")
            parts.append(data)
            if self._unpacked is None and self._payload.at_eof():
                self._ended()                                     # the usual case, one read: no second await to learn of the end
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _last_words(self, exc: Exception) -> bytes:
        """The connection broke. What had arrived is delivered first: aiohttp would drop it, and with it a whole answer whose
        sender merely forgot the last chunk."""
        buffer = self._payload._buffer
        if buffer:
            data = b"".join(buffer)
            buffer.clear()
            return data
        self.close()
        raise cut(exc) from None

    def _ended(self) -> None:
        self._over = True
        broken = self._protocol.exception()
        if isinstance(broken, (aiohttp.ClientOSError, HttpProcessingError)):
            # a body without a length that a reset ended, or bytes beyond the stated length
            raise cut(broken)

    def _give_back(self) -> None:
        """The body is complete: the connection is free again, unless our own body is still on its way out."""
        conn, self._conn = self._conn, None
        self._open.discard(self)
        if conn is None:
            return
        transport = conn.transport
        if transport is None or transport.get_write_buffer_size():
            _drop(conn)
        else:
            conn.release()

    def close(self) -> None:
        self._over = True
        self._open.discard(self)
        conn, self._conn = self._conn, None
        if conn is not None:
            _drop(conn)


def _drop(conn: Connection) -> None:
    """Close the socket now: ``abort`` does not wait until an unread request body has been flushed."""
    protocol = conn.protocol
    if protocol is not None:
        protocol.abort()
    conn.close()


class AiohttpTransport:
    """``transport.Transport``. Made anywhere, used in one event loop."""

    def __init__(self, *, keepalive_s: float = 30.0, tls: ssl.SSLContext | None = None) -> None:
        self._keepalive_s = keepalive_s
        self._tls = tls
        self._pools: dict[str, aiohttp.TCPConnector] = {}
        self._routes: LruMap[tuple[str, str, bool], Route] = LruMap(MAX_ROUTES)
        self._waits: LruMap[float, aiohttp.ClientTimeout] = LruMap(64)
        self._open: set[AiohttpReply] = set()
        self._starting = 0
        self._closed = False

    def open_connections(self) -> int:
        """Connections in use: those of answers not yet read to their end, and those being made. Idle ones are not counted."""
        return len(self._open) + self._starting

    async def send(self, out: Outgoing) -> AiohttpReply:
        route = self._routes.get((out.url, out.proxy, out.tls_verify)) or self._route(out)
        head = _head(out, route)
        self._starting += 1
        try:
            conn = await self._connect(route, route.pool, out)
            protocol = cast(ResponseHandler, conn.protocol)
            reused = protocol.__dict__.get("exchanged", False)
            try:
                return await self._exchange(conn, head, out.body)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as exc:
                if not reused or _answered(exc):
                    raise told(exc) from None
            # contract 8: a kept connection that dies without an answer was closed before our request came
            conn = await self._connect(route, "fresh " + route.pool, out)
            try:
                return await self._exchange(conn, head, out.body)
            except (aiohttp.ClientError, OSError) as exc:
                raise told(exc) from None
        except (aiohttp.ClientError, HttpProcessingError) as exc:
            raise told(exc) from None
        finally:
            self._starting -= 1

    async def _connect(self, route: Route, pool: str, out: Outgoing) -> Connection:
        connect_s = out.timeouts.connect_s
        wait = self._waits.get(connect_s)
        if wait is None:
            wait = aiohttp.ClientTimeout(total=None, connect=connect_s or None, sock_connect=connect_s or None)
            self._waits.put(connect_s, wait)
        try:
            return await self._pool(pool).connect(route.request, [], wait)
        except TimeoutError:
            raise GatewayError("timeout", f"no connection within {connect_s:g} s") from None
        except (aiohttp.ClientError, OSError) as exc:
            raise told(exc, connecting=True) from None
        except Exception as exc:
            if type(exc).__module__.startswith(("python_socks", "aiohttp_socks")):
                raise GatewayError("transport", "proxy refused the connection") from None
            raise

    async def _exchange(self, conn: Connection, head: bytes, body: bytes | None) -> AiohttpReply:
        protocol = cast(ResponseHandler, conn.protocol)
        protocol.__dict__["exchanged"] = True
        try:
            protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=READ_BYTES,
                                         max_line_size=HEADER_BYTES, max_field_size=HEADER_BYTES, max_headers=MAX_HEADERS)
            transport = cast(asyncio.Transport, protocol.transport)
            if body is None:
                transport.write(head)
            elif len(body) < READ_BYTES:
                transport.write(head + body)
            else:
                transport.writelines((head, body))
            while True:
                message, payload = await protocol.read()
                if message.code >= 200 or message.code == 101:
                    break
        except BaseException:
            _drop(conn)
            raise
        return AiohttpReply(message, payload, conn, protocol, self._open)

    def _route(self, out: Outgoing) -> Route:
        pool = ""
        proxy: URL | None = None
        if out.proxy:
            if wrong := problem(out.proxy):
                raise GatewayError("transport", f"the configured proxy {wrong}")
            if is_socks(out.proxy):
                pool = out.proxy
            else:
                proxy = URL(out.proxy)
        try:
            url = URL(out.url, encoded=True)
            if url.scheme not in ("http", "https"):
                raise ValueError(url.scheme)
            verify: ssl.SSLContext | bool = (self._tls or True) if out.tls_verify else False
            request = ClientRequest("POST", url, loop=asyncio.get_running_loop(), ssl=verify, proxy=proxy)
        except (ValueError, TypeError):
            raise GatewayError("transport", "the configured address is not an http:// or https:// URL") from None
        route = Route(url, request, pool)
        self._routes.put((out.url, out.proxy, out.tls_verify), route)
        return route

    def _pool(self, name: str) -> aiohttp.TCPConnector:
        """Made on first use. A name is the SOCKS proxy it goes through; "fresh " before it: a pool that keeps nothing."""
        pool = self._pools.get(name)
        if pool is None:
            if self._closed:
                raise GatewayError("transport", "the gateway is shutting down")
            fresh, _, proxy = name.rpartition(" ")
            settings: dict[str, Any] = {"limit": 0, "ttl_dns_cache": DNS_TTL_S}
            settings.update({"force_close": True} if fresh else {"keepalive_timeout": self._keepalive_s})
            if proxy:
                if len(self._pools) >= MAX_SOCKS:
                    raise GatewayError("transport", "too many SOCKS proxies are in use")
                socks: Any = importlib.import_module("aiohttp_socks").ProxyConnector     # 40 ms; only who needs it pays
                pool = cast(aiohttp.TCPConnector, socks.from_url(proxy.replace("socks5h:", "socks5:", 1), rdns=True, **settings))
            else:
                pool = aiohttp.TCPConnector(socket_factory=metadata.opened, **settings)
            self._pools[name] = pool
        return pool

    async def close(self) -> None:
        self._closed = True
        for reply in list(self._open):
            reply.close()
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.close()


def _head(out: Outgoing, route: Route) -> bytes:
    length = "" if out.body is None else f"Content-Length: {len(out.body)}\r\n"
    return f"{out.method}{route.start}{route.lines(out.headers)}{length}\r\n".encode()


def _answered(exc: Exception) -> bool:
    """Did part of an answer come before the end? Then the upstream may have acted, and nothing is sent twice."""
    return isinstance(exc, aiohttp.ServerDisconnectedError) and not isinstance(exc.message, str)
