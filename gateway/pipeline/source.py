"""What does an upstream's answer consist of? Bytes in, events out, whether it streamed or answered whole.

A stream may be answered with JSON and the reverse; an HTML page or a JSON error may come under 200. The first bytes decide,
not the content type alone. An account's key that the upstream echoes is blotted out here, before anybody reads it.
"""
import logging
from typing import TYPE_CHECKING, cast

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import Scrubber
from gateway.upstream.transport import Reply
from gateway.wire import names
from gateway.wire.base import Decoder, Follower, Numbered
from gateway.wire.bedrock_converse.eventstream import TYPE as AWS_TYPE
from gateway.wire.jsonl import LINES_TYPE
from gateway.wire.sse import END, nth_end

if TYPE_CHECKING:
    from gateway.pipeline.attempt import Exchange

BODY_LIMIT = 32 << 20
OTHER_STREAMS = frozenset({LINES_TYPE, AWS_TYPE})    # formats of streams that only their content type tells from an answer
LARGE = 8_192                                    # bytes of a read of which it pays to look at the parts
OPENING_FRAMES = 4                               # what opens a stream, and text enough to know its frames by
CLOSING_FRAMES = 3                               # a reason, the counts, the end: in every format
log = logging.getLogger("gateway.source")
ODD = (TypeError, KeyError, AttributeError, IndexError, ValueError, RecursionError)
BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


class Source:
    """One reply, read as events."""

    __slots__ = ("reply", "x", "wire", "_decoder", "_first", "_names", "_rest", "_scrubber", "_numbered", "said")

    def __init__(self, reply: Reply, x: "Exchange") -> None:
        self.reply = reply
        self.x = x
        self.wire = x.lane.wire
        self._decoder: Decoder | None = None
        self._numbered: Numbered | None = None
        self._first = True
        self._rest = b""
        self.said = ""                               # by what the last run left unread
        self._names = {} if x.same else names.back(self.wire.name, x.plan.request)      # of tools, as this wire spells them
        self._scrubber = Scrubber(x.lane.secrets) if x.lane.secrets else None

    async def chunk(self) -> bytes:
        """The next read; b"" at the end. Never holds the account's key."""
        if self._rest:
            data, self._rest = self._rest, b""
            return data
        opening = self._first
        data = await (self._opening() if opening else self.reply.chunk())
        if self.x.whole is not None:
            return b""
        if self._scrubber is not None:
            data = (data and self._scrubber.feed(data)) or await self._read_on(self._scrubber, data)
        if opening and len(data) > LARGE and self.x.same and not self.x.plan.rules.held:
            cut = nth_end(data, OPENING_FRAMES)
            data, self._rest = data[:cut], data[cut:]
        return data

    async def _opening(self) -> bytes:
        """The first read; the whole body, for ``x.whole``, where it is no stream."""
        self._first = False
        kind = self.reply.headers.get("Content-Type", "").lower()
        expected = not self.x.plan.request.stream and kind.startswith("application/json")
        data = await self.reply.read(BODY_LIMIT) if expected else await self.reply.chunk()
        if expected and data[:1] == b"{":
            self.x.whole = self._scrubber.replace(data) if self._scrubber else data
            return b""
        own = self.wire.content_type
        if streams(data, kind) or (own in OTHER_STREAMS and kind.startswith(own)):
            return data
        if not expected:
            data += await self.reply.read(BODY_LIMIT)
        self.x.whole = self._scrubber.replace(data) if self._scrubber else data
        return b""

    async def _read_on(self, scrubber: Scrubber, data: bytes) -> bytes:
        """After a read that was nothing but the beginning of a key and is held back completely, or the end."""
        while data:
            data = await self.reply.chunk()
            if data and (clean := scrubber.feed(data)):
                return clean
        return scrubber.flush()

    @property
    def more(self) -> bool:
        """Is the next chunk here already? Of a large first read the opening comes by itself: what follows may go unread."""
        return bool(self._rest)

    def run(self, data: bytes) -> int:
        """How many bytes that this read begins with may leave unread (``Decoder.run``); ``said`` is their text."""
        decoder, veil, numbered = self._decoder, self.x.veil, self._numbered
        encoder: Follower = self.x.sink.encoder
        if decoder is None or (veil is not None and veil.holding) or (numbered is not None and not encoder.even):
            return 0
        n_frames, n_used = decoder.run(data), len(data)
        if not n_frames and n_used > LARGE and data.endswith(END):
            for _ in range(CLOSING_FRAMES + 1):
                n_used = data.rfind(END, 0, n_used)
            n_used += len(END)
            n_frames = decoder.run(data[:n_used])
        if not n_frames:
            return 0
        said = self.said = decoder.said
        if veil is not None and veil.suspects(said):
            if numbered is not None:
                numbered.take_back()
            return 0
        if numbered is not None:
            encoder.follow(said, numbered.number)
        return n_used

    def events(self, data: bytes) -> list[ev.Event]:
        """Events of this read; the whole turn where the body is not a stream. Raises bad_reply."""
        try:
            found = self._read(data)
        except ODD:
            # a shape that no reader foresaw is still the provider's answer, not a failure of ours
            log.exception("an answer of %s could not be read", self.x.attempt.label)
            raise GatewayError("bad_reply", "The provider's answer has a shape that cannot be read.") from None
        if self._names:
            for event in found:
                if type(event) is ev.ToolDelta:
                    event.name = self._names.get(event.name, event.name)
        return found

    def _read(self, data: bytes) -> list[ev.Event]:
        whole = self.x.whole
        if whole is None:
            decoder = self._decoder
            if decoder is None:
                limit = self.x.ground.snapshot.stream.max_frame_bytes
                decoder = self._decoder = self.wire.decoder(self.x.same, self.x.sink.model, limit)
                self._numbered = cast(Numbered, decoder) if self.x.same and hasattr(decoder, "take_back") else None
            return decoder.feed(data) if data else decoder.close()
        if not whole.strip():
            raise GatewayError("bad_reply", "The provider answered 200 with an empty body.")
        return self.wire.parse_reply(whole, self.x.same)


def streams(data: bytes, content_type: str) -> bool:
    """Is this the beginning of an event stream? JSON and HTML are never one, whatever the label says."""
    head = data[:256].removeprefix(BOM).lstrip(_BLANK)[:1]
    if head in (b"{", b"<", b"["):
        return False
    return content_type.startswith("text/event-stream") or head in (b"d", b"e", b":", b"i", b"r", BOM[:1])
