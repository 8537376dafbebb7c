"""What happens on one connection to an upstream: a request goes out, an answer comes in, one at a time.

The parser is llhttp in its strict mode: conflicting or repeated lengths, a length beside chunks, folded lines, bare line feeds,
control characters and odd chunk sizes end the connection. It sees a head only when that is there as a whole and within bounds.
Its callbacks for fields and body are methods of a dict and of a list: no Python runs for a chunk but what hands on a whole read.
"""
import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from gateway.upstream.failures import cut, told
from gateway.upstream.h1.headers import Headers, merged
from gateway.upstream.h1.reply import H1Reply
from gateway.upstream.h1.tls import remember

if TYPE_CHECKING:
    from gateway.upstream.h1.pool import Origin, Pool

HEAD_BYTES: Final = 65_536                   # some providers send large x-ratelimit and CSP lines
MAX_FIELDS: Final = 256
MAX_EARLY: Final = 32                        # 1xx answers before the real one
QUIET_BYTES: Final = 65_536                  # of chunk extensions and trailers, without any body
JOIN_BYTES: Final = 65_536                   # a body smaller than this is copied behind its head
PIECE_BYTES: Final = 262_144                 # a larger body leaves in pieces, as fast as the socket takes them

_END: Final = b"\r\n\r\n"
_START: Final = b"HTTP/1."
_OLD: Final = b"HTTP/1.0"
_BODILESS: Final = frozenset({204, 304})
_KEEP: Final = re.compile(rb"timeout\s*=\s*(\d{1,6})", re.I)

NOT_HTTP: Final = ("transport", "the answer is not HTTP")
TOO_LARGE: Final = ("transport", "the answer's headers are too large")
CLOSED: Final = ("transport", "connection closed before an answer came")
SHUT: Final = ("transport", "the gateway is shutting down")
BROKEN: Final = ("truncated", "the answer ended before it was complete")


# Phases: nothing asked; asked; an answer has begun; the connection has ended.
IDLE, HEAD, BODY, OVER = range(4)


