"""The neutral stream: what an upstream said, event by event, whatever its wire format.

A decoder makes events from frames, the turn decides which may leave, an encoder writes them. ``raw`` is the JSON of the
upstream frame *when that frame says exactly this event and nothing else that may have to change*: where both sides speak the
same format the encoder writes it as it came, unknown fields included. An event that was split off a richer frame, or made by
us, has ``raw = None`` (or the frame cleaned of everything else) and is written anew. Events are immutable by convention; a change is
a new event.

Order in a finished turn: Meta?, (Text | Reasoning | Refusal | ToolDelta | Opaque)*, Finish (one per choice), Usage?, End.
"""
from typing import Any

import msgspec

from gateway.core.errors import GatewayError


class Event(msgspec.Struct, gc=False):
    """Base of all events."""


class Meta(Event):
    """The turn opened (role chunk, ``message_start``, ``response.created``): never payload, kept in the preamble.

    ``passes``: of a whole answer, its body may go to a client of the same format with the model's name changed at most.
    ``told``: what ``raw`` says, decoded, for an encoder of the same format.
    """
    id: str = ""
    model: str = ""
    created: int = 0
    raw: bytes | None = None
    passes: bool = False
    told: Any = None


class Text(Event):
    """Visible answer text of one choice."""
    text: str
    raw: bytes | None = None
    choice: int = 0


class Reasoning(Event):
    """Thinking text; ``signature`` and ``redacted`` (opaque data) belong to the provider that made them."""
    text: str
    raw: bytes | None = None
    choice: int = 0
    signature: str | None = None
    redacted: str | None = None


class Refusal(Event):
    """The model declines, in a field of its own; it is an answer."""
    text: str
    raw: bytes | None = None
    choice: int = 0


class ToolDelta(Event):
    """A piece of a tool call as the upstream sent it; any field but the position may be missing.

    ``index`` is the upstream's own (None when it sent none). ``arguments`` is a piece of JSON text; an upstream that sends an
    object has it dumped by the decoder, with ``whole=True``. ``kind`` is ``function`` or ``custom`` (free text input).
    ``extra`` holds what the wire keeps beside a call (Gemini's thought_signature).
    """
    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    choice: int = 0
    whole: bool = False
    kind: str = "function"
    extra: dict[str, Any] | None = None


class ToolCall(Event):
    """A call that may leave: complete, repaired, with a unique id and a dense index. Made by the turn only."""
    index: int
    id: str
    name: str
    arguments: str
    choice: int = 0
    kind: str = "function"
    extra: dict[str, Any] | None = None


class ToolStart(Event):
    """Live delivery: a call begins; its arguments follow as ToolArgs with the same index. Made by the turn only."""
    index: int
    id: str
    name: str
    choice: int = 0
    kind: str = "function"
    extra: dict[str, Any] | None = None


class ToolArgs(Event):
    """Live delivery: the next piece of a call's arguments, repaired on the way. Made by the turn only."""
    index: int
    text: str
    choice: int = 0


class Opaque(Event):
    """Payload that has no neutral form (server tools, annotations, audio…): passes where both sides speak ``wire``.

    ``payload`` is the decoded frame or block for wires that can render it otherwise. ``counts`` says that it is an answer by
    itself (a generated image), so that a turn with nothing else is not empty.
    """
    wire: str
    kind: str
    payload: Any = None
    raw: bytes | None = None
    choice: int = 0
    counts: bool = False


class Usage(Event):
    """Token counts. ``input`` includes cached and cache-write tokens (OpenAI's and Gemini's habit; Anthropic's is made so).

    ``native`` is the upstream's own usage object, passed on where both sides speak the same format.
    """
    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    total: int = 0
    estimated: bool = False
    native: dict[str, Any] | None = None
    raw: bytes | None = None


class Finish(Event):
    """Why a choice ended: stop · length · tool_calls · content_filter · refusal · pause · or the upstream's own word.

    ``raw`` is the upstream's finish frame, cleaned of text, calls and usage, so that unknown fields beside the reason survive.
    ``stop_sequence`` is the matched one where the wire tells it.
    """
    reason: str
    choice: int = 0
    raw: bytes | None = None
    stop_sequence: str | None = None


class Fault(Event, gc=True):
    """The upstream said in-band that it failed, or the turn found out; always the last event of a turn.

    Seen by the collector, unlike the others: an error knows the frames that it was raised through, and they know it.
    """
    error: GatewayError


class End(Event):
    """The upstream's own terminal ([DONE], ``message_stop``, ``response.completed``); once the last of a turn that may leave.

    ``told``: what ``raw`` says, decoded, for an encoder of the same format.
    """
    raw: bytes | None = None
    told: Any = None
