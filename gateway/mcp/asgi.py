"""How does an ASGI application answer a request of aiohttp? One request: what came in as events, what goes out as a response."""
import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError

log = logging.getLogger("gateway.mcp")

Event = MutableMapping[str, Any]
App = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]


class Exchange:
    """One request and its response. ``leave``: the server stops, so the application is told that the client went away. A client
    that really goes away cancels the task, and the application with it."""

    def __init__(self, http: BaseRequest, body: bytes, headers: Mapping[str, str]) -> None:
        self.http = http
        self.headers = headers                       # of every answer, besides the application's
        self.response: web.StreamResponse | None = None
        self._body: bytes | None = body
        self._left = asyncio.Event()

    def leave(self) -> None:
        self._left.set()

    def scope(self, **more: Any) -> dict[str, Any]:
        http = self.http
        transport = http.transport
        peer = transport.get_extra_info("peername") if transport is not None else None
        return {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": http.method,
                "scheme": http.scheme, "path": http.rel_url.path, "raw_path": http.rel_url.raw_path.encode("ascii", "replace"),
                "query_string": http.rel_url.raw_query_string.encode("ascii", "replace"), "root_path": "",
                "headers": [(name.lower(), value) for name, value in http.raw_headers],
                "client": tuple(peer[:2]) if isinstance(peer, tuple) else None, "server": None, "extensions": {}, **more}

    async def receive(self) -> Event:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            response = web.StreamResponse(status=event["status"])
            for name, value in event.get("headers", ()):
                if name.lower() not in (b"connection", b"server", b"date", b"transfer-encoding"):
                    response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
            for name, text in self.headers.items():
                response.headers.setdefault(name, text)
            self.response = response
            return
        try:
            await self._write(self._started(), event.get("body", b""), not event.get("more_body", False))
        except ConnectionError:                      # the client went away: what is sent then is for nobody
            self.leave()

    async def _write(self, response: web.StreamResponse, body: bytes, last: bool) -> None:
        if not response.prepared:
            await response.prepare(self.http)
        if body:
            await response.write(body)
        if last:
            await response.write_eof()

    def _started(self) -> web.StreamResponse:
        if self.response is None:
            raise RuntimeError("an ASGI application sent a body before its status")
        return self.response

    async def run(self, app: App, **more: Any) -> web.StreamResponse:
        """The response, of which everything has left. Raises what the application raised before its answer began."""
        try:
            await app(self.scope(**more), self.receive, self.send)
        except Exception:
            if self.response is None or not self.response.prepared:
                raise
            log.exception("%s broke off its answer", self.http.rel_url.raw_path[:200])
        if self._left.is_set() and self.response is not None:
            return self.response
        if self.response is None or not self.response.prepared:
            raise GatewayError("internal", "The MCP server gave no answer.")
        return self.response