class Connection(asyncio.Protocol):
    """Owned by the pool while idle, by an exchange while busy. Everything is synchronous; ``begin`` gives what to wait for."""

    __slots__ = ("origin", "reused", "answered", "failed", "idle_until", "transport", "on_header", "on_body",
                 "_pool", "_parser", "_fields", "_parts", "_held", "_phase", "_waiter", "_reply", "_done", "_keep", "_n_early",
                 "_n_quiet", "_to_the_end", "_bodiless", "_keep_s", "_unsent", "_full", "_paused")

    def __init__(self, origin: "Origin", pool: "Pool") -> None:
        self.origin = origin
        self.reused = self.answered = False
        self.failed: tuple[str, str] = CLOSED                     # why there is no answer
        self.idle_until = 0.0
        self.transport: asyncio.Transport | None = None
        self._pool = pool
        self._fields: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._held = bytearray()                                  # the beginning of a head
        self._phase = IDLE
        self._waiter: asyncio.Future[H1Reply | None] | None = None
        self._reply: H1Reply | None = None
        self._done = self._keep = self._to_the_end = self._bodiless = False
        self._n_early = self._n_quiet = 0
        self._keep_s: float | None = None
        self._unsent: memoryview | None = None
        self._full = self._paused = False
        self.on_header: Callable[[bytes, bytes], object] = self._fields.setdefault
        self.on_body: Callable[[bytes], object] = self._parts.append
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    # -- for the exchange

    def begin(self, head: bytes, body: bytes | None, bodiless: bool) -> "asyncio.Future[H1Reply | None]":
        """Send a request. The future gives the started answer; None: there is none, and ``failed`` says why."""
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self._phase, self._bodiless = HEAD, bodiless
        self.answered = self._done = self._to_the_end = False
        self._n_early = self._n_quiet = 0
        self._keep_s = None
        transport = self.transport
        if transport is None:
            self._over(CLOSED)
        elif not body:
            transport.write(head)
        elif len(body) < JOIN_BYTES:
            transport.write(head + body)
        elif len(body) <= PIECE_BYTES:
            transport.writelines((head, body))
        else:
            self._unsent = memoryview(body)
            transport.write(head)
            self._send_on()
        return waiter

    def give_up(self, waiter: "asyncio.Future[H1Reply | None]") -> None:
        """Whoever waited for the answer was cancelled, perhaps after it had come."""
        if waiter.done() and not waiter.cancelled():
            reply = waiter.result()
            if reply is not None:
                reply.close()
        else:
            self.drop()

    def drop(self) -> None:
        """Close the socket now, whatever was on its way. Who reads the answer knows already."""
        self._reply = None
        self._over(CLOSED)

    def shut(self) -> None:
        """The gateway goes down: who reads the answer is told."""
        self._over(SHUT)

    def read_on(self) -> None:
        if self._paused:
            self._paused = False
            if self.transport is not None and not self.transport.is_closing():
                self.transport.resume_reading()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._phase == BODY:
            whole = self._to_the_end and exc is None
            self._over(None if whole else _why(exc))
        else:
            error = None if exc is None else told(exc)
            self._over(CLOSED if error is None else (error.kind, error.message))

    def eof_received(self) -> bool | None:
        return None                                               # close: what we still had to send nobody waits for

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._send_on()

    def data_received(self, data: bytes) -> None:
        if self._phase == HEAD:
            data = self._head(data)
            if not data:
                return
        if self._phase == BODY:
            self._body(data)
        else:
            self.drop()                                           # nobody asked for it

    # -- llhttp's callbacks

    def on_message_begin(self) -> None:
        if self._done:
            raise HttpParserError                                 # a second answer, in the same read: its body is nobody's

    def on_message_complete(self) -> None:
        self._done = True
        parser = self._parser
        self._keep = parser is not None and parser.should_keep_alive()

    # -- the way out

    def _send_on(self) -> None:
        while self._unsent is not None and not self._full and self.transport is not None:
            piece, rest = self._unsent[:PIECE_BYTES], self._unsent[PIECE_BYTES:]
            self._unsent = rest if rest.nbytes else None
            self.transport.write(piece)

    # -- the way in

    def _head(self, data: bytes) -> bytes:
        """Read heads up to that of the answer. Gives what follows it; b"" when more must come, or nothing will."""
        self.answered = True
        while data and self._phase == HEAD:
            held = self._held
            if held:
                start = max(len(held) - len(_END) + 1, 0)
                held += data
                end = held.find(_END, start)
                data = bytes(held) if end >= 0 else b""
            else:
                end = data.find(_END)
                if end < 0:
                    held += data
                    data = b""
            if end < 0:
                self._hold(held)
                return b""
            held.clear()
            end += len(_END)
            if end > HEAD_BYTES:
                self._over(TOO_LARGE)
            else:
                self._heads(data[:end])
            data = data[end:]
        if self._phase == BODY and not data and (self._done or self._bodiless):
            self._finish(False)
        return data

    def _hold(self, held: bytearray) -> None:
        """A head that is not there as a whole. What can become none is not waited for."""
        if len(held) > HEAD_BYTES:
            self._over(TOO_LARGE)
        elif not held.startswith(_START[:len(held)]) or b"\n\n" in held:
            self._over(NOT_HTTP)

    def _heads(self, head: bytes) -> None:
        """One whole head."""
        fields, parser = self._fields, self._parser
        n_fields = head.count(b"\n") - 2
        if n_fields > MAX_FIELDS:
            self._over(TOO_LARGE)
            return
        fields.clear()
        upgraded = False
        assert parser is not None
        try:
            if not head.startswith(_START):
                raise HttpParserError
            parser.feed_data(head)
        except HttpParserUpgrade:
            upgraded = True
        except HttpParserError:
            self._over(NOT_HTTP)
            return
        status = parser.get_status_code()
        named = {name.lower(): value for name, value in fields.items()}
        if len(named) != n_fields:
            named = merged(head)
        fields.clear()                                            # a stream may be long: what it began with is kept once
        coding = named.get(b"transfer-encoding")
        if status < 100 or (coding is not None and coding.lower() != b"chunked"):
            self._over(NOT_HTTP)
        elif status >= 200 or upgraded or status == 101:
            self._answer(status, named, upgraded or status == 101, head.startswith(_OLD))
        elif coding is not None or b"content-length" in named or self._n_early >= MAX_EARLY:
            self._over(NOT_HTTP)                                  # RFC 9110 15.2: such an answer has no body
        else:
            self._n_early += 1
            self._done = False

    def _answer(self, status: int, named: dict[bytes, bytes], upgraded: bool, old: bool) -> None:
        """The head that counts: whoever asked goes on from here."""
        reply = self._reply = H1Reply(status, Headers(named), self)
        self._phase = BODY
        self._bodiless = self._bodiless or upgraded or status in _BODILESS
        if b"content-length" not in named:
            self._to_the_end = b"transfer-encoding" not in named
        elif status in _BODILESS:
            self._keep = False                                    # told of a body that must not come: perhaps it does
        if (hint := named.get(b"keep-alive")) is not None and (found := _KEEP.search(hint)):
            self._keep_s = float(found[1])
        if old and b"transfer-encoding" in named:
            self._keep_s = 0.0                                    # RFC 9112 6.1: its framing is not to be trusted
        if self._bodiless and (upgraded or not self._done):
            self._keep = False
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def _body(self, data: bytes) -> None:
        parts, parser, reply = self._parts, self._parser, self._reply
        if self._bodiless or parser is None or reply is None:
            self._finish(True)
            return
        broken = False
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            broken = True
        if parts:
            enough = reply.put(parts[0] if len(parts) == 1 else b"".join(parts))
            parts.clear()
            self._n_quiet = 0
        else:
            enough = False
            self._n_quiet += len(data)
        if self._done:
            self._finish(broken)
        elif broken or self._n_quiet > QUIET_BYTES:
            self._over(BROKEN)
        elif enough and not self._paused and self.transport is not None and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    # -- the end of an exchange, and of the connection

    def _finish(self, excess: bool) -> None:
        """The answer is whole. ``excess``: something followed it, so that who counts lengths cannot be trusted."""
        reply, transport = self._reply, self.transport
        if self.origin.tls and not self.reused and transport is not None:
            remember(transport)
        free = self._keep and not excess and self._unsent is None and transport is not None \
            and not transport.is_closing() and not transport.get_write_buffer_size()
        if not free:
            self._over(BROKEN if excess and not self._bodiless else None)
            return
        self._reply = None
        self._phase = IDLE
        self.reused = True
        self.read_on()
        if reply is not None:
            reply.end()
        self._pool.give(self, self._keep_s)

    def _over(self, why: tuple[str, str] | None) -> None:
        """This connection has ended. What waits for it learns why; None: its answer was whole."""
        if self._phase == OVER:
            return
        self._phase = OVER
        self._parser = self._unsent = None
        self.on_header = self.on_body = _nothing
        self._pool.forget(self)
        reply, self._reply = self._reply, None
        waiter, self._waiter = self._waiter, None
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.abort()
        if reply is not None:
            reply.end(why)
        if waiter is not None and not waiter.done():
            self.failed = why or CLOSED
            waiter.set_result(None)


def _why(exc: Exception | None) -> tuple[str, str]:
    if exc is None:
        return BROKEN
    error = cut(exc)
    return error.kind, error.message


def _nothing(*args: bytes) -> None:
    """Holds no reference, unlike the methods it replaces."""
