"""Which frames of a stream are alike but for one string? Their common head and foot, and the memory of them.

A shape is learnt from two frames and a trial (``stream.Decoder``). The next stream of the same model nearly always differs in its
id and its time only, so what was learnt is kept as a *mould* with these two cut out: a new stream need not learn at all. That is
sound because an id that is written without escapes, and a whole number, can stand for any other of their kind.
"""
import re
from typing import Final

import msgspec

from gateway.core import events as ev
from gateway.core.bounded import LruMap
from gateway.wire.openai_chat.envelope import Envelope
from gateway.wire.sse import CR

MAX_MOULDS: Final = 512
NEEDLE: Final = 32
_ID: Final = b"\0id"                              # no byte of JSON
_TIME: Final = b"\0time"
_SIMPLE: Final = re.compile(r"[\w.:-]{1,128}", re.ASCII).fullmatch

_decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode
Piece = ev.Text | ev.Reasoning | ev.ToolDelta


class Shape:
    """Head and foot of frames that differ in one string only, and what they are for the client (None: not passed on)."""

    __slots__ = ("head", "foot", "joint", "needle", "n_rest", "n_head", "n_foot", "n_two", "example", "out_head", "out_foot",
                 "verbatim")

    def __init__(self, head: bytes, foot: bytes, example: Piece, out: tuple[bytes, bytes] | None) -> None:
        self.verbatim = out == (head, foot) and type(example) is ev.Text and example.choice == 0
        self.example = example                   # what such a frame says, but for its text
        self.head = b"data: " + head
        self.foot = foot + b"\n\n"
        self.joint = self.foot + self.head
        self.needle = self.joint[-NEEDLE:]
        self.n_rest = len(self.joint) - len(self.needle)
        self.n_head = len(self.head)
        self.n_foot = len(self.foot)
        self.n_two = 2 * (self.n_head + self.n_foot)
        self.out_head, self.out_foot = out or (b"", b"")

    def strings(self, data: bytes) -> tuple[list[bytes], list[str], int]:
        """The strings of the frames of this shape that ``data`` begins with, as JSON and decoded, and how many bytes they are.

        They are decoded together, parted by a line feed, which no JSON string may hold: so none can reach into the next, and
        the first foot in the last piece (it ends in line feeds) is where the last string ends.
        """
        if not data.startswith(self.head) or CR in data:         # a line end to the splitter, white space to JSON
            return [], [], 0
        if len(data) < self.n_two:
            return self._single(data)
        quoted = self._parted(data[self.n_head:])
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

    def _parted(self, body: bytes) -> list[bytes]:
        """``body.split(self.joint)``, which takes three times as long: CPython prepares anew for a long needle at each find. So
        the end of the joint is searched, and what stands before it is compared in one piece."""
        pieces = body.split(self.needle)
        rest = -self.n_rest or None
        quoted = [piece[:rest] for piece in pieces]
        quoted[-1] = pieces[-1]
        return quoted if self.joint.join(quoted) == body else body.split(self.joint)

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


class Mould:
    """A shape without the id and the time of its stream."""

    __slots__ = ("parts", "example", "out")

    def __init__(self, parts: tuple[bytes, bytes], example: Piece, out: tuple[bytes, bytes] | None) -> None:
        self.parts = parts
        self.example = example
        self.out = out

    def cast(self, envelope: Envelope) -> Shape:
        out = self.out
        return Shape(*_filled(self.parts, envelope), self.example, None if out is None else _filled(out, envelope))


_moulds: Final[LruMap[tuple[str, str, bool], dict[type[ev.Event], Mould]]] = LruMap(MAX_MOULDS)


def keep(envelope: Envelope, seen: tuple[bytes, bytes], example: Piece, out: tuple[bytes, bytes] | None) -> None:
    """Remember what this stream's frames look like, if another stream's can look so too: one shape for each kind of event."""
    if _SIMPLE(envelope.id) is None:
        return
    parts = _cut(seen, envelope)
    kept = None if out is None else _cut(out, envelope)
    if parts is None or (out is not None and kept is None):
        return
    key = (envelope.model, envelope.shown, envelope.same)
    _moulds.put(key, {**_moulds.get(key, {}), type(example): Mould(parts, example, kept)})


def remembered(envelope: Envelope, data: bytes) -> Shape | None:
    """The shape of the frame that ``data`` begins with, if an earlier stream had it."""
    moulds = _moulds.get((envelope.model, envelope.shown, envelope.same))
    if moulds is None or _SIMPLE(envelope.id) is None:
        return None
    for mould in moulds.values():
        shape = mould.cast(envelope)
        if data.startswith(shape.head):
            return shape
    return None


def _cut(parts: tuple[bytes, bytes], envelope: Envelope) -> tuple[bytes, bytes] | None:
    """Id and time stand in the head, once each and for themselves."""
    head, foot = parts
    quoted, time = b'"%b"' % envelope.id.encode(), b'"created":%d,' % envelope.created
    if head.count(quoted) != 1 or head.count(time) != 1 or quoted in foot or b'"created"' in foot:
        return None
    return head.replace(quoted, b'"%b"' % _ID).replace(time, b'"created":%b,' % _TIME), foot


def _filled(parts: tuple[bytes, bytes], envelope: Envelope) -> tuple[bytes, bytes]:
    return parts[0].replace(_ID, envelope.id.encode()).replace(_TIME, b"%d" % envelope.created), parts[1]
