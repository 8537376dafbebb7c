"""What every wire format can do: four verbs, a stream decoder, a stream encoder, an error renderer. Pure.

A wire is used on both sides. Facing the client it parses requests and builds replies, streams and errors; facing the upstream
it builds requests and parses replies and streams. ``same`` is True where both sides speak this wire: then events carry the
upstream's own frames (``raw``) and untouched ones leave as they came.
"""
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request


class Outbound(msgspec.Struct, kw_only=True):
    """What building an upstream request needs to know of the target (facts only; no secrets, no addresses)."""
    model: str                                   # the target's own model id
    provider: str                                # its id, for ownership of opaque state
    stream: bool
    max_output: int | None = None
    drop_params: frozenset[str] = frozenset()    # body fields that this target refuses
    rename_params: dict[str, str] = {}           # e.g. max_tokens -> max_completion_tokens
    flags: frozenset[str] = frozenset()          # named quirks of the wire, e.g. "no_stream_options", "developer_role"


class Shown(msgspec.Struct, kw_only=True):
    """What writing to the client needs to know of the request and of the target that answered."""
    model: str                                   # the name to show (stream.model_echo)
    request: Request
    same: bool                                   # both sides speak this wire
    id: str = ""                                 # ids to use where the upstream gave none
    kept_as: str = ""                            # under which the answer is kept here, whatever its upstream calls it
    created: int = 0                             # epoch seconds
    include_usage: bool = True
    done_after_error: bool = True
    operation: str = "chat"                      # chat | completions | …: variants of one wire
    elapsed: Callable[[], float] = float         # seconds since the request came, for formats that tell durations
    touched: bool = False                        # whole answers: the turn changed something of what the upstream said


class Decoder(Protocol):
    """Bytes of the upstream's stream -> events. Raises GatewayError("bad_reply") on frames over the size limit."""

    def feed(self, data: bytes) -> list[Event]:
        """Events of one read, in order. Any cut of the bytes gives the same events."""
        ...

    def close(self) -> list[Event]:
        """The upstream's EOF: events of a last frame without its blank line."""
        ...

    def run(self, data: bytes) -> int:
        """Fast lane: n > 0 when ``data`` is exactly n whole frames, framed as we frame them, of plain visible text of
        choice 0 (no finish, usage, calls, reasoning, refusal, error, other model name). Then feed() need not be called and
        the bytes may leave untouched. 0 = not sure, use feed(). Only ever called between frames with nothing buffered."""
        ...

    @property
    def said(self) -> str:
        """The text of the frames that the last ``run`` found."""
        ...


class Numbered(Protocol):
    """A decoder of a format whose frames are numbered over the whole stream: for its fast lane both sides must agree."""

    number: int
    """Of the last frame that the last ``run`` found."""

    def take_back(self) -> None:
        """These frames do not leave unread: they are given to ``feed``."""
        ...


class Follower(Protocol):
    """An encoder of such a format."""

    even: bool
    """Are the client's numbers the upstream's own, and is what was written last a text that more may be added to?"""

    def follow(self, said: str, number: int) -> None:
        """Frames that add to this text, the last with this number, leave unread. Only called while ``even``."""
        ...


class Encoder(Protocol):
    """Events that may leave -> bytes for the client."""

    def encode(self, events: list[Event]) -> bytes:
        """All given events as one byte string (one write); raw frames go out as they came where ``same``. Opening frames that
        the surface demands (role, message_start, response.created) are written before the first payload if the upstream sent none."""
        ...


class Wire(Protocol):
    name: str
    content_type: str                            # of a stream towards the client
    silence: bytes                               # what may be sent into silence; b"" where the format has nothing harmless

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "", path_stream: bool | None = None) -> Request:
        """Client's body -> Request. Raises GatewayError("bad_request", param=dotted path)."""
        ...

    def open(self, request: Request) -> Conversation:
        """The neutral dialogue of a parsed request of this wire (built once, kept on the request)."""
        ...

    def build_request(self, request: Request, to: Outbound) -> bytes:
        """Body for an upstream of this wire. Same wire: spliced or mended from ``raw``; else from ``WIRES[request.wire].open``
        (passed in as request.conversation). Raises GatewayError("unsupported") when this wire cannot say it."""
        ...

    def speaks(self, request: Request, to: Outbound) -> bool:
        """As the upstream's wire: does this target answer in the very format that the client reads? Then frames may pass."""
        ...

    def upstream_path(self, request: Request, to: Outbound) -> str:
        """Path to append to base_url, query included (``/chat/completions``)."""
        ...

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        """Upstream's whole JSON answer -> the events of its turn, ending in End (or Fault for an error body under 200).
        Raises GatewayError("bad_reply") if it is none (HTML, cut JSON)."""
        ...

    def build_reply(self, reply: Reply, shown: Shown, raw: bytes | None) -> bytes:
        """The client's whole JSON answer. ``raw``: the upstream's own body of the same wire, to be kept in everything that
        did not have to change (None when there is none)."""
        ...

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        """``model``: the name shown to the client; raw frames that carry another one are rewritten."""
        ...

    def encoder(self, shown: Shown) -> Encoder: ...

    def render_error(self, error: GatewayError, operation: str = "chat") -> bytes:
        """The body of an HTTP error in this format's shape."""
        ...

    def error_frame(self, error: GatewayError, shown: Shown) -> bytes:
        """A failure inside a started stream, with whatever ends the stream after it."""
        ...


Json = dict[str, Any]
