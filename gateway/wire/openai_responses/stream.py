"""What does an upstream's Responses stream say? Bytes -> events.

Deltas of text, which nearly all frames are, are typed and never become dicts; all other frames go to ``reading.py``. Frames around
text (items and parts that begin and end, annotations, tools that the provider runs) are ``Opaque``: what they mean, the encoder
knows. What servers leave out is filled in (``frames.py``).
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.lenient import is_utf8, load
from gateway.wire.openai_chat.schema import read_usage
from gateway.wire.openai_responses.faults import fault_in
from gateway.wire.openai_responses.frames import Ledger
from gateway.wire.openai_responses.reading import DELTAS, Reader, finish_of
from gateway.wire.openai_responses.schema import FAILED, TERMINALS, WIRE, Json
from gateway.wire.openai_responses.straight import FITS, OPENINGS
from gateway.wire.openai_responses.told import ODD, Response, Told, by_hand
from gateway.wire.openai_responses.told import decode as decode_told
from gateway.wire.sse import CR, DATA, LF, Splitter

_SKIPPED: Final = frozenset({"keepalive", "ping", "response.keepalive"})
_TEXT: Final = "response.output_text.delta"
_NAME: Final = b"event: response.output_text.delta"
_N_NAME: Final = len(_NAME)
_LINES: Final = 3                                 # line ends of a frame: the event's name, its data, nothing


class Delta(msgspec.Struct, gc=False):
    """A frame with a ``delta``; negative and empty defaults tell that a field is missing."""
    type: str
    delta: str
    item_id: str = ""
    output_index: int = -1
    content_index: int = -1
    summary_index: int = -1
    sequence_number: int = -1


class More(msgspec.Struct, gc=False, tag_field="type", tag=_TEXT):
    """More of a text, in a frame that lacks nothing."""
    delta: str
    item_id: str
    output_index: int
    content_index: int
    sequence_number: int


_decode_delta = msgspec.json.Decoder(Delta).decode
_decode_more = msgspec.json.Decoder(More).decode


class Decoder:
    """One upstream stream. ``model`` is the name shown to the client ("" = the upstream's own)."""

    __slots__ = ("said", "number", "_split", "_same", "_ledger", "_reader", "_over", "_begun", "_closing", "_limit", "_flow",
                 "_before")

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self.said = ""                           # by the frames that the last run found
        self.number = self._before = -1          # … and the number of the last of them, and of the one before them
        self._flow: Delta | None = None          # the last frame, where it was a text that a client of this format was passed
        self._split = Splitter(max_frame_bytes)
        self._limit = max_frame_bytes
        self._same = same
        self._ledger = Ledger(model, same)
        self._reader = Reader(same, self._ledger)
        self._over = False
        self._begun = False
        self._closing = False

    def feed(self, data: bytes) -> list[ev.Event]:
        out: list[ev.Event] = []
        if data[:_N_NAME] == _NAME and self._split.idle and self._plain(data, out):
            return out
        if not self._over:
            for name, frame in self._split.feed(data):
                self._frame(name, frame, out)
                if self._over:
                    break
        return out

    def close(self) -> list[ev.Event]:
        """The upstream's EOF. A last frame that was cut is not told: the missing end is what counts."""
        self._closing = True
        out: list[ev.Event] = []
        for name, frame in [] if self._over else self._split.close():
            self._frame(name, frame, out)
        self._over = True
        return out

    def run(self, data: bytes) -> int:
        """Frames that go on with the text of the last one, numbered on (``base.Decoder.run``, ``base.Numbered``)."""
        flow, split = self._flow, self._split
        if flow is None or split.held or split.after_cr or len(data) > self._limit or CR in data:
            return 0
        lines = data.split(b"\n")
        if len(lines) % _LINES != 1 or lines[-1] or not (data.isascii() or is_utf8(data)):
            return 0
        ledger, said = self._ledger, ""
        number = ledger.number
        for at in range(0, len(lines) - 1, _LINES):
            line = lines[at + 1]
            if lines[at] != _NAME or lines[at + 2] or line[:6] != DATA:
                return 0
            try:
                more = _decode_more(line[6:])
            except ODD:
                return 0
            if more.sequence_number <= number or not more.delta or more.item_id != flow.item_id \
                    or more.output_index != flow.output_index or more.content_index != flow.content_index:
                return 0
            number = more.sequence_number
            said += more.delta
        self._before, ledger.number, self.number, self.said = ledger.number, number, number, said
        return len(lines) // _LINES

    def take_back(self) -> None:
        self._ledger.number = self._before

    def whole(self, response: Json) -> list[ev.Event]:
        """A response that did not stream, as the events of its turn."""
        self._ledger.frames = False
        out: list[ev.Event] = []
        self._terminal({"type": "response.completed", "response": response}, None, out)
        return out

    # ------------------------------------------------------------------ text
    def _plain(self, data: bytes, out: list[ev.Event]) -> bool:
        """A read that is nothing but plain text, framed as everybody does, needs not be looked at line by line."""
        lines = data.split(b"\n")
        if len(lines) % _LINES != 1 or lines[-1] or self._over or self._reader.half or len(data) > self._limit or CR in data:
            return False
        deltas = []
        for at in range(0, len(lines) - 1, _LINES):
            line = lines[at + 1]
            if lines[at] != _NAME or lines[at + 2] or line[:6] != DATA:
                return False
            try:
                deltas.append((_decode_delta(line[6:]), line[6:]))
            except ODD:
                return False
        for n, (delta, body) in enumerate(deltas):
            if delta.type != _TEXT or not self._delta(delta, DELTAS[_TEXT], body, out):
                for _, rest in deltas[n:]:
                    if not self._over:
                        self._frame(None, rest, out)
                break
        return True

    def _frame(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        if LF in data:
            data = data.replace(b"\n", b" ")
        if (data.find(b'.delta"') >= 0 if name is None else name.endswith(".delta")) and not self._reader.half:
            try:
                frame = _decode_delta(data)
            except ODD:
                pass
            else:
                if (made := DELTAS.get(frame.type)) is not None and self._delta(frame, made, data, out):
                    return
        elif self._straight(data, out):
            return
        self._rich(name, data, out)

    def _delta(self, frame: Delta, made: tuple[Any, str], data: bytes, out: list[ev.Event]) -> bool:
        """Plain text in a frame that lacks nothing; False for any other."""
        ledger = self._ledger
        known = ledger.items.get(frame.output_index)
        place = getattr(frame, made[1])
        if known is None or not self._begun or place < 0 or not frame.delta:
            return False
        raw = None
        if self._same:
            if frame.item_id != known.id or frame.sequence_number <= ledger.number or not is_utf8(data):
                return False
            ledger.number = frame.sequence_number
            raw = data
            self._flow = frame if frame.type == _TEXT else None
        key = (frame.type, place)
        known.said[key] = known.said.get(key, 0) + len(frame.delta)
        out.append(made[0](frame.delta, raw))
        return True

    # ------------------------------------------------------------------ what stands around text
    def _straight(self, data: bytes, out: list[ev.Event]) -> bool:
        """A frame that needs nothing (``straight.py``); False for any other."""
        try:
            told = decode_told(data)
        except ODD:
            return False
        ledger = self._ledger
        if self._same and (told.sequence_number <= ledger.number or not (data.isascii() or is_utf8(data))):
            return False
        if told.response is None:
            fits = FITS.get(told.type)
            if fits is None or not self._begun or not fits(told, ledger):
                return False
            if self._same:
                out.append(ev.Opaque(WIRE, "frame", told, data))
        elif not self._enveloped(told, told.response, data, out):
            return False
        self._flow = None
        if self._same:
            ledger.number = told.sequence_number
        return True

    def _enveloped(self, told: Told, response: Response, data: bytes, out: list[ev.Event]) -> bool:
        """A response that lacks nothing: as it begins, or complete."""
        ledger, over = self._ledger, told.type == "response.completed"
        if not (response.id and response.model and response.object and response.created_at >= 0):
            return False
        if over:
            if response.status != "completed" or not (self._begun and ledger.items) or self._reader.half:
                return False
        elif told.type not in OPENINGS or response.output is None or not response.status:
            return False
        raw = None
        if self._same:
            raw = data if not ledger.shown or response.model == ledger.shown else ledger.renamed(data, response.model)
            if raw is None:
                return False
        if not ledger.id:
            ledger.opens(response.id, response.model, response.created_at)
        if over:
            self._over = True
            if response.usage is not None:
                out.append(read_usage(response.usage))
            out += (ev.Finish("tool_calls" if self._reader.called else "stop"), ev.End(raw, told))
            return True
        opened = None
        if not self._begun:
            self._begun, opened = True, raw if told.type == "response.created" else None
            out.append(ev.Meta(ledger.id, response.model, ledger.created, opened, told=told))
        if raw is not None and opened is None:
            out.append(ev.Opaque(WIRE, "frame", told, raw))
        return True

    # ------------------------------------------------------------------ everything else
    def _rich(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        self._flow = None
        if data.strip() == b"[DONE]":
            return
        try:
            doc, exact = load(data)
        except ValueError:
            return self._unreadable(data, out)
        if not isinstance(doc, dict):
            return self._unreadable(data, out)
        kind = doc.get("type")
        if not isinstance(kind, str) or not kind:
            doc["type"] = kind = name or ("error" if doc.get("error") or "message" in doc else "")
            exact = False
        if kind in _SKIPPED:
            return
        if kind in FAILED or not kind.startswith("response.") and doc.get("error"):
            self._over = True
            out.append(ev.Fault(fault_in(doc, "error")))
            return
        try:
            self._read(kind, doc, data if exact else None, out)
        except (ValueError, RecursionError):
            self._unreadable(b"{", out)

    def _read(self, kind: str, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        if isinstance(doc.get("response"), dict):
            return self._response(kind, doc, data, out)
        if not self._begun:
            self._begun = True
            self._ledger.learn({})
            out.append(ev.Meta(self._ledger.id, self._ledger.model, self._ledger.created))
        self._reader.read(kind, doc, data, out)

    # ------------------------------------------------------------------ the response
    def _response(self, kind: str, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        response = doc["response"]
        if kind in TERMINALS:
            return self._terminal(doc, data, out)
        theirs = response.get("model")
        raw = self._ledger.envelope(doc, data)
        if not self._begun:
            self._begun = True
            ledger = self._ledger
            opened = raw if kind == "response.created" else None
            out.append(ev.Meta(ledger.id, theirs if isinstance(theirs, str) else "", ledger.created, opened))
            if opened is not None:
                return
        if self._same:
            out.append(ev.Opaque(WIRE, "frame", doc if raw is None else by_hand(doc), raw))

    def _terminal(self, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        response = doc["response"]
        self._over = True
        if response.get("status") in ("failed", "cancelled"):
            out.append(ev.Fault(fault_in(doc, "error")))
            return
        theirs = response.get("model")
        raw = self._ledger.envelope(doc, data)
        if not self._begun:
            out.append(ev.Meta(self._ledger.id, theirs if isinstance(theirs, str) else "", self._ledger.created))
        if self._reader.half and not self._same:
            out.append(ev.Text("\ufffd"))
        if not self._ledger.items and not self._reader.told:
            said = response.get("output")
            for index, item in enumerate(said if isinstance(said, list) else ()):
                if isinstance(item, dict):
                    self._reader.whole_item(index, item, out)
        if isinstance(response.get("usage"), dict):
            out.append(read_usage(response["usage"]))
        out += (finish_of(response, self._reader.called), ev.End(raw))

    def _unreadable(self, data: bytes, out: list[ev.Event]) -> None:
        """A frame that is no JSON object: words that keep the line alive are passed over, but nothing that was meant to be one."""
        if self._closing or (self._begun and not data.lstrip().startswith(b"{")):
            return
        self._over = True
        out.append(ev.Fault(GatewayError("bad_reply", "The provider sent a stream frame that is not JSON.")))
