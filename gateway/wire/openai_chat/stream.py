"""What does an upstream's chat stream say? Bytes -> events; also legacy completions, which differ in one field.

Three lanes, each falling back on the next, and all giving the same events:

1. *Shape.* The frames of a stream are alike but for one string. Once two frames agree, their common head and foot are tried out
   with another text in the hole; from then on a whole read is cut at ``foot + head`` and its strings are decoded in one call:
   about 0.3 µs a frame, renaming the model and mending the envelope included. Streams of one model share it (``shape.py``).
2. *Typed.* A frame of plain text or reasoning, decoded into a struct: about 0.7 µs; the usual first and last frames, which say a
   role, a reason or the counts and nothing else (``edges.py``): about 2 µs.
3. *Rich.* Everything else, as a dict (``frames.py``).
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.lenient import LONE, is_utf8, whole_text
from gateway.wire.openai_chat import edges
from gateway.wire.openai_chat.envelope import Envelope
from gateway.wire.openai_chat.frames import parse_frame, read_frame
from gateway.wire.openai_chat.schema import CHUNK, Frame, Json
from gateway.wire.openai_chat.shape import Shape, keep, remembered
from gateway.wire.sse import LF, Splitter, nth_end

_PINGS: Final = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
_HOLE: Final = "~a hole for the text~"
_QUOTED_HOLE: Final = b'"' + _HOLE.encode() + b'"'
_LESSONS: Final = 24                             # frames of a stream that may be looked at for its shape
_LARGE: Final = 2_048                            # bytes of a first read that are worth learning for
_FIRST_TEXTS: Final = 3                          # as many frames teach a shape
_RECALLS: Final = 2                              # reads that are compared with what is remembered

_DONE: Final = b"[DONE]"
_CALLS: Final = b'"tool_calls":['
_decode_frame = msgspec.json.Decoder(Frame).decode
_encode = msgspec.json.encode
_Plain = ev.Text | ev.Reasoning


class Decoder:
    """One upstream stream. ``model`` is the name shown to the client ("" = the upstream's own)."""

    __slots__ = ("_split", "_envelope", "_shape", "_candidate", "_lessons", "_begun", "_over", "_early", "_halves", "_closing",
                 "_recalls", "_passed")

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self._split = Splitter(max_frame_bytes)
        self._envelope = Envelope(model, same)
        self._shape: Shape | None = None
        self._candidate: tuple[bytes, bytes] | None = None
        self._lessons = _LESSONS
        self._recalls = _RECALLS
        self._passed: list[str] = []             # texts of the last run
        self._begun = False
        self._over = False
        self._early: list[Json] = []             # frames without choices from before the stream's id was known
        self._halves: dict[tuple[type[ev.Event], int], str] = {}
        self._closing = False

    def feed(self, data: bytes) -> list[ev.Event]:
        if self._over:
            return []
        out: list[ev.Event] = []
        if self._shape is None:
            data = self._acquainted(data, out)
        elif len(data) > _LARGE and not self._split.idle:
            data = self._beginning(data, 1, out)                  # the frame that the last read cut
        shape = self._shape
        if shape is not None and self._split.idle and not self._halves and not self._over:
            data = data[self._alike(shape, data, out):]
        if data and not self._over:
            self._frames(data, out)
        return out

    def _acquainted(self, data: bytes, out: list[ev.Event]) -> bytes:
        """Look for the stream's shape; gives what is still to be read. Of a large read the beginning is read for it, so that the
        rest goes quickly."""
        large = len(data) > _LARGE
        if not self._begun and large:
            data = self._beginning(data, 1, out)
        if self._begun and self._recalls and self._split.idle and not self._over:
            self._recalls -= 1
            self._shape = remembered(self._envelope, data)
        return self._beginning(data, _FIRST_TEXTS, out) if large and self._shape is None and not self._over else data

    def _beginning(self, data: bytes, n_frames: int, out: list[ev.Event]) -> bytes:
        cut = nth_end(data, n_frames)
        self._frames(data[:cut], out)
        return data[cut:]

    def _alike(self, shape: Shape, data: bytes, out: list[ev.Event]) -> int:
        """The events of the frames of this shape that ``data`` begins with; how many bytes they are."""
        quoted, texts, n_used = shape.strings(data)
        example = shape.example
        choice = example.choice
        if isinstance(example, ev.ToolDelta):
            index = example.index
            out += [ev.ToolDelta(index, "", "", text, choice) for text in texts]
        elif self._envelope.same:
            kind, head, foot = type(example), shape.out_head, shape.out_foot
            out += [kind(text, head + string + foot, choice) for string, text in zip(quoted, texts, strict=True)]
        else:
            kind = type(example)
            out += [kind(text, None, choice) for text in texts]
        return n_used

    def _frames(self, data: bytes, out: list[ev.Event]) -> None:
        for name, frame in self._split.feed(data):
            self._frame(name, frame, out)
            if self._over:
                break

    def run(self, data: bytes) -> int:
        shape = self._shape
        if shape is None or not shape.verbatim or self._over or self._halves or not self._split.idle:
            return 0
        if not data.endswith(shape.foot):
            return 0
        quoted, self._passed, n_used = shape.strings(data)
        return len(quoted) if n_used == len(data) else 0

    @property
    def said(self) -> str:
        return "".join(self._passed)

    def close(self) -> list[ev.Event]:
        """The upstream's EOF. A last frame that was cut is not told: the missing end is what counts, and the turn sees it."""
        self._closing = True
        out: list[ev.Event] = []
        for name, frame in [] if self._over else self._split.close():
            self._frame(name, frame, out)
        if self._early and not self._over:
            self._envelope.invent()
            self._begin(out, opens=True)
        self._over = True
        return out

    def _frame(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        if LF in data:
            data = data.replace(b"\n", b" ")      # several data: lines; between them there is only white space in JSON
        if name is None and not self._halves:
            event = self._typed(data, out)
            if event is not None:
                out.append(event)
                if self._lessons and _has_hole(event) and (self._shape is None or type(self._shape.example) is not type(event)):
                    self._learn(data, event)
                return
        self._rich(name, data, out)

    def _typed(self, data: bytes, out: list[ev.Event]) -> ev.Event | None:
        """The event of a complete frame that says one plain thing; None for any other."""
        if data == _DONE:
            return None
        if (self._shape is not None or not self._begun) and data.find(_CALLS) < 0:
            event = self._edge(data, out)                    # likely: the frame stands before the text or after it
            if event is not None:
                return event
        try:
            frame = _decode_frame(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        if frame.error or frame.x_groq is not None or not (frame.id or self._begun):
            return None
        if len(frame.choices) != 1 or frame.usage is not None:
            return None if frame.choices else self._edge(data, out)
        choice = frame.choices[0]
        delta, index = choice.delta, choice.index
        if delta is None or index < 0 or delta.tool_calls or delta.function_call or delta.refusal:
            return None
        text, thought = delta.content, delta.reasoning_content or delta.reasoning
        if not text and not thought:
            return self._edge(data, out)
        if choice.finish_reason is not None or (text and thought is not None):
            return None
        raw: bytes | None = None
        if self._envelope.same:
            raw = self._own(frame, data)
            if raw is None:
                return None
        if not self._begun:
            self._open(frame, out, opens=False)
        return ev.Reasoning(thought, raw, index) if thought else ev.Text(text or "", raw, index)

    def _edge(self, data: bytes, out: list[ev.Event]) -> ev.Event | None:
        """The event of a usual first or last frame; None for any other."""
        edge = edges.decoded(data)
        if edge is None or not (edge.id or self._begun):
            return None
        raw: bytes | None = None
        if self._envelope.same:
            raw = self._own(edge, data)
            if raw is None:
                return None
        event = edges.event(edge, raw)
        if not self._begun:
            self._open(edge, out, event is None)
        return event or self._envelope.meta(raw)

    def _own(self, frame: Frame | edges.Edge, data: bytes) -> bytes | None:
        """The frame as it may leave: the upstream's bytes with the client's name of the model; None where more must change."""
        envelope = self._envelope
        if frame.object != CHUNK or not frame.id or frame.created < 0 or not frame.model or not is_utf8(data):
            return None
        return data if frame.model == envelope.shown else envelope.rename(data, frame.model)

    def _open(self, frame: Frame | edges.Edge, out: list[ev.Event], opens: bool) -> None:
        self._envelope.learn({"id": frame.id, "model": frame.model, "created": max(frame.created, 0)})
        self._begin(out, opens)

    def _rich(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        if data.strip() == _DONE:
            self._over = True
            out.append(ev.End())
            return
        if name in _PINGS:
            return
        doc, exact = parse_frame(data, name)
        if doc is None:
            self._unreadable(data, out)
        elif isinstance(doc, ev.Fault):
            self._over = True
            out.append(doc)
        else:
            try:
                self._read(doc, data if exact else None, out)
            except (ValueError, RecursionError):             # deeper than anything that we may write again
                self._unreadable(b"{", out)

    def _read(self, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        envelope = self._envelope
        envelope.learn(doc)
        if not envelope.id:
            if not self._begun and not doc.get("choices") and not doc.get("usage"):
                self._early = [*self._early[-7:], doc]       # Azure's prompt_filter_results: its id comes with the next frame
                return
            envelope.invent()
        events = read_frame(doc, envelope, data)
        if not self._begun:
            self._begin(out, opens=bool(events) and type(events[0]) is ev.Meta)
        if self._halves or (data is not None and b"\\u" in data):
            events = self._join_halves(events)
        for event in events:
            out.append(event)
            if type(event) is ev.Fault:
                self._over = True
                return
        if self._lessons and data is not None and len(events) == 1 and _has_hole(events[0]):
            self._learn(data, events[0])

    def _begin(self, out: list[ev.Event], opens: bool) -> None:
        """The stream's id is known: what waited for it goes first. A stream that opens with payload gets a Meta of ours."""
        self._begun = True
        early, self._early = self._early, []
        for doc in early:
            out += read_frame(doc, self._envelope)
        if not early and not opens:
            out.append(self._envelope.meta(None))

    def _unreadable(self, data: bytes, out: list[ev.Event]) -> None:
        """A frame that is no JSON object. Words that some servers send to keep the line alive are passed over, but not as the
        very first frame, and never something that was meant to be an object: its text would be missing."""
        if self._closing or (self._begun and not data.lstrip().startswith(b"{")):
            return
        self._over = True
        out.append(ev.Fault(GatewayError("bad_reply", "The provider sent a stream frame that is not JSON.")))

    def _join_halves(self, events: list[ev.Event]) -> list[ev.Event]:
        """A character cut in two escapes (``\\ud83d`` here, ``\\ude00`` in the next frame): the first half waits for its other.

        Its own frame, raw, is not held back: the halves reach a client of the same format as they came.
        """
        out: list[ev.Event] = []
        for event in events:
            if isinstance(event, (ev.Text, ev.Reasoning, ev.Refusal)):
                key = (type(event), event.choice)
                text = self._halves.pop(key, "") + event.text
                if LONE.search(text) is not None:
                    if "\ud800" <= text[-1] <= "\udbff":
                        self._halves[key], text = text[-1], text[:-1]
                    text = whole_text(text)
                event.text = text
            elif isinstance(event, ev.Finish) and self._halves:
                if not self._envelope.same:
                    out += [kind("\ufffd", None, choice) for kind, choice in self._halves]
                self._halves.clear()
            out.append(event)
        return out

    def _learn(self, data: bytes, event: Any) -> None:
        """Is this frame's shape the stream's? Two frames in a row must agree; then another text is tried in the hole."""
        quoted = _encode(_text_of(event))
        at = data.find(quoted)
        if at < 0 or data.find(quoted, at + 1) >= 0:
            return
        seen = (data[:at], data[at + len(quoted):])
        if seen != self._candidate:
            self._candidate = seen
            self._lessons -= 1
            return
        self._lessons, lessons = 0, self._lessons                # no lesson inside the lesson
        events: list[ev.Event] = []
        self._frame(None, _QUOTED_HOLE.join(seen), events)
        learnt = len(events) == 1 and self._adopt(seen, event, events[0])
        self._lessons = _LESSONS if learnt else lessons - 1

    def _adopt(self, seen: tuple[bytes, bytes], event: Any, tried: Any) -> bool:
        if type(tried) is not type(event) or not _has_hole(tried) or _text_of(tried) != _HOLE:
            return False
        out: tuple[bytes, bytes] | None = None
        if self._envelope.same and not isinstance(tried, ev.ToolDelta):
            parts = tried.raw.split(_QUOTED_HOLE) if tried.raw is not None else []
            if len(parts) != 2:
                return False
            out = (parts[0], parts[1])
        self._shape = Shape(*seen, tried, out)
        keep(self._envelope, seen, tried, out)
        return True


def _has_hole(event: ev.Event) -> bool:
    """Does this event say nothing but a text? Of calls: a further piece of arguments."""
    if isinstance(event, ev.ToolDelta):
        return bool(event.arguments) and not (event.id or event.name or event.whole or event.extra) and event.kind == "function"
    return isinstance(event, _Plain)


def _text_of(event: Any) -> str:
    text: str = event.arguments if isinstance(event, ev.ToolDelta) else event.text
    return text
