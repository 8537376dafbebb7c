"""How is a request below /mcp answered? Streamable HTTP at /mcp, SSE at /mcp/sse and /mcp/messages: who asks is known before the SDK.

The SDK is imported with the first configuration that enables MCP, never before. Requests carry no session: /mcp has nothing to
stream by itself, so GET is 405 at once.
"""
import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.admin.door import body
from gateway.admin.office import Office
from gateway.config.snapshot import Snapshot
from gateway.core.errors import GatewayError
from gateway.core.ids import request_id
from gateway.mcp.asgi import Exchange
from gateway.mcp.callers import Caller, caller, check_origin
from gateway.mcp.letters import Letter, Letters
from gateway.pipeline.deliver import error_headers
from gateway.surfaces.desk import cors, preflight

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.sse import SseServerTransport
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

log = logging.getLogger("gateway.mcp")

PREFIX: Final = "/mcp"
DOORS: Final[dict[str, str]] = {"/mcp": "POST", "/mcp/sse": "GET", "/mcp/messages": "POST"}
MAX_STREAMS: Final = 64
HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "gateway"}
CODES: Final = {401: -32001, 403: -32003, 404: -32601, 405: -32601, 429: -32029, 503: -32029}
INVALID_REQUEST: Final = -32600


def warm(snapshot: Snapshot) -> None:
    """Import what these settings need, where nobody waits for it: a second's work."""
    if snapshot.config.mcp.enabled:
        import gateway.mcp.sdk  # noqa: F401


class Mcp:
    """The MCP server of one process."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self._opening = asyncio.Lock()
        self._closed = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._streams: set[Exchange] = set()
        self._server: Server[Any] | None = None
        self._http: StreamableHTTPSessionManager | None = None
        self._sse: SseServerTransport | None = None
        self.letters = Letters(office, _user)

    async def answer(self, http: BaseRequest) -> web.StreamResponse:
        """Everything below /mcp."""
        allowed = self.office.ground.snapshot.server.cors_allow_origins
        name = request_id()
        headers = {**HEADERS, "X-Request-ID": name, "request-id": name, **(cors(http.headers, allowed) if allowed else {})}
        try:
            return await self._answered(http, headers, allowed)
        except GatewayError as error:
            return refusal(error, headers)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("%s %s failed inside the gateway", http.method, http.rel_url.raw_path[:200])
            return refusal(GatewayError("internal", "The gateway failed on this request; its log has the details."), headers)

    async def _answered(self, http: BaseRequest, headers: dict[str, str], allowed: tuple[str, ...]) -> web.StreamResponse:
        path = http.rel_url.raw_path
        method = DOORS.get(path)
        if not self.office.ground.snapshot.config.mcp.enabled:
            raise GatewayError("not_found", "The MCP server is switched off ([mcp] enabled).")
        if method is None:
            raise GatewayError("not_found", f"There is no {path[:200]!r} here; MCP is at {', '.join(DOORS)}.")
        if http.method == "OPTIONS":
            told = preflight(http.headers, allowed, [method])
            return web.Response(status=204, headers={**headers, "Allow": f"{method}, OPTIONS", **told})
        if http.method != method:
            headers["Allow"] = f"{method}, OPTIONS"
            raise GatewayError("method_not_allowed", f"Only {method} is possible at {path}.")
        check_origin(http, allowed)
        who = caller(http, self.office)
        if self.office.ground.inflight.draining:
            raise GatewayError("shed", "The gateway is shutting down.", retry_after_s=1.0)
        await self.open()
        if path == "/mcp/messages":
            return await self._message(http, who, headers)
        exchange = Exchange(http, await body(http) if method == "POST" else b"", headers)
        return await (self._stream(exchange, who) if path == "/mcp/sse" else self._post(exchange, who))

    async def _post(self, exchange: Exchange, who: Caller) -> web.StreamResponse:
        assert self._http is not None
        app: Any = self._http.handle_request
        return await exchange.run(app, caller=who, user=_user(who))

    async def _message(self, http: BaseRequest, who: Caller, headers: dict[str, str]) -> web.StreamResponse:
        """For a stream that this worker holds, or another one."""
        letter = Letter(http.rel_url.raw_query_string.encode("ascii", "replace"), http.headers.get("Content-Type", ""),
                        await body(http), who.name, who.scopes)
        receipt = await self.letters.post(letter, who)
        return web.Response(status=receipt.status, text=receipt.text, headers=headers)

    async def _stream(self, exchange: Exchange, who: Caller) -> web.StreamResponse:
        if len(self._streams) >= MAX_STREAMS:
            raise GatewayError("shed", f"{MAX_STREAMS} clients are connected by SSE already.", retry_after_s=5.0)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            assert self._sse is not None and self._server is not None
            async with self._sse.connect_sse(scope, receive, send) as (read, write):
                await self._server.run(read, write, self._server.create_initialization_options())

        self._streams.add(exchange)
        try:
            return await exchange.run(app, caller=who, user=_user(who))
        finally:
            self._streams.discard(exchange)

    # ------------------------------------------------------------------ life
    async def open(self) -> None:
        """Ready to answer; again: nothing."""
        if self._http is not None:
            return
        async with self._opening:
            if self._http is not None:
                return
            await asyncio.to_thread(warm, self.office.ground.snapshot)
            from gateway.mcp import sdk
            from gateway.mcp.calling import Toolbox

            self._server = sdk.server(Toolbox(self.office), _who)
            self._sse = sdk.sse()
            self.letters.app = self._sse.handle_post_message
            manager, ready = sdk.streamable(self._server), asyncio.Event()
            self._life = asyncio.create_task(self._live(manager, ready))
            await ready.wait()
            self._http = manager

    async def _live(self, manager: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
        async with manager.run():
            ready.set()
            await self._closed.wait()

    async def close(self) -> None:
        """End the streams; what runs now ends by itself or with its connection."""
        for exchange in list(self._streams):
            exchange.leave()

    async def dissolve(self) -> None:
        """After the last request."""
        await self.letters.close()
        self._closed.set()
        if self._life is not None:
            await self._life


def _user(who: Caller) -> Any:
    from gateway.mcp.sdk import user

    return user(who)


def _who(context: Any) -> Caller:
    """Every message comes with the HTTP request that carried it, and each of those was let in by its own key."""
    found = context.request.scope["caller"]
    assert isinstance(found, Caller)
    return found


def refusal(error: GatewayError, headers: dict[str, str]) -> web.Response:
    """A failure before the SDK, as JSON-RPC without an id, so that clients show its words."""
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": CODES.get(error.status, INVALID_REQUEST), "message": error.message,
                                                    "data": {"type": error.type, "code": error.code}}}
    return web.Response(status=error.status, body=msgspec.json.encode(told), content_type="application/json",
                        headers={**headers, **error_headers(error)})
