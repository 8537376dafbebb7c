"""How do the requests of one connection follow each other? One after the other, in the connection's own task.

aiohttp makes a task for each request, so that what a handler sets in its context is not seen by the next; ours set nothing there.
And most requests need not be parsed by aiohttp (plain.py). Both together save 25 µs of a request's 280.
"""
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import EMPTY_PAYLOAD, ClientConnectionResetError, StreamReader, web, web_protocol
from aiohttp.http import HttpVersion10, HttpVersion11, StreamWriter
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from gateway.server.plain import START, Head, Plain
from gateway.surfaces import generate, routes

log = logging.getLogger("gateway.http")

PATHS: Final = frozenset(door.path for door in routes.ROUTES if door.handler is generate.generate)      # of plain requests
_SPOKEN: Final = frozenset({HttpVersion10, HttpVersion11})   # a line without a version is a request of HTTP/0.9 to the parser
Handler = Callable[[BaseRequest], Awaitable[web.StreamResponse]]
# What ``start`` knows of aiohttp's protocol; where a later one looks otherwise inside, its own is used.
_INSIDE: Final = {"_messages", "_waiter", "_msg_queue_resume_size", "_request_factory", "_request_handler", "_task_handler",
                  "_manager", "_request_in_progress", "_request_count", "_close", "_force_close", "_read_bufsize", "_keepalive",
                  "_lingering_time", "_next_keepalive_close_time", "_keepalive_handle", "_keepalive_timeout"}
_DOES: Final = {"_resume_reading_if_drained", "_pause_transport_reading", "_process_keepalive", "_make_error_handler"}
_KNOWN: Final = (_INSIDE <= set(RequestHandler.__slots__) and _DOES <= set(dir(RequestHandler))
                 and all(hasattr(web_protocol, name) for name in ("_ErrInfo", "ERROR", "_PAYLOAD_ACCESS_ERROR")))


class Succession(RequestHandler):
    """One connection's requests."""

    __slots__ = ("_head", "_n_left", "_rest")

    def __init__(self, manager: web.Server, **given: Any) -> None:
        super().__init__(manager, **given)
        self._head: Head | None = Head() if _KNOWN else None  # None: what comes is aiohttp's to parse from now on
        self._n_left = 0                                     # bytes of a plain request's body that are to come, …
        self._rest: StreamReader | None = None               # … and where they go

    def data_received(self, data: bytes) -> None:
        """A plain request is taken as it is. After a read that is none, or comes too early, only aiohttp knows where it stands."""
        if self._n_left:
            data = self._more(data)
            if not data:
                return
        elif self._head is not None and (not data or self._plain(self._head, data)):
            return
        self._head = None
        super().data_received(data)

    def pause_reading(self) -> None:
        if self._rest is None:
            super().pause_reading()
        else:                                                # the body is not of aiohttp's parser
            self._reading_paused = True
            self._pause_transport_reading()

    def _plain(self, reader: Head, data: bytes) -> bool:
        """Take it, if it is one that may be answered at once."""
        waiter = self._waiter
        early = waiter is None if self._request_count else self._request_in_progress
        if early or self._messages or self._close or self._force_close or getattr(self._manager, "leaving", False):
            return False
        found = reader.read(data) if data.startswith(START) else None
        if found is None:
            return False
        path, headers, n_body, at = found
        if path not in PATHS:
            return False
        whole, content = data[at:], EMPTY_PAYLOAD
        if len(whole) < n_body:
            content = self._rest = StreamReader(self, self._read_bufsize, loop=self._loop)
            content.feed_data(whole)
            self._n_left = n_body - len(whole)
        request = Plain(path, headers, n_body, whole if content is EMPTY_PAYLOAD else None, content, self)
        self._request_count += 1
        self._messages.append((request, content))  # type: ignore[arg-type]
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return True

    def _more(self, data: bytes) -> bytes:
        """More of a body; gives what follows it."""
        rest, mine = self._rest, data[:self._n_left]
        self._n_left -= len(mine)
        if rest is not None:
            rest.feed_data(mine)
            if not self._n_left:
                rest.feed_eof()
                self._rest = None
        return data[len(mine):]

    def connection_lost(self, exc: BaseException | None) -> None:
        rest, self._rest, self._head = self._rest, None, None
        if rest is not None:
            rest.set_exception(ClientConnectionResetError("the client closed the connection"))
        super().connection_lost(exc)

    async def start(self) -> None:
        """Its requests until it ends."""
        if not _KNOWN:
            return await super().start()
        while not self._force_close:
            if not self._messages:
                try:
                    self._waiter = self._loop.create_future()
                    await self._waiter
                finally:
                    self._waiter = None
            request, payload, handler = self._following()
            try:
                if not await self._served(request, payload, handler):
                    break
            finally:
                request._task = None                # it refers to us
            if not self._stays():
                break
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    def _following(self) -> tuple[BaseRequest | Plain, StreamReader, Handler]:
        """The next request, and who answers it."""
        message: Any
        message, payload = self._messages.popleft()
        manager, handler, made = self._manager, self._request_handler, self._request_factory
        assert manager is not None and handler is not None and made is not None
        manager.requests_count += 1
        if type(message) is Plain:
            return message, payload, handler
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
        if not isinstance(message, web_protocol._ErrInfo) and message.version not in _SPOKEN:
            message = web_protocol._ErrInfo(status=400, exc=ValueError(), message="")
        if isinstance(message, web_protocol._ErrInfo):
            handler, message = self._make_error_handler(message), web_protocol.ERROR
        task = self._task_handler or asyncio.current_task()
        return made(message, payload, self, StreamWriter(self, self._loop), task), payload, handler  # type: ignore[arg-type]

    async def _served(self, request: BaseRequest | Plain, payload: StreamReader, handler: Handler) -> bool:
        """Answer it; False: the connection is of no more use."""
        try:
            if isinstance(request, Plain):
                answer = await self._answered(request, handler)
            else:
                answer, gone = await self._handle_request(request, None, handler)
                if gone:
                    return False
            self._keepalive = bool(answer.keep_alive)
            if not payload.is_eof() and not self._force_close:
                await self._unread(payload)
            payload.set_exception(web_protocol._PAYLOAD_ACCESS_ERROR)
            return True
        except ConnectionError:
            return False
        except asyncio.CancelledError:
            self.force_close()
            raise
        except Exception:
            log.exception("a connection failed outside its handler")
            self.force_close()
            return False

    async def _answered(self, request: Any, handler: Handler) -> web.StreamResponse:
        """A plain request: its door writes the answer itself, so nothing of it is left to aiohttp."""
        self._request_in_progress, self._current_request = True, request
        try:
            return await handler(request)
        finally:
            self._request_in_progress, self._current_request = False, None
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)

    async def _unread(self, payload: StreamReader) -> None:
        """The rest of a body that nobody wanted: read over for a while, so that its sender gets to read the answer."""
        try:
            async with asyncio.timeout(self._lingering_time):
                while not payload.is_eof():
                    await payload.readany()
        except TimeoutError:
            self.close()

    def _stays(self) -> bool:
        """May another request come? Then it is waited for, so long."""
        if not self._keepalive or self._close or self._force_close:
            return False
        self._next_keepalive_close_time = until = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(until, self._process_keepalive)
        return True
