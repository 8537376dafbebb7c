"""What do a stream's first and last frames say? A role, a reason or the counts: typed, where they say that and nothing else.

Nearly every stream has one of each, and as dicts (``frames.py``) they would cost more than all its text. Whatever has another
member that could mean something is left to the dicts, so both lanes give the same events.
"""
from typing import Final

import msgspec

from gateway.core import events as ev
from gateway.wire.openai_chat.schema import FINISH, Json, read_usage, sound

_REASONS: Final = frozenset(FINISH.values())     # the words that need no translation


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Says nothing; ``None`` is the only value that may stand where a payload could."""
    role: str | None = None
    content: str | None = None
    refusal: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    finish_reason: str | None
    index: int
    stop_sequence: str | None = None


class Edge(msgspec.Struct, gc=False):
    """The members that could tell a failure (``faults.fault_of``) are of a type that no failure has."""
    choices: list[_Choice]
    id: str = ""
    object: str = ""
    created: int = -1
    model: str = ""
    usage: Json | None = None
    x_groq: None = None                          # Groq's bag for what others say beside it
    error: None = None
    type: None = None
    success: bool = True
    detail: None = None
    message: None = None
    error_type: None = None
    error_message: None = None
    error_msg: None = None


_decode = msgspec.json.Decoder(Edge).decode


def decoded(data: bytes) -> Edge | None:
    """Such a frame; None for any other."""
    try:
        edge = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not edge.choices:
        return edge if edge.usage and edge.success and sound(edge.usage) else None
    choice = edge.choices[0]
    if len(edge.choices) > 1 or edge.usage is not None or choice.index < 0 or choice.delta.content:
        return None
    return edge if choice.finish_reason is None or choice.finish_reason in _REASONS else None


def event(edge: Edge, raw: bytes | None) -> ev.Finish | ev.Usage | None:
    """What it says, with ``raw`` as its own bytes; None: only a role."""
    if not edge.choices:
        counts = read_usage(edge.usage or {})
        counts.raw = raw
        return counts
    choice = edge.choices[0]
    return None if choice.finish_reason is None else ev.Finish(choice.finish_reason, choice.index, raw, choice.stop_sequence)
