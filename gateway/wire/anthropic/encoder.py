"""How is a turn told to a Messages client? One open block at a time, numbered 0, 1, 2 …, the reason and the counts at the end.

Frames of an upstream that speaks this format go out as they came as long as they fit: block starts and stops are followed, and
where the turn has taken blocks out or put calls in, the numbers inside the frames are rewritten. Everything else is written anew.
"""
import re
from typing import Final

import orjson

from gateway.core import events as ev
from gateway.core.ids import token
from gateway.wire.anthropic.faults import error_frame
from gateway.wire.anthropic.live import LiveCalls
from gateway.wire.anthropic.schema import NAME, Json, call_input, dump, load, safe_id, stop_out, write_usage
from gateway.wire.base import Shown
from gateway.wire.sse import frame, heading

PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'

_DELTA_HEAD: Final = heading("content_block_delta")
_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":'
_STOP: Final = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_INDEX: Final = re.compile(rb'"index"\s*:\s*\d+')
_TEXT: Final[Json] = {"type": "text", "text": ""}
_THINKING: Final[Json] = {"type": "thinking", "thinking": "", "signature": ""}


class Encoder:
    """One stream to one client."""

    __slots__ = ("_shown", "_out", "_started", "_open", "_n", "_theirs", "_needle", "_lead", "_finish", "_usage", "_ended",
                 "_refused", "_live", "_ids")

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._out: list[bytes] = []
        self._started = False
        self._open = ""                          # the type of the open block
        self._n = 0                              # blocks begun; the open one is the last of them
        self._theirs = -1                        # its number in the upstream's frames, if it came with one
        self._needle = b""                       # … as it stands in a frame whose number is right
        self._lead = b""                         # how a text or thinking delta of the open block begins
        self._finish: ev.Finish | None = None
        self._usage: ev.Usage | None = None
        self._ended = False
        self._refused = False
        self._live = LiveCalls()
        self._ids: set[str] = set()

    def encode(self, events: list[ev.Event]) -> bytes:
        out = self._out = []
        for event in events:
            if type(event) is ev.Text and event.raw is not None and self._open == "text" and self._theirs >= 0 \
                    and event.raw.find(self._needle) >= 0 and self._live.idle:
                out.append(b"event: content_block_delta\ndata: %b\n\n" % event.raw)
            elif not self._ended:
                self._put(event)
        return b"".join(out)

    def keepalive(self) -> bytes:
        return PING

    # ------------------------------------------------------------------ one event
    def _put(self, event: ev.Event) -> None:
        if self._live.holds(event):
            return
        _WRITE[type(event)](self, event)  # type: ignore[operator]

    def _meta(self, event: ev.Meta) -> None:
        if not self._started:
            self._started = True
            self._out.append(frame(event.raw if event.raw is not None and self._shown.same else self._start(event),
                                   "message_start"))

    def _start(self, event: ev.Meta) -> bytes:
        usage = self._usage or ev.Usage(input=max(self._shown.request.chars // 4, 1), estimated=True)
        return dump({"type": "message_start", "message": {
            "id": message_id(event.id, self._shown), "type": "message", "role": "assistant", "model": self._shown.model,
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": write_usage(usage, self._shown.same)}})

    def _note_usage(self, event: ev.Usage) -> None:
        self._usage = event

    def _note_finish(self, event: ev.Finish) -> None:
        if self._finish is None and event.choice == 0:
            for held in self._live.rest():
                _WRITE[type(held)](self, held)  # type: ignore[operator]
            self._finish = event

    # ------------------------------------------------------------------ blocks
    def _begin(self, block: Json, theirs: int = -1, raw: bytes | None = None) -> None:
        """Close what is open and open a block, with the upstream's own frame if there is one."""
        if not self._started:
            self._meta(ev.Meta())
        self._close()
        index = self._n
        self._n += 1
        self._open = str(block.get("type"))
        self._theirs = theirs
        self._needle = b'"index":%d,"' % index if theirs == index else b"\x00"
        if self._open in _SAYS:
            self._lead = (_DELTA + _SAYS[self._open]) % index
        if raw is None:
            raw = dump({"type": "content_block_start", "index": index, "content_block": block})
        elif theirs != index:
            raw = renumbered(raw, index)
        self._out.append(b"event: content_block_start\ndata: %b\n\n" % raw)

    def _close(self) -> None:
        if self._open:
            self._out.append(_STOP % (self._n - 1))
            self._open = ""
            self._theirs = -1

    def _pass(self, raw: bytes, head: bytes = _DELTA_HEAD) -> None:
        """The upstream's frame of the open block."""
        index = self._n - 1
        if self._theirs != index or raw.find(b'"index":%d' % index) < 0:
            raw = renumbered(raw, index)
        self._out.append(b"%b%b\n\n" % (head, raw))

    def _text(self, event: ev.Text) -> None:
        if event.choice:
            return
        raw = event.raw if self._shown.same else None
        if raw is not None and raw.find(b'"content_block_delta"') < 0:
            doc = load(raw)
            if "type" in doc:
                return self._frame(doc, raw)
            raw = None                           # only the event's name said what it is
        if self._open != "text":
            if not event.text:
                return
            self._begin(_TEXT)
        if raw is not None:
            self._pass(raw)
        elif event.text:
            self._out.append(b"%b%b}}\n\n" % (self._lead, quoted(event.text)))

    def _reasoning(self, event: ev.Reasoning) -> None:
        if event.choice:
            return
        same = self._shown.same
        raw = event.raw if same else None
        if raw is not None and raw.find(b'"content_block_delta"') < 0:
            doc = load(raw)
            if "type" in doc:
                return self._frame(doc, raw)
            raw = None                           # only the event's name said what it is
        if event.redacted is not None:
            # Only its maker can read it.
            if same:
                self._begin({"type": "redacted_thinking", "data": event.redacted})
                self._close()
            return
        signature = event.signature if same else None
        if self._open != "thinking":
            if not event.text and not signature:
                return
            self._begin(_THINKING)
        if raw is not None:
            return self._pass(raw)
        if event.text:
            self._out.append(b"%b%b}}\n\n" % (self._lead, quoted(event.text)))
        if signature:
            self._out.append((_DELTA + b'"signature_delta","signature":%b}}\n\n') % (self._n - 1, quoted(signature)))

    def _refusal(self, event: ev.Refusal) -> None:
        """This format has no place for a refusal but the text and the reason."""
        self._refused = True
        self._text(ev.Text(event.text, None, event.choice))

    def _opaque(self, event: ev.Opaque) -> None:
        payload = event.payload
        if event.wire != NAME or not self._shown.same or not isinstance(payload, dict):
            return
        if str(payload.get("type")).startswith("content_block_"):
            return self._frame(payload, event.raw if event.raw is not None else dump(payload))
        # A whole block, from an answer that did not stream.
        given = payload.get("input")
        if payload.get("type") == "server_tool_use" and given:
            self._begin({**payload, "input": {}})
            self._input(dump(given).decode())
        else:
            self._begin(payload)
        self._close()

    def _frame(self, doc: Json, raw: bytes) -> None:
        """A frame of the upstream's that tells of a block."""
        kind, theirs = doc["type"], doc.get("index")
        if kind == "content_block_start":
            self._begin(doc["content_block"], theirs if isinstance(theirs, int) else -1, raw)
        elif self._open and theirs == self._theirs:
            self._pass(raw, heading(kind))
            if kind == "content_block_stop":
                self._open = ""
                self._theirs = -1

    # ------------------------------------------------------------------ calls
    def _call(self, event: ev.ToolCall) -> None:
        if event.choice:
            return
        self._begin(self._call_block(event))
        custom = event.kind == "custom"
        self._input(dump(call_input(event.arguments, "custom")).decode() if custom else event.arguments or "{}")
        self._close()

    def _call_start(self, event: ev.ToolStart) -> None:
        if not event.choice:
            self._begin(self._call_block(event))

    def _call_args(self, event: ev.ToolArgs) -> None:
        if self._open == "tool_use" and event.text:
            self._input(event.text)

    def _call_block(self, event: ev.ToolCall | ev.ToolStart) -> Json:
        name = unique(safe_id(event.id), self._ids)
        block: Json = {"type": "tool_use", "id": name, "name": event.name, "input": {}}
        return block | event.extra if event.extra and self._shown.same else block

    def _input(self, text: str) -> None:
        self._out.append((_DELTA + b'"input_json_delta","partial_json":%b}}\n\n') % (self._n - 1, quoted(text)))

    # ------------------------------------------------------------------ the end
    def _end(self, event: ev.End) -> None:
        if not self._started:
            self._meta(ev.Meta())
        self._close()
        self._ended = True
        self._out.append(frame(self._last(), "message_delta"))
        raw = event.raw if self._shown.same else None
        self._out.append(frame(raw or b'{"type":"message_stop"}', "message_stop"))

    def _last(self) -> bytes:
        """message_delta: the upstream's own where it says all that a client needs."""
        finish = self._finish or ev.Finish("stop")
        usage = self._usage or ev.Usage(estimated=True)
        doc: Json = load(finish.raw) if finish.raw is not None and self._shown.same else {}
        told = doc.get("usage")
        if isinstance(told, dict) and isinstance(told.get("output_tokens"), int) and not usage.estimated:
            return finish.raw or b""
        reason = "refusal" if self._refused and finish.reason == "stop" else finish.reason
        delta = {"stop_reason": stop_out(reason, finish.stop_sequence), "stop_sequence": finish.stop_sequence}
        kept = doc.get("delta")
        return dump({"type": "message_delta"} | doc | {"delta": kept if isinstance(kept, dict) else delta,
                                                       "usage": write_usage(usage, self._shown.same)})

    def _fault(self, event: ev.Fault) -> None:
        self._ended = True
        self._out.append(error_frame(event.error))


_SAYS: Final = {"text": b'"text_delta","text":', "thinking": b'"thinking_delta","thinking":'}
_WRITE: Final = {
    ev.Meta: Encoder._meta, ev.Text: Encoder._text, ev.Reasoning: Encoder._reasoning, ev.Refusal: Encoder._refusal,
    ev.ToolCall: Encoder._call, ev.ToolStart: Encoder._call_start, ev.ToolArgs: Encoder._call_args,
    ev.Opaque: Encoder._opaque, ev.Usage: Encoder._note_usage, ev.Finish: Encoder._note_finish, ev.Fault: Encoder._fault,
    ev.End: Encoder._end,
}


def quoted(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:
        return dump(text)                        # half a surrogate pair stays an escape


def renumbered(raw: bytes, index: int) -> bytes:
    """A frame with another block's number. Inside a string the quotes of ``"index"`` would be escaped."""
    if len(_INDEX.findall(raw)) == 1:
        return _INDEX.sub(b'"index":%d' % index, raw)
    doc: Json = load(raw)
    return dump(doc | {"index": index})


def unique(name: str, used: set[str]) -> str:
    """A call's id that no other call of this answer has."""
    found, n = name, 1
    while found in used:
        n += 1
        found = f"{name}_{n}"
    used.add(found)
    return found


def message_id(theirs: str, shown: Shown) -> str:
    if theirs.startswith("msg_"):
        return theirs
    own = re.sub("[^0-9A-Za-z]", "", theirs or shown.id)
    return "msg_" + (own or token())
