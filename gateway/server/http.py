"""What is answered to bytes that are no HTTP request? Our own words, in the shape of our errors, and nothing of those bytes.

aiohttp's own handler writes a traceback with the offending line into the log and the line into the answer: an Authorization
header among them.
"""
import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError
from gateway.core.ids import request_id
from gateway.server.succession import Succession
from gateway.wire.openai_chat.faults import render

log = logging.getLogger("gateway.http")

HEAD_S = 30.0                                    # in which a new connection must have sent the head of a request
STALL_S = 60.0                                   # how often one that is slower than its answer is looked at
# What it must have taken by then: with a byte now and then it would hold its place and its upstream for ever. A line of 1 kB/s,
# which nobody reads a stream by, takes fifteen times as much.
LEAST_TAKEN = 4_096

_WORDS: Final = {
    400: ("bad_request", "This is not a well-formed HTTP request."),
    413: ("body_too_large", "The request line or a header is too large."),
    431: ("bad_request", "The request's headers are too large."),
}


class HttpProtocol(Succession):
    """One connection."""

    _stall: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Is nothing asked, and nothing being answered?"""
        return not self._request_in_progress and not self._messages

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._next_keepalive_close_time = self._loop.time() + HEAD_S
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._cancel_stall()
        super().connection_lost(exc)

    def close(self) -> None:
        """No further request; aiohttp's own ends the task that waits for one and leaves the connection open with nobody behind it."""
        idle = self.idle
        super().close()
        if idle and self.transport is not None:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(-1)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_stall()

    def _watch(self, before: int, written: int = 0) -> None:
        """Does the client take enough of what waits for it? Else its upstream would wait with it for ever."""
        transport = self.transport
        if transport is None:
            return
        waiting, so_far = transport.get_write_buffer_size(), self._written()
        if before >= 0 and before - waiting + max(so_far - written, 0) < LEAST_TAKEN:
            log.info("left a client that has read next to nothing for %g s", STALL_S)
            transport.abort()
            return
        self._stall = self._loop.call_later(STALL_S, self._watch, waiting, so_far)

    def _written(self) -> int:
        """Bytes of the answer that aiohttp wrote: it may go on a little while the client is slow; ours waits (direct.Direct)."""
        return self._current_request.writer.output_size if self._current_request is not None else 0

    def _cancel_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def handle_error(self, request: BaseRequest, status: int = 500, exc: BaseException | None = None,
                     message: str | None = None) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            raise exc                                # the client is gone: the caller knows that this is no failure
        if status >= 500:
            log.error("a request failed outside its handler", exc_info=exc)
        else:
            log.info("refused: %d %s", status, HTTPStatus(status).phrase)
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer has left")
        kind, text = _WORDS.get(status, ("internal", "The gateway failed on this request.") if status >= 500 else _WORDS[400])
        name = request_id()
        answer = web.Response(status=status, body=render(GatewayError(kind, text, status=status)), headers={
            "Content-Type": "application/json", "Server": "gateway", "X-Request-ID": name, "request-id": name})
        answer.force_close()
        return answer


class LastRequest(BaseRequest):
    """One that its connection does not outlive, so that its client makes the next one where somebody stays."""

    @property
    def keep_alive(self) -> bool:
        return False


class HttpServer(web.Server):
    """``web.Server`` with our protocol. ``leaving``: from now on every answer closes its connection."""

    leaving = False

    def _make_request(self, message: Any, payload: Any, protocol: RequestHandler, writer: Any, task: Any) -> BaseRequest:
        made = LastRequest if self.leaving else BaseRequest
        return made(message, payload, protocol, writer, task, self._loop)

    def idle(self) -> list[HttpProtocol]:
        """Connections that wait for a request."""
        return [one for one in self.connections if isinstance(one, HttpProtocol) and one.idle]

    def __call__(self) -> RequestHandler:
        return HttpProtocol(self, loop=self._loop, **self._kwargs)
