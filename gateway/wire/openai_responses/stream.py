"""What does an upstream's Responses stream say? Bytes -> events.

Deltas of text, which nearly all frames are, are typed and never become dicts. Calls are told as pieces, for the turn to put
together; their own frames are not passed on. Frames around text (items and parts that begin and end, annotations, tools that the
provider runs) are ``Opaque``: what they mean, the encoder knows. What servers leave out is filled in here (``frames.py``).
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.lenient import LONE, load, whole_text
from gateway.wire.openai_chat.schema import read_usage
from gateway.wire.openai_responses.faults import fault_in
from gateway.wire.openai_responses.frames import PLACED, Known, Ledger
from gateway.wire.openai_responses.parts import FORMS, PART_ADDED, PART_OF
from gateway.wire.openai_responses.schema import (
    CALLS,
    COUNTS,
    FAILED,
    INCOMPLETE,
    TERMINALS,
    WIRE,
    Json,
    texts_of,
)
from gateway.wire.sse import Splitter

# Which delta says what, and which of a frame's numbers is its part's place.
DELTAS: Final[dict[str, tuple[type[ev.Text] | type[ev.Reasoning] | type[ev.Refusal], str]]] = {
    "response.output_text.delta": (ev.Text, "content_index"),
    "response.refusal.delta": (ev.Refusal, "content_index"),
    "response.reasoning_text.delta": (ev.Reasoning, "content_index"),
    "response.reasoning_summary_text.delta": (ev.Reasoning, "summary_index"),
}
ARGUMENT_DELTAS: Final = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
ARGUMENT_DONE: Final = {"response.function_call_arguments.done": "arguments", "response.custom_tool_call_input.done": "input"}
# Whole texts, for servers that send no deltas: the delta's kind, and the field.
WHOLE: Final = {form[4]: (form[3], form[6]) for form in FORMS.values()}
_PART_KINDS: Final = {kind: form[3] for kind, form in FORMS.items()}
ITEM_FRAMES: Final = frozenset({"response.output_item.added", "response.output_item.done"})
_SKIPPED: Final = frozenset({"keepalive", "ping", "response.keepalive"})


class Delta(msgspec.Struct, gc=False):
    """A frame with a ``delta``; negative and empty defaults tell that a field is missing."""
    type: str
    delta: str
    item_id: str = ""
    output_index: int = -1
    content_index: int = -1
    summary_index: int = -1
    sequence_number: int = -1


_decode_delta = msgspec.json.Decoder(Delta).decode


class Decoder:
    """One upstream stream. ``model`` is the name shown to the client ("" = the upstream's own)."""

    __slots__ = ("_split", "_same", "_ledger", "_over", "_called", "_begun", "_half", "_closing", "_told")

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self._split = Splitter(max_frame_bytes)
        self._same = same
        self._ledger = Ledger(model, same)
        self._over = False
        self._called = False
        self._begun = False
        self._half = ""                          # of a surrogate pair that was cut in two frames
        self._closing = False
        self._told = False                       # something was said of items that nobody began

    def feed(self, data: bytes) -> list[ev.Event]:
        out: list[ev.Event] = []
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
        """Never: every frame has its own number, which frames of ours must go on from."""
        return 0

    def whole(self, response: Json) -> list[ev.Event]:
        """A response that did not stream, as the events of its turn."""
        self._ledger.frames = False
        out: list[ev.Event] = []
        self._terminal({"type": "response.completed", "response": response}, None, out)
        return out

    # ------------------------------------------------------------------ text
    def _frame(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
        if b"\n" in data:
            data = data.replace(b"\n", b" ")
        if b'.delta"' in data and not self._half:
            try:
                frame = _decode_delta(data)
            except (msgspec.DecodeError, RecursionError):
                pass
            else:
                if (made := DELTAS.get(frame.type)) is not None and self._delta(frame, made, data, out):
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
            if frame.item_id != known.id or frame.sequence_number <= ledger.number or not _is_utf8(data):
                return False
            ledger.number = frame.sequence_number
            raw = data
        key = (frame.type, place)
        known.said[key] = known.said.get(key, 0) + len(frame.delta)
        out.append(made[0](frame.delta, raw))
        return True

    # ------------------------------------------------------------------ everything else
    def _rich(self, name: str | None, data: bytes, out: list[ev.Event]) -> None:
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
        if kind in ITEM_FRAMES and not isinstance(doc.get("item"), dict):
            return
        if kind == "response.output_item.added":
            return self._added(doc, data, out)
        known = self._ledger.find_for(doc)
        if kind in ARGUMENT_DELTAS:
            self._arguments(known, doc, out)
        elif kind in ARGUMENT_DONE:
            self._all_arguments(known, str(doc.get(ARGUMENT_DONE[kind]) or ""), out)
        elif kind == "response.output_item.done":
            self._done(known, doc, data, out)
        elif kind in DELTAS:
            self._mended_delta(known, kind, doc, data, out)
        else:
            if kind in WHOLE:
                self._whole(known, doc, *WHOLE[kind], out)
            elif kind in PART_ADDED and known is not None:
                self._part_added(known, doc)
            if known is None or known.kind not in CALLS:
                self._opaque(kind, doc, data, known, out)

    def _opaque(self, kind: str, doc: Json, data: bytes | None, known: Known | None, out: list[ev.Event]) -> None:
        if known is None and (kind in PLACED or "output_index" in doc):
            return                               # about an item that nobody began
        counts = kind == "response.output_item.done" and doc["item"].get("type") in COUNTS
        if self._same or counts:
            out.append(ev.Opaque(WIRE, "frame", doc, self._ledger.frame(doc, data, known), counts=counts))

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
            out.append(ev.Opaque(WIRE, "frame", doc, raw))

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
        if self._half and not self._same:
            out.append(ev.Text("\ufffd"))
        if not self._ledger.items and not self._told:
            for index, item in enumerate(response.get("output") or ()):
                if isinstance(item, dict):
                    self._whole_item(index, item, out)
        if isinstance(response.get("usage"), dict):
            out.append(read_usage(response["usage"]))
        out += (finish_of(response, self._called), ev.End(raw))

    # ------------------------------------------------------------------ items
    def _added(self, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        known = self._ledger.add(doc)
        if known.kind in CALLS:
            self._call(known, doc["item"], out)
        else:
            self._opaque("response.output_item.added", doc, data, known, out)

    def _done(self, known: Known | None, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        item = doc["item"]
        if known is None or known.over:
            if known is None:
                self._whole_item(-1, item, out)
            return
        known.over = True
        if known.kind in CALLS:
            self._all_arguments(known, said_by(item), out, _rest(item) if self._same else None)
            return
        self._whole_parts(known, item, out)
        self._opaque("response.output_item.done", doc, data, known, out)

    def _whole_item(self, index: int, item: Json, out: list[ev.Event]) -> None:
        """An item that was never begun."""
        place: Json = {"output_index": index} if index >= 0 else {}
        if item.get("type") in CALLS:
            known = self._ledger.add({**place, "item": item})
            known.over = True
            return self._call(known, item, out)
        bare: Json = item | {name: [] for name in ("content", "summary") if name in item}
        self._added({"type": "response.output_item.added", **place, "item": bare}, None, out)
        self._done(self._ledger.last, {"type": "response.output_item.done", **place, "item": item}, None, out)

    def _whole_parts(self, known: Known, item: Json, out: list[ev.Event]) -> None:
        """Texts of a finished item that no delta said."""
        for name in ("summary", "content"):
            parts = item.get(name)
            for place, text in enumerate(texts_of(parts)):
                part = parts[place]  # type: ignore[index]
                kind = _PART_KINDS.get(str(part.get("type")) if isinstance(part, dict) else "")
                if kind is not None:
                    self._say(known, kind, place, text, out)

    def _whole(self, known: Known | None, doc: Json, kind: str, field: str, out: list[ev.Event]) -> None:
        place = doc.get(DELTAS[kind][1])
        if known is not None:
            self._say(known, kind, place if isinstance(place, int) else 0, str(doc.get(field) or ""), out)

    def _part_added(self, known: Known, doc: Json) -> None:
        part = doc.get("part")
        kind = _PART_KINDS.get(str(part.get("type")) if isinstance(part, dict) else "")
        if kind is not None:
            place = doc.get(DELTAS[kind][1])
            known.said.setdefault((kind, place if isinstance(place, int) else 0), 0)

    def _say(self, known: Known, kind: str, place: int, text: str, out: list[ev.Event]) -> None:
        """Tell a whole text, unless deltas have."""
        if not text or known.said.get((kind, place)):
            return
        if self._same and (kind, place) not in known.said:
            part: Json = {"type": PART_OF[kind], FORMS[PART_OF[kind]][6]: ""}
            doc: Json = {"type": FORMS[PART_OF[kind]][2], DELTAS[kind][1]: place, "part": part}
            doc |= {"item_id": known.id, "output_index": known.index}
            out.append(ev.Opaque(WIRE, "frame", doc, self._ledger.frame(doc, None, known)))
        known.said[kind, place] = len(text)
        out.append(DELTAS[kind][0](whole_text(text)))

    def _mended_delta(self, known: Known | None, kind: str, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        text = doc.get("delta")
        made, index = DELTAS[kind]
        if not isinstance(text, str) or not text:
            return
        raw = None
        if known is None:
            self._told = True
        else:
            place = doc.get(index)
            key = (kind, place if isinstance(place, int) else 0)
            known.said[key] = known.said.get(key, 0) + len(text)
            raw = self._ledger.frame(doc, data, known)
        out.append(made(self._joined(text), raw))

    def _joined(self, text: str) -> str:
        """A character cut in two escapes: the first half waits for its other. Its own frame, raw, is not held back."""
        text, self._half = self._half + text, ""
        if LONE.search(text) is None:
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return whole_text(text)

    # ------------------------------------------------------------------ calls
    def _call(self, known: Known, item: Json, out: list[ev.Event]) -> None:
        self._called = True
        said = said_by(item)
        if said:
            known.argued.append(said)
        extra = {**_rest(item), "id": known.id} if self._same else None
        out.append(ev.ToolDelta(
            index=known.index, id=str(item.get("call_id") or ""), name=str(item.get("name") or ""), arguments=said,
            whole=isinstance(item.get("arguments"), dict), kind=CALLS[known.kind], extra=extra))

    def _arguments(self, known: Known | None, doc: Json, out: list[ev.Event]) -> None:
        piece = doc.get("delta")
        if known is not None and known.kind in CALLS and isinstance(piece, str) and piece:
            known.argued.append(piece)
            out.append(ev.ToolDelta(index=known.index, arguments=piece, kind=CALLS[known.kind]))

    def _all_arguments(self, known: Known | None, said: str, out: list[ev.Event], rest: Json | None = None) -> None:
        """The whole arguments: what is still missing of them, or all of them where the pieces said something else."""
        if known is None or known.kind not in CALLS:
            return
        before = "".join(known.argued)
        extra = {**rest, "id": known.id} if rest is not None else None
        kind = CALLS[known.kind]
        if said and said != before:
            known.argued = [said]
            follows = said.startswith(before)
            if follows or kind == "function":
                out.append(ev.ToolDelta(index=known.index, arguments=said[len(before):] if follows else said,
                                        whole=not follows, kind=kind, extra=extra))
                return
        if extra is not None:
            out.append(ev.ToolDelta(index=known.index, kind=kind, extra=extra))

    def _unreadable(self, data: bytes, out: list[ev.Event]) -> None:
        """A frame that is no JSON object: words that keep the line alive are passed over, but nothing that was meant to be one."""
        if self._closing or (self._begun and not data.lstrip().startswith(b"{")):
            return
        self._over = True
        out.append(ev.Fault(GatewayError("bad_reply", "The provider sent a stream frame that is not JSON.")))


def finish_of(response: Json, called: bool) -> ev.Finish:
    """Why the response ended, in neutral words."""
    if response.get("status") != "incomplete":
        return ev.Finish("tool_calls" if called else "stop")
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return ev.Finish(INCOMPLETE.get(str(reason), "length"))


def said_by(item: Json) -> str:
    """A call's arguments, as text."""
    said = item.get("input" if item.get("type") == "custom_tool_call" else "arguments")
    if isinstance(said, str):
        return said
    return msgspec.json.encode(said).decode() if said is not None else ""


def _rest(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in ("type", "call_id", "name", "arguments", "input")}


def _is_utf8(data: bytes) -> bool:
    """msgspec checks the strings that it decodes only; a frame that leaves must be UTF-8 everywhere."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
