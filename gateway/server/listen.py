"""How does the gateway accept requests? Sockets, the low-level aiohttp server, the way from a path to its door.

``web.Server`` without an application: 11.1k against 7.3k requests/s on one core, and nothing between the parser and the
table of doors. ``handler_cancellation`` makes a closed connection cancel the handler, so a client that leaves takes its
upstream along.
"""
import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.admin import door as admin
from gateway.admin.office import Office
from gateway.config.snapshot import Snapshot
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.mcp.door import PREFIX as MCP
from gateway.mcp.door import Mcp
from gateway.server import compose
from gateway.server.crew import join
from gateway.server.drain import Drain
from gateway.server.http import HttpServer
from gateway.server.sockets import BACKLOG, KEEP_FILE, Sockets, bound_unix
from gateway.shared.local import LocalHub
from gateway.surfaces import routes
from gateway.surfaces.desk import Desk, preflight

log = logging.getLogger("gateway.server")

KEEPALIVE_S = 75.0
ADMIN = "/admin"
# Whose words tell of a path that leads nowhere; the last one is everybody else's.
NOWHERE = tuple(routes.Door("nowhere", "GET", path, routes.ROUTES[0].handler, wire=wire) for path, wire in (
    ("/v1/messages/", "anthropic"), ("/v1beta/", "gemini"), ("/api/", "ollama"), ("/", "openai-chat")))


def dispatcher(desk: Desk, office: Office, mcp: Mcp) -> Callable[[BaseRequest], Awaitable[web.StreamResponse]]:
    """The handler of the low-level server."""
    exact = routes.EXACT

    async def dispatch(http: BaseRequest) -> web.StreamResponse:
        path = http.raw_path                         # with a query, if there is one
        doors = exact.get(path)
        if doors is None:
            path = http.rel_url.raw_path
            doors = routes.find(path)
        door = doors.get(http.method)
        try:
            if door is not None:
                return await door.handler(http, door, desk)
            if path == ADMIN or path.startswith(ADMIN + "/"):
                return await admin.answer(http, office)
            if path == MCP or path.startswith(MCP + "/"):
                return await mcp.answer(http)
            return await misfit(http, doors, desk)
        except GatewayError as error:
            if error.kind != "client_gone":
                raise
            raise ConnectionResetError("the client went away") from None

    return dispatch


async def misfit(http: BaseRequest, doors: dict[str, routes.Door], desk: Desk) -> web.StreamResponse:
    """OPTIONS and HEAD, a wrong method, a path that leads nowhere."""
    methods = sorted(doors)
    if http.method == "OPTIONS":
        allowed = desk.ground.snapshot.server.cors_allow_origins
        headers = {"Allow": ", ".join([*methods, "OPTIONS"]), "Server": "gateway",
                   **preflight(http.headers, allowed, methods)}
        return web.Response(status=204, headers=headers)
    if not doors:
        error = GatewayError("not_found", f"There is no {http.method} {http.rel_url.raw_path[:200]} here.")
        nowhere = next((door for door in NOWHERE if http.rel_url.raw_path.startswith(door.path)), NOWHERE[-1])
        return await desk.refuse(http, nowhere, error)
    if http.method == "HEAD" and "GET" in doors:
        return await doors["GET"].handler(http, doors["GET"], desk)
    door = next(iter(doors.values()))
    error = GatewayError("method_not_allowed", f"{http.method} is not possible here; use {' or '.join(methods)}.")
    return await desk.refuse(http, door, error, {"Allow": ", ".join([*methods, "OPTIONS"])})


class Listener:
    """Accepting sockets and everything behind them."""

    def __init__(self, desk: Desk, parts: compose.Parts) -> None:
        self.desk = desk
        self.parts = parts
        self.office = compose.office(desk, parts)
        self.mcp = Mcp(self.office)
        self._server = HttpServer(dispatcher(desk, self.office, self.mcp), handler_cancellation=True, access_log=None,
                                  auto_decompress=False, keepalive_timeout=KEEPALIVE_S)
        self.drain = Drain(self._server, parts.inflight)
        self._tcp: list[asyncio.Server] = []
        self._unix: list[asyncio.Server] = []
        self.jobs = compose.jobs(desk, parts)
        self.host = ""
        self.port = 0

    async def open(self, host: str, port: int, *, tls: ssl.SSLContext | None = None, unix: str = "",
                   given: Sockets | None = None) -> None:
        """Accept on sockets that were opened for us, else on addresses of our own. Raises OSError when one cannot be bound."""
        loop = asyncio.get_running_loop()
        given = given or Sockets([], [])
        if given.tcp or not given.given:
            wanted: list[dict[str, Any]] = [{"sock": one} for one in given.tcp] or [{"host": host, "port": port}]
            for where in wanted:
                self._tcp.append(await loop.create_server(self._server, **where, backlog=BACKLOG, ssl=tls))
            self.host, self.port = self._tcp[0].sockets[0].getsockname()[:2]
        for one in given.unix or ([bound_unix(unix)] if unix else []):
            self._unix.append(await loop.create_unix_server(self._server, sock=one, backlog=BACKLOG, **KEEP_FILE))

    def descriptors(self) -> list[int]:
        """The listening sockets, for a process that takes over."""
        return [one.fileno() for server in (*self._tcp, *self._unix) for one in server.sockets]

    async def close(self, drain_s: float) -> None:
        """Stop accepting, let streams finish up to ``drain_s``, end the rest."""
        self.jobs.stop()
        for server in (*self._tcp, *self._unix):
            server.close()
        await self.mcp.close()
        await self.parts.extras.close()
        await self.drain.run(drain_s)
        self.parts.lag.stop()
        await self.mcp.dissolve()
        self.office.close()                          # requests that ended just now wanted its thread
        await compose.dissolve(self.parts)


def tls_context(snapshot: Snapshot) -> ssl.SSLContext | None:
    if not snapshot.server.tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(snapshot.server.tls_cert, snapshot.server.tls_key)
    return context


async def listen(snapshot: Snapshot, host: str = "", port: int | None = None, *, clock: Clock | None = None,
                 given: Sockets | None = None, crew: LocalHub | None = None) -> Listener:
    """A listener that accepts; ``host`` and ``port`` override the configuration (port 0: any free one), sockets that were
    opened for us (``given``) all of that. ``crew``: this is one of several workers."""
    desk, parts = compose.build(snapshot, clock=clock, leads=crew is None or crew.number == 0)
    listener = Listener(desk, parts)
    server = snapshot.server
    await parts.store.open()
    await parts.keeper.open()
    try:
        await compose.share(desk, parts, crew)
        if parts.sharing is not None:
            parts.sharing.watch(listener.office.sessions)
        if crew is not None:
            join(listener, crew)
        await compose.open_keys(desk, parts)
        await parts.keeping.open()
        await parts.combobook.refresh()
        if snapshot.config.mcp.enabled:
            await listener.mcp.open()
        await listener.open(host or server.host, server.port if port is None else port, tls=tls_context(snapshot),
                            unix=server.unix, given=given)
    except BaseException:
        await listener.mcp.dissolve()
        await compose.dissolve(parts)
        raise
    listener.jobs.start(listener.port)
    parts.lag.start()
    return listener


def url(snapshot: Snapshot, listener: Listener, host: str) -> str:
    if listener.port == 0:
        return "its UNIX socket"
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if snapshot.server.tls_cert else 'http'}://{shown}:{listener.port}"
