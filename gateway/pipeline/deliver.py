"""How does an answer reach the client? The only place that writes to its connection.

``Client`` is the caller's side of one request: its headers and body on the way in, one response on the way out. Nothing is
written before ``start``, which is the commit point on the wire: status line, headers and everything held leave in one write.
"""
import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline.direct import Direct, possible
from gateway.policy.access import is_loopback
from gateway.policy.keys import Principal
from gateway.upstream import buffered
from gateway.upstream.encoding import open_body
from gateway.wire.base import Shown, Wire

UPLOAD_IDLE_S = 30.0                             # between two reads of a request body
UPLOAD_BYTES_PER_S = 4_096                       # slower than this on the whole is nobody who means it
THREAD_BYTES = 16_384                            # larger compressed bodies are opened off the loop, and not by everybody's threads
_OPENERS = ThreadPoolExecutor(2, "gateway-open")
_NONE: Mapping[str, str] = {}
EVENT_STREAM = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


class Tape(Protocol):
    def add(self, data: bytes) -> None: ...

    @property
    def body(self) -> bytes | None: ...


class Client:
    """One caller. ``base_headers`` (CORS, request id) go onto every response."""

    __slots__ = ("http", "call", "wire", "content_type", "base_headers", "headers", "method", "query_key", "response", "rate_headers",
                 "route_headers", "step_headers", "tape", "committed", "last_write", "written", "keyless", "principal", "_pulse")

    def __init__(self, http: BaseRequest, call: Call, wire: Wire, base_headers: Mapping[str, str],
                 query_key: str | None) -> None:
        self.http = http
        self.call = call
        self.wire = wire
        self.content_type = wire.content_type        # of a stream
        self.base_headers = base_headers
        self.headers: Mapping[str, str] = http.headers
        self.method = http.method
        self.query_key = query_key
        self.response: web.StreamResponse | None = None
        self.rate_headers: Mapping[str, str] | None = None
        self.route_headers: Mapping[str, str] | None = None
        self.step_headers: Mapping[str, str] | None = None   # what the steps before the attempts have to say
        self.tape: Tape | None = None                # hears every byte of the answer
        self.committed = False                       # an answer has begun to leave: no other target may be used
        self.last_write = 0.0
        self.written = 0
        self.keyless = False                         # this surface is open to this caller without a key
        self.principal: Principal | None = None      # who it is, where the door knows already
        self._pulse: asyncio.Task[None] | None = None

    @property
    def started(self) -> bool:
        """Has anything left? Then the status line is gone and no other target may answer."""
        return self.response is not None

    @property
    def local(self) -> bool:
        """Does the connection come from this machine? A UNIX socket does. Only the peer tells; headers can say anything."""
        transport = self.http.transport
        peer = transport.get_extra_info("peername") if transport is not None else None
        return not (isinstance(peer, tuple) and peer) or is_loopback(f"[{peer[0]}]" if ":" in peer[0] else peer[0])

    async def body(self, limit: int) -> bytes:
        """The request body, decoded, at most ``limit`` bytes. Raises body_too_large, unsupported_media_type, bad_request."""
        if (self.http.content_length or 0) > limit:
            raise GatewayError("body_too_large", f"The request body is larger than {limit} bytes.")
        whole: bytes | None = getattr(self.http, "whole", None)
        raw = whole if whole is not None else await self._read(limit)
        encoding = self.headers.get("Content-Encoding")
        if encoding is None:
            return raw
        if len(raw) > THREAD_BYTES:
            return await asyncio.get_running_loop().run_in_executor(_OPENERS, opened, raw, encoding, limit)
        return opened(raw, encoding, limit)

    async def _read(self, limit: int) -> bytes:
        """As it comes."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            await self.http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces: list[bytes] = []
        size = 0
        content, loop = self.http.content, asyncio.get_running_loop()
        begun = loop.time()
        while True:
            try:
                if content.is_eof():
                    piece = await buffered.read(content)
                else:
                    patience_s = begun + UPLOAD_IDLE_S + size / UPLOAD_BYTES_PER_S
                    async with asyncio.timeout_at(min(patience_s, loop.time() + UPLOAD_IDLE_S)):
                        piece = await buffered.read(content)
            except TimeoutError:
                raise GatewayError("bad_request", "The request body did not come, or too slowly.", status=408) from None
            except (web.RequestPayloadError, ValueError):
                raise GatewayError("bad_request", "The request body was cut off or is not framed properly.") from None
            if not piece:
                break
            size += len(piece)
            if size > limit:
                raise GatewayError("body_too_large", f"The request body is larger than {limit} bytes.")
            pieces.append(piece)
            if content.at_eof():                     # the usual case: one read, and nothing to wait for after it
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # ------------------------------------------------------------------ a stream
    async def start(self) -> None:
        """Prepare the 200 of a stream; its head leaves with the first write. Again after an early start: nothing."""
        if self.response is not None:
            return
        headers = self._headers()
        headers["Content-Type"] = self.content_type
        headers.update(EVENT_STREAM)
        self.call.status = 200
        if possible(self.http):
            self.response = direct = Direct(self.http, 200, headers, self.call.wall)
            direct.begin()
        else:
            self.response = response = web.StreamResponse(status=200, headers=headers)
            await response.prepare(self.http)

    async def write(self, data: bytes, now: float) -> None:
        """Send frames; waits while the client reads slower than we write. Raises client_gone."""
        self.last_write = now
        self.written += len(data)
        if self.tape is not None:
            self.tape.add(data)
        try:
            await self.response.write(data)  # type: ignore[union-attr]
        except ConnectionError:
            raise GatewayError("client_gone", "The client closed the connection.") from None

    async def end(self, data: bytes = b"") -> None:
        """Send the last frames and the end of the stream in one write."""
        self.written += len(data)
        if self.tape is not None:
            self.tape.add(data)
        try:
            await self.response.write_eof(data)  # type: ignore[union-attr]
        except ConnectionError:
            raise GatewayError("client_gone", "The client closed the connection.") from None

    def pulse(self, now: float) -> None:
        """Break a silence with whatever the format allows. Called by a timer, between writes of whole frames."""
        self.last_write = now
        if self.wire.silence and (self._pulse is None or self._pulse.done()):
            self._pulse = asyncio.ensure_future(self._beat())

    def start_early(self, now: float) -> None:
        """Send 200 and a keep-alive although nothing is decided (timeouts.early_keepalive_s): errors then come in-band."""
        if self.wire.silence and self._pulse is None and not self.started:
            self.last_write = now
            self._pulse = asyncio.ensure_future(self._early())

    async def _early(self) -> None:
        await self.start()
        await self._beat()

    async def _beat(self) -> None:
        try:
            await self.response.write(self.wire.silence)  # type: ignore[union-attr]
        except ConnectionError:
            pass                                     # the handler's own task learns of it and ends the request

    def close(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()

    # ------------------------------------------------------------------ a whole answer
    async def answer(self, body: bytes, status: int = 200, content_type: str = "application/json",
                     more: Mapping[str, str] | None = None) -> None:
        """Send a whole response."""
        headers = self._headers()
        headers["Content-Type"] = content_type
        if more:
            headers.update(more)
        self.call.status = status
        self.written += len(body)
        if self.tape is not None:
            self.tape.add(body)
        try:
            if possible(self.http):
                self.response = direct = Direct(self.http, status, headers, self.call.wall)
                await direct.whole(body)
            else:
                self.response = response = web.Response(status=status, body=body, headers=headers)
                await response.prepare(self.http)
                await response.write_eof()
        except ConnectionError:
            raise GatewayError("client_gone", "The client closed the connection.") from None

    async def fail(self, error: GatewayError) -> None:
        """Tell the failure that ends the request: a status line if nothing has left, else a frame of the started stream."""
        self.call.error = self.call.error or error
        if error.kind == "client_gone":
            self.call.outcome = "client_gone"
            return
        try:
            if self.response is None:
                await self.answer(self.wire.render_error(error, self.call.operation), error.status,
                                  more=error_headers(error))
            elif self.call.request is not None:
                await self.end(self.wire.error_frame(error, Shown(model=self.call.request.model, same=False,
                                                                  request=self.call.request,
                                                                  operation=self.call.operation)))
        except GatewayError:
            self.call.outcome = "client_gone"

    def _headers(self) -> dict[str, str]:
        return {**self.base_headers, **(self.rate_headers or _NONE), **(self.step_headers or _NONE), **(self.route_headers or _NONE)}


def opened(raw: bytes, encoding: str, limit: int) -> bytes:
    """A compressed body, opened; its failures are the client's."""
    try:
        return open_body(raw, encoding, limit)
    except ValueError:
        raise GatewayError("unsupported_media_type", f"The content encoding {encoding[:60]!r} is not known here; use gzip, "
                           "br or zstd.", param="content-encoding") from None
    except OverflowError:
        raise GatewayError("body_too_large", f"The request body is larger than {limit} bytes when decoded.") from None
    except GatewayError as error:
        raise GatewayError("bad_request", f"The request body cannot be decoded: {error.message}.") from None


def error_headers(error: GatewayError) -> dict[str, str]:
    """Retry-After (whole seconds, rounded up) and retry-after-ms; WWW-Authenticate on 401."""
    headers = {}
    if error.retry_after_s is not None and error.status in (429, 503):
        headers["Retry-After"] = str(max(1, -int(-error.retry_after_s // 1)))
        headers["retry-after-ms"] = str(int(error.retry_after_s * 1000))
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers
