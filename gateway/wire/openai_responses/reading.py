"""What do an upstream's items say? Frames about items, as dicts -> events.

Calls are told as pieces, for the turn to put together; their own frames are not passed on. What servers say only at the end of an
item, or only in the last response, is told as if it had been streamed.
"""
from typing import Final

from gateway.core import events as ev
from gateway.wire.lenient import LONE, dump, whole_text
from gateway.wire.openai_responses.frames import PLACED, Known, Ledger
from gateway.wire.openai_responses.parts import FORMS, PART_ADDED, PART_OF
from gateway.wire.openai_responses.schema import CALLS, COUNTS, INCOMPLETE, Json, texts_of

# Which delta says what, and which of a frame's numbers is its part's place.
DELTAS: Final[dict[str, tuple[type[ev.Text] | type[ev.Reasoning] | type[ev.Refusal], str]]] = {
    "response.output_text.delta": (ev.Text, "content_index"),
    "response.refusal.delta": (ev.Refusal, "content_index"),
    "response.reasoning_text.delta": (ev.Reasoning, "content_index"),
    "response.reasoning_summary_text.delta": (ev.Reasoning, "summary_index"),
}
_ARGUMENT_DELTAS: Final = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_ARGUMENT_DONE: Final = {"response.function_call_arguments.done": "arguments", "response.custom_tool_call_input.done": "input"}
# Whole texts, for servers that send no deltas: the delta's kind, and the field.
_WHOLE: Final = {form[4]: (form[3], form[6]) for form in FORMS.values()}
_PART_KINDS: Final = {kind: form[3] for kind, form in FORMS.items()}
_ITEM_FRAMES: Final = frozenset({"response.output_item.added", "response.output_item.done"})


class Reader:
    """The items of one stream. ``called``: there was a call; ``told``: something was said of items that nobody began."""

    __slots__ = ("same", "ledger", "called", "told", "half")

    def __init__(self, same: bool, ledger: Ledger) -> None:
        self.same = same
        self.ledger = ledger
        self.called = self.told = False
        self.half = ""                           # of a surrogate pair that was cut in two frames

    def read(self, kind: str, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        """The events of one frame that is about no response. ``data``: its bytes, if they may be passed on."""
        if kind in _ITEM_FRAMES and not isinstance(doc.get("item"), dict):
            return
        if kind == "response.output_item.added":
            return self._added(doc, data, out)
        known = self.ledger.find_for(doc)
        if kind in _ARGUMENT_DELTAS:
            self._arguments(known, doc, out)
        elif kind in _ARGUMENT_DONE:
            self._all_arguments(known, str(doc.get(_ARGUMENT_DONE[kind]) or ""), out)
        elif kind == "response.output_item.done":
            self._done(known, doc, data, out)
        elif kind in DELTAS:
            self._mended_delta(known, kind, doc, data, out)
        else:
            if kind in _WHOLE:
                self._whole(known, doc, *_WHOLE[kind], out)
            elif kind in PART_ADDED and known is not None:
                self._part_added(known, doc)
            if known is None or known.kind not in CALLS:
                self._opaque(kind, doc, data, known, out)

    def _opaque(self, kind: str, doc: Json, data: bytes | None, known: Known | None, out: list[ev.Event]) -> None:
        if known is None and (kind in PLACED or "output_index" in doc):
            return                               # about an item that nobody began
        counts = kind == "response.output_item.done" and str(doc["item"].get("type")) in COUNTS
        if self.same or counts:
            out.append(self.ledger.opaque(doc, data, known, counts))

    # ------------------------------------------------------------------ items
    def _added(self, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        known = self.ledger.add(doc)
        if known.kind in CALLS:
            self._call(known, doc["item"], out)
        else:
            self._opaque("response.output_item.added", doc, data, known, out)

    def _done(self, known: Known | None, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        item = doc["item"]
        if known is None or known.over:
            if known is None:
                self.whole_item(-1, item, out)
            return
        known.over = True
        if known.kind in CALLS:
            self._all_arguments(known, said_by(item), out, _rest(item) if self.same else None)
            return
        self._whole_parts(known, item, out)
        self._opaque("response.output_item.done", doc, data, known, out)

    def whole_item(self, index: int, item: Json, out: list[ev.Event]) -> None:
        """An item that was never begun."""
        place: Json = {"output_index": index} if index >= 0 else {}
        if isinstance(item.get("type"), str) and item["type"] in CALLS:
            known = self.ledger.add({**place, "item": item})
            known.over = True
            return self._call(known, item, out)
        bare: Json = item | {name: [] for name in ("content", "summary") if name in item}
        self._added({"type": "response.output_item.added", **place, "item": bare}, None, out)
        self._done(self.ledger.last, {"type": "response.output_item.done", **place, "item": item}, None, out)

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
        if self.same and (kind, place) not in known.said:
            part: Json = {"type": PART_OF[kind], FORMS[PART_OF[kind]][6]: ""}
            doc: Json = {"type": FORMS[PART_OF[kind]][2], DELTAS[kind][1]: place, "part": part}
            doc |= {"item_id": known.id, "output_index": known.index}
            out.append(self.ledger.opaque(doc, None, known))
        known.said[kind, place] = len(text)
        out.append(DELTAS[kind][0](whole_text(text)))

    def _mended_delta(self, known: Known | None, kind: str, doc: Json, data: bytes | None, out: list[ev.Event]) -> None:
        text = doc.get("delta")
        made, index = DELTAS[kind]
        if not isinstance(text, str) or not text:
            return
        raw = None
        if known is None:
            self.told = True
        else:
            place = doc.get(index)
            key = (kind, place if isinstance(place, int) else 0)
            known.said[key] = known.said.get(key, 0) + len(text)
            raw = self.ledger.frame(doc, data, known)
        out.append(made(self._joined(text), raw))

    def _joined(self, text: str) -> str:
        """A character cut in two escapes: the first half waits for its other. Its own frame, raw, is not held back."""
        text, self.half = self.half + text, ""
        if LONE.search(text) is None:
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            self.half, text = text[-1], text[:-1]
        return whole_text(text)

    # ------------------------------------------------------------------ calls
    def _call(self, known: Known, item: Json, out: list[ev.Event]) -> None:
        self.called = True
        said = said_by(item)
        if said:
            known.argued.append(said)
        extra = {**_rest(item), "id": known.id} if self.same else None
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
    return dump(said).decode() if said is not None else ""


def _rest(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in ("type", "call_id", "name", "arguments", "input")}
