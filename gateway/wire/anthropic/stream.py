"""What does a Messages upstream's stream say? Frames of blocks in, neutral events out.

Text and thinking become events that carry their frame; the frames around them (block starts and stops, citations, everything of
server-run tools) are opaque ones, so that a client of the same format gets them all. ``tool_use`` blocks belong to the turn: it
makes calls of them, and their frames are not passed on. https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.ids import token
from gateway.core.redact import redact
from gateway.wire import lenient
from gateway.wire.anthropic.faults import fault_of
from gateway.wire.anthropic.schema import COPIED, NAME, STOP_IN, Frame, Json, More, arguments, dump, read_usage
from gateway.wire.sse import CR, DATA, LF, Splitter

_frame = msgspec.json.Decoder(Frame)
_more = msgspec.json.Decoder(More)
_BLANK: Final = b" \t\n\r"

# How a frame of text begins that may pass unread, and the lines of one.
_NAME: Final = b"event: content_block_delta"
_N_NAME: Final = len(_NAME)
_HEAD: Final = b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta",'
_LINES: Final = 3
# Blocks that say nothing by themselves: their deltas do, or (a fallback notice) nothing does.
_QUIET: Final = frozenset({"text", "thinking", "redacted_thinking", "fallback"})


class Decoder:
    """One stream. ``same``: events carry frames for a client of this format, with ``model`` as the name it is shown."""

    __slots__ = ("_limit", "_splitter", "_same", "_model", "_blocks", "_inputs", "_extras", "_last", "_usage", "_n_blocks", "_dense",
                 "_plain", "_next", "_half", "said")

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self._splitter = Splitter(max_frame_bytes)
        self._limit = max_frame_bytes
        self._same = same
        self._model = model
        self._blocks: dict[int, str] = {}        # index -> type of the blocks that are open
        self._inputs: dict[int, Json] = {}       # whole inputs of calls whose deltas have not come
        self._extras: dict[int, Json] = {}
        self._last = 0                           # the block that a delta without an index belongs to
        self._usage: Json = {}
        self._n_blocks = 0
        self._dense = True                       # the client's indexes are the upstream's
        self._plain = b""                        # how frames of the open text block begin, where they may pass unread
        self._next = b""                         # … which it becomes with its first words
        self.said = ""                           # by the frames that the last run found
        self._half = ""                          # a first half of a surrogate pair that waits for the second

    def feed(self, data: bytes) -> list[ev.Event]:
        out: list[ev.Event] = []
        if data[:_N_NAME] == _NAME and self._texts(data, out):
            return out
        for name, frame in self._splitter.feed(data):
            self._take(name, frame, out)
            if out and type(out[-1]) is ev.Fault:
                break
        return out

    def close(self) -> list[ev.Event]:
        out: list[ev.Event] = []
        for name, frame in self._splitter.close():
            self._take(name, frame, out)
        if not (out and type(out[-1]) is ev.Fault):
            self._flush_inputs(out)
        return out

    def run(self, data: bytes) -> int:
        """Frames of the open text block, all alike (``base.Decoder.run``)."""
        head, splitter = self._plain, self._splitter
        if not head or splitter.held or splitter.after_cr or CR in data:
            return 0
        lines = data.split(b"\n")
        if len(lines) % _LINES != 1 or lines[-1]:
            return 0
        n_head, said = len(head), ""
        for at in range(0, len(lines) - 1, _LINES):
            line = lines[at + 1]
            if lines[at] != _NAME or lines[at + 2] or line[:n_head] != head:
                return 0
            try:
                text = _more.decode(line[6:]).delta.text
            except msgspec.MsgspecError:
                return 0
            if not text:
                return 0
            said += text
        self.said = said
        return len(lines) // _LINES

    # ------------------------------------------------------------------ frames
    def _texts(self, data: bytes, out: list[ev.Event]) -> bool:
        """A read that is nothing but text, framed as everybody does, needs not be looked at frame by frame."""
        if not self._splitter.idle or self._half or len(data) > self._limit or CR in data:
            return False
        lines = data.split(b"\n")
        if len(lines) % _LINES != 1 or lines[-1]:
            return False
        same = self._same
        for at in range(0, len(lines) - 1, _LINES):
            line = lines[at + 1]
            if lines[at] != _NAME or lines[at + 2] or line[:6] != DATA:
                out.clear()
                return False
            raw = line[6:]
            try:
                text = _more.decode(raw).delta.text
            except msgspec.MsgspecError:
                out.clear()
                return False
            if same:
                out.append(ev.Text(text, raw))
            elif text:
                out.append(ev.Text(text))
        self._belongs(self._n_blocks - 1, "text")
        if self._next:
            self._decide("".join([event.text for event in out]))     # type: ignore[attr-defined]
        return True

    def _take(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        if name is not None and name != "content_block_delta":
            return self._lenient(name, data, out)
        try:
            frame = _frame.decode(data)
        except msgspec.MsgspecError:
            return self._lenient(name, data, out)
        delta = frame.delta
        if frame.type != "content_block_delta" or delta is None or frame.index is None:
            return self._lenient(name, data, out)
        # The hot path: one delta of the block that its kind belongs to.
        raw = data if self._same and LF not in data else None
        index = frame.index
        if delta.type == "text_delta" and delta.text is not None and not self._half:
            self._belongs(index, "text")
            if delta.text or raw:
                out.append(ev.Text(delta.text, raw))
            if self._next:
                self._decide(delta.text)
        elif delta.type == "thinking_delta" and delta.thinking is not None and not self._half:
            self._belongs(index, "thinking")
            out.append(ev.Reasoning(delta.thinking, raw))
        elif delta.type == "input_json_delta" and delta.partial_json is not None and self._calls(index):
            self._arguments(index, delta.partial_json, out)
        elif delta.type == "signature_delta" and delta.signature is not None:
            self._belongs(index, "thinking")
            out.append(ev.Reasoning("", raw, 0, delta.signature))
        else:
            self._lenient(name, data, out)

    def _belongs(self, index: int, kind: str) -> None:
        """A delta that is not the newest block's, or not of its kind, gets a block of the encoder's: all later numbers are others."""
        if self._dense and (index != self._n_blocks - 1 or self._blocks.get(index) != kind):
            self._dense, self._plain, self._next = False, b"", b""

    def _decide(self, text: str) -> None:
        """Frames may pass unread once the block has words. A tag at its beginning may become a block of its own: then the
        numbers in all later frames are wrong for the client."""
        words = text.lstrip()
        if words:
            self._plain, self._next = self._next, b""
            if words[0] == "<":
                self._plain, self._dense = b"", False

    def _lenient(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        """Any frame, however it is written."""
        if name == "ping" or data.strip(_BLANK) == b"[DONE]":
            return
        try:
            doc, exact = lenient.load(data)
        except ValueError:
            doc, exact = None, False
        if not isinstance(doc, dict):
            said = f": {redact(data[:400].decode('utf-8', 'replace'))}" if name == "error" else "."
            out.append(ev.Fault(GatewayError("bad_reply", "The provider sent an event that is not JSON" + said)))
            return
        error = fault_of(doc, name)
        if error is not None:
            out.append(ev.Fault(error))
            return
        kind = doc.get("type") or name
        handler = _HANDLERS.get(kind if isinstance(kind, str) else "")
        if handler is not None:
            raw = None
            if self._same:
                raw = data if exact and LF not in data and doc.get("type") else dump(doc | {"type": kind})
                doc["type"] = kind               # an encoder would take a frame without one for a whole block
            handler(self, doc, raw, out)

    def _index(self, doc: Json) -> int:
        index = doc.get("index")
        if isinstance(index, int):
            self._last = index
        else:
            doc["index"] = self._last
        return self._last

    def _message_start(self, doc: Json, raw: bytes | None, out: list[ev.Event]) -> None:
        message = doc.get("message")
        message = message if isinstance(message, dict) else {}
        usage = message.get("usage")
        name, model = str(message.get("id") or ""), str(message.get("model") or "")
        out.append(ev.Meta(name, model, 0, self._start_frame(doc, message, raw)))
        if isinstance(usage, dict):
            self._count(usage, out)

    def _start_frame(self, doc: Json, message: Json, raw: bytes | None) -> bytes | None:
        """The frame for a client of this format, whose libraries fail on a thin one; None where ours is better."""
        usage = message.get("usage")
        if raw is None or not isinstance(usage, dict) or not isinstance(usage.get("input_tokens"), int) \
                or not isinstance(usage.get("output_tokens"), int):
            return None
        shown = self._model or message.get("model") or "unknown"
        if message.get("model") == shown and message.get("id") and message.get("role") == "assistant" \
                and message.get("type") == "message" and isinstance(message.get("content"), list):
            return raw
        full: Json = {"id": "msg_" + token(), "type": "message", "role": "assistant", "content": [], "stop_reason": None,
                "stop_sequence": None}
        told = {key: value for key, value in message.items() if value is not None}
        return dump(doc | {"message": message | full | told | {"model": shown}})

    def _count(self, usage: Json, out: list[ev.Event]) -> None:
        """Counts are cumulative, and what a later frame leaves out still holds."""
        self._usage = self._usage | {key: value for key, value in usage.items() if value is not None}
        out.append(read_usage(self._usage))

    # ------------------------------------------------------------------ blocks
    def _block_start(self, doc: Json, raw: bytes | None, out: list[ev.Event]) -> None:
        block = doc.get("content_block")
        if not isinstance(block, dict):
            return
        index, kind = self._index(doc), str(block.get("type"))
        if raw is not None and "index" not in doc:
            raw = dump(doc)
        self._flush_inputs(out)
        self._blocks[index] = kind
        self._plain = self._next = b""
        if kind == "tool_use":
            self._dense = False
            given = block.get("input")
            if given and isinstance(given, (dict, str)):
                self._inputs[index] = given if isinstance(given, dict) else {"input": given}
            out.append(ev.ToolDelta(index, _string(block.get("id")), _string(block.get("name")), extra=self._beside(block)))
            return
        self._dense = self._dense and index == self._n_blocks and not (kind == "thinking" and self._n_blocks)
        self._n_blocks += 1
        if kind == "text" and self._dense and self._same:
            self._next = _HEAD % index
        out.append(_START.get(kind, _other_start)(block, doc, raw))

    def _beside(self, block: Json) -> Json | None:
        """What a call carries beside its parts, for a client of this format."""
        if not self._same:
            return None
        return {key: value for key, value in block.items() if key not in ("type", "id", "name", "input")} or None

    def _block_delta(self, doc: Json, raw: bytes | None, out: list[ev.Event]) -> None:
        delta = doc.get("delta")
        if not isinstance(delta, dict):
            return
        had = "index" in doc
        index, kind = self._index(doc), delta.get("type")
        if raw is not None and not had:
            raw = dump(doc)
        text = delta.get(_CONTENT.get(str(kind), ""))
        if kind == "input_json_delta" and self._calls(index):
            piece = delta.get("partial_json")
            return self._arguments(index, piece if isinstance(piece, str) else arguments(piece), out)
        if not isinstance(text, str):
            return out.append(ev.Opaque(NAME, str(kind), doc, raw))
        self._belongs(index, "text" if kind == "text_delta" else "thinking")
        if kind == "text_delta":
            text, whole = self._joined(text)
            out += [ev.Text(text, raw if whole else None)] if text else []
        elif kind == "thinking_delta":
            text, whole = self._joined(text)
            out += [ev.Reasoning(text, raw if whole else None)] if text else []
        else:
            out.append(ev.Reasoning("", raw, 0, text))

    def _joined(self, text: str) -> tuple[str, bool]:
        """Halves of a surrogate pair that two deltas split, put together. True: nothing had to be moved."""
        whole, text, self._half = not self._half, self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text, whole = text[-1], text[:-1], False
        fixed = lenient.whole_text(text)
        return fixed, whole and fixed == text

    def _block_stop(self, doc: Json, raw: bytes | None, out: list[ev.Event]) -> None:
        had = "index" in doc
        index = self._index(doc)
        kind = self._blocks.pop(index, "")
        self._plain = self._next = b""
        self._flush_inputs(out)
        if kind and kind != "tool_use":
            out.append(ev.Opaque(NAME, "content_block_stop", doc, raw if raw is None or had else dump(doc)))

    # ------------------------------------------------------------------ calls
    def _calls(self, index: int) -> bool:
        return self._blocks.get(index, "tool_use") == "tool_use"

    def _arguments(self, index: int, piece: str, out: list[ev.Event]) -> None:
        if piece:
            self._inputs.pop(index, None)
            self._dense = False
            out.append(ev.ToolDelta(index, arguments=piece))

    def _flush_inputs(self, out: list[ev.Event]) -> None:
        """Calls that gave their input at the start and nothing after it."""
        for index, given in self._inputs.items():
            out.append(ev.ToolDelta(index, arguments=arguments(given), whole=True))
        self._inputs.clear()

    # ------------------------------------------------------------------ the end
    def _message_delta(self, doc: Json, raw: bytes | None, out: list[ev.Event]) -> None:
        self._flush_inputs(out)
        self._plain = self._next = b""
        delta, usage = doc.get("delta"), doc.get("usage")
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if isinstance(reason, str) and reason:
            sequence = delta.get("stop_sequence") if isinstance(delta, dict) else None
            raw = None if reason in COPIED else raw
            out.append(ev.Finish(STOP_IN.get(reason, reason), 0, raw, sequence if isinstance(sequence, str) else None))
        if isinstance(usage, dict):
            self._count(usage, out)

    def _message_stop(self, doc: Json, raw: bytes | None, out: list[ev.Event]) -> None:
        out.append(ev.End(raw))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text_start(block: Json, doc: Json, raw: bytes | None) -> ev.Event:
    text = block.get("text")
    return ev.Text(text, raw) if isinstance(text, str) and text else ev.Opaque(NAME, "content_block_start", doc, raw)


def _thinking_start(block: Json, doc: Json, raw: bytes | None) -> ev.Event:
    text, signature = _string(block.get("thinking")), _string(block.get("signature"))
    if text or signature:
        return ev.Reasoning(text, raw, 0, signature or None)
    return ev.Opaque(NAME, "content_block_start", doc, raw)


def _redacted_start(block: Json, doc: Json, raw: bytes | None) -> ev.Event:
    return ev.Reasoning("", raw, 0, None, _string(block.get("data")))


def _other_start(block: Json, doc: Json, raw: bytes | None) -> ev.Event:
    """Server-run tools, compaction …: an answer to a client of this format, nothing to any other."""
    kind = str(block.get("type"))
    return ev.Opaque(NAME, kind, doc, raw, counts=raw is not None and kind not in _QUIET)


_START: Final = {"text": _text_start, "thinking": _thinking_start, "redacted_thinking": _redacted_start}
_CONTENT: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_HANDLERS: Final = {
    "message_start": Decoder._message_start, "content_block_start": Decoder._block_start,
    "content_block_delta": Decoder._block_delta, "content_block_stop": Decoder._block_stop,
    "message_delta": Decoder._message_delta, "message_stop": Decoder._message_stop,
}
