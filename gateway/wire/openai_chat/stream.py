"""What does an upstream's chat stream say? Bytes -> events; also legacy completions, which differ in one field.

Three lanes, each falling back on the next, and all giving the same events:

1. *Shape.* The frames of a stream are alike but for one string. Once two frames agree, their common head and foot are tried out
   with another text in the hole; from then on a whole read is cut at ``foot + head`` and its strings are decoded in one call:
   about 0.3 µs a frame, renaming the model and mending the envelope included.
2. *Typed.* A frame of plain text or reasoning, decoded into a struct: about 0.7 µs.
3. *Rich.* Everything else, as a dict (``frames.py``).
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.lenient import LONE, whole_text
from gateway.wire.openai_chat.envelope import Envelope
from gateway.wire.openai_chat.frames import parse_frame, read_frame
from gateway.wire.openai_chat.schema import Frame, Json
from gateway.wire.sse import Splitter

CHUNK: Final = "chat.completion.chunk"
_PINGS: Final = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
_HOLE: Final = "~a hole for the text~"
_QUOTED_HOLE: Final = b'"' + _HOLE.encode() + b'"'
_LESSONS: Final = 24                             # frames of a stream that may be looked at for its shape
_LARGE: Final = 2_048                            # bytes of a first read that are worth learning for
_FIRST_FRAMES: Final = 4                         # a role frame and three of text

_decode_frame = msgspec.json.Decoder(Frame).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode
_encode = msgspec.json.encode
_Plain = ev.Text | ev.Reasoning
_Piece = ev.Text | ev.Reasoning | ev.ToolDelta


class Shape:
    """Head and foot of frames that differ in one string only, and what they are for the client (None: not passed on)."""

    __slots__ = ("head", "foot", "joint", "n_head", "n_foot", "n_two", "example", "out_head", "out_foot", "verbatim")

    def __init__(self, head: bytes, foot: bytes, example: _Piece, out: tuple[bytes, bytes] | None) -> None:
        self.verbatim = out == (head, foot) and type(example) is ev.Text and example.choice == 0
        self.example = example                   # what such a frame says, but for its text
        self.head = b"data: " + head
        self.foot = foot + b"\n\n"
        self.joint = self.foot + self.head
        self.n_head = len(self.head)
        self.n_foot = len(self.foot)
        self.n_two = 2 * (self.n_head + self.n_foot)
        self.out_head, self.out_foot = out or (b"", b"")

    def strings(self, data: bytes) -> tuple[list[bytes], list[str], int]:
        """The strings of the frames of this shape that ``data`` begins with, as JSON and decoded, and how many bytes they are.

        They are decoded together, parted by a line feed, which no JSON string may hold: so none can reach into the next, and
        the first foot in the last piece (it ends in line feeds) is where the last string ends.
        """
        if not data.startswith(self.head) or b"\r" in data:         # a line end to the splitter, white space to JSON
            return [], [], 0
        if len(data) < self.n_two:
            return self._single(data)
        quoted = data[self.n_head:].split(self.joint)
        last = quoted[-1]
        at = last.find(self.foot)
        if at < 0:
            n_used = len(data) - len(last) - self.n_head          # the last frame is not complete
            quoted.pop()
        else:
            n_used = len(data) - len(last) + at + self.n_foot
            quoted[-1] = last[:at]
        try:
            texts = _decode_texts(b"[%b]" % b",\n".join(quoted))
        except msgspec.DecodeError:
            return [], [], 0
        return (quoted, texts, n_used) if len(texts) == len(quoted) and "" not in texts else ([], [], 0)

    def _single(self, data: bytes) -> tuple[list[bytes], list[str], int]:
        """The same for a read that is too short for two frames."""
        if not data.endswith(self.foot):
            return [], [], 0
        string = data[self.n_head:-self.n_foot]
        try:
            text = _decode_text(string)
        except msgspec.DecodeError:
            return [], [], 0
        return ([string], [text], len(data)) if text else ([], [], 0)


class Decoder:
    """One upstream stream. ``model`` is the name shown to the client ("" = the upstream's own)."""

    __slots__ = ("_split", "_envelope", "_shape", "_candidate", "_lessons", "_begun", "_over", "_early", "_halves", "_closing")

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self._split = Splitter(max_frame_bytes)
        self._envelope = Envelope(model, same)
        self._shape: Shape | None = None
        self._candidate: tuple[bytes, bytes] | None = None
        self._lessons = _LESSONS
        self._begun = False
        self._over = False
        self._early: list[Json] = []             # frames without choices from before the stream's id was known
        self._halves: dict[tuple[type[ev.Event], int], str] = {}
        self._closing = False

    def feed(self, data: bytes) -> list[ev.Event]:
        if self._over:
            return []
        out: list[ev.Event] = []
        if self._shape is None and len(data) > _LARGE:
            cut = _nth_end(data, _FIRST_FRAMES)                   # learn from its beginning, so that the rest goes quickly
            self._frames(data[:cut], out)
            data = data[cut:]
        shape = self._shape
        if shape is not None and self._split.idle and not self._halves and not self._over:
            data = data[self._alike(shape, data, out):]
        if data and not self._over:
            self._frames(data, out)
        return out

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
        quoted, _, n_used = shape.strings(data)
        return len(quoted) if n_used == len(data) else 0

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
        if b"\n" in data:
            data = data.replace(b"\n", b" ")      # several data: lines; between them there is only white space in JSON
        if name is None and not self._halves:
            event = self._typed(data, out)
            if event is not None:
                out.append(event)
                if self._lessons and self._shape is None:
                    self._learn(data, event)
                return
        self._rich(name, data, out)

    def _typed(self, data: bytes, out: list[ev.Event]) -> _Plain | None:
        """The event of a frame that is plain text or plain reasoning, and complete; None for any other."""
        try:
            frame = _decode_frame(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        if len(frame.choices) != 1 or frame.usage is not None or frame.error or frame.x_groq is not None:
            return None
        choice = frame.choices[0]
        delta, index = choice.delta, choice.index
        if choice.finish_reason is not None or delta is None or index < 0:
            return None
        if delta.tool_calls or delta.function_call or delta.refusal:
            return None
        text, thought = delta.content, delta.reasoning_content or delta.reasoning
        if not text if thought is None else (text or not thought):
            return None
        raw: bytes | None = None
        envelope = self._envelope
        if envelope.same:
            if frame.object != CHUNK or not frame.id or frame.created < 0 or not frame.model or not _is_utf8(data):
                return None
            raw = data if frame.model == envelope.shown else envelope.rename(data, frame.model)
            if raw is None:
                return None
        if not self._begun:
            if not frame.id:
                return None
            envelope.learn({"id": frame.id, "model": frame.model, "created": max(frame.created, 0)})
            self._begin(out, opens=False)
        return ev.Reasoning(thought, raw, index) if thought else ev.Text(text or "", raw, index)

    def _rich(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        if data.strip() == b"[DONE]":
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
        return True


def _has_hole(event: ev.Event) -> bool:
    """Does this event say nothing but a text? Of calls: a further piece of arguments."""
    if isinstance(event, ev.ToolDelta):
        return bool(event.arguments) and not (event.id or event.name or event.whole or event.extra) and event.kind == "function"
    return isinstance(event, _Plain)


def _text_of(event: Any) -> str:
    text: str = event.arguments if isinstance(event, ev.ToolDelta) else event.text
    return text


def _is_utf8(data: bytes) -> bool:
    """msgspec checks the strings that it decodes only; a frame that leaves must be UTF-8 everywhere."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _nth_end(data: bytes, n: int) -> int:
    """Where the n-th frame of a read ends; its whole length if it has fewer."""
    at = 0
    for _ in range(n):
        found = data.find(b"\n\n", at)
        if found < 0:
            return len(data)
        at = found + 2
    return at
