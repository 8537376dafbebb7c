"""How is a turn told to a Responses client? Item after item, each with its own place and id, and all of it again at the end.

Frames of an upstream that speaks this format go out as they came as long as they fit. Items are numbered as they are told: where
the turn has taken some out or put some in, the numbers inside the frames are rewritten. What an upstream says about the end of an
item leaves only if it is what the client was told; else, and for every other format, the end is written here.
"""
from typing import Any, Final

from gateway.core import events as ev
from gateway.wire.base import Shown
from gateway.wire.lenient import dump, load
from gateway.wire.openai_responses import calls
from gateway.wire.openai_responses.faults import failure
from gateway.wire.openai_responses.paper import HELD, Paper
from gateway.wire.openai_responses.parts import (
    FORMS,
    PART_ADDED,
    PART_DONE,
    PART_OF,
    Item,
    Part,
    number_in,
    quoted,
)
from gateway.wire.openai_responses.response import counted, ended, kept_here, response_id, skeleton, status_of
from gateway.wire.openai_responses.schema import WIRE, Asked, Json, write_usage
from gateway.wire.openai_responses.told import Told, alike, by_hand
from gateway.wire.openai_responses.told import of as told_by
from gateway.wire.sse import END

_OPENING: Final = b'event: %b\ndata: {"type":"%b","sequence_number":%d,"response":%b}\n\n'
_DELTA: Final = b"event: response.output_text.delta\ndata: "
_PART: Final = {ev.Text: ("message", "output_text"), ev.Refusal: ("message", "refusal"),
                ev.Reasoning: ("reasoning", "summary_text")}


class Encoder:
    """One stream to one client."""

    __slots__ = ("even", "_final", "_last", "_shown", "_same", "_paper", "_hot", "_opened", "_base", "_theirs", "_current", "_calls",
                 "_origins", "_usage", "_finish", "_over", "_refused", "_used")

    def __init__(self, shown: Shown) -> None:
        self._final: Json | None = None
        self._last = b""                         # the upstream's last frame, which has it
        self._shown = shown
        self._same = shown.same
        self._paper = Paper()
        self._hot: Part | None = None            # where plain text goes, if nothing else has to be looked at
        self.even = False                        # … the upstream's own frames too: their numbers are the client's
        self._opened = b""                       # the upstream's first frame …
        self._base: Json | None = None           # … and the response in it, or ours
        self._theirs: dict[int, Item] = {}       # the upstream's items by its own numbers
        self._current: Item | None = None
        self._calls: dict[int, Item] = {}
        self._origins = shown.request.body.origins if isinstance(shown.request.body, Asked) else {}
        self._usage: ev.Usage | None = None
        self._finish: ev.Finish | None = None
        self._over = self._refused = False
        self._used: set[str] = set()

    def encode(self, events: list[ev.Event]) -> bytes:
        paper = self._paper
        out = paper.out = []
        for event in events:
            hot = self._hot
            if hot is not None and type(event) is ev.Text and not event.choice:
                if event.raw is None and hot.lead:
                    text = event.text
                    if text:
                        self.even = False
                        hot.texts.append(text)
                        paper.number = number = (paper.number if paper.stale is None else paper.last()) + 1
                        out.append(b"%b%b" % (hot.lead, quoted(text)) + hot.tail % number)
                    continue
                if event.raw is not None and self.even:
                    hot.texts.append(event.text)
                    paper.stale = event.raw
                    out += (_DELTA, event.raw, END)
                    continue
            if not self._over and not getattr(event, "choice", 0):
                self._hot, self.even = None, False
                _WRITE[type(event)](self, event)
        return b"".join(out)

    @property
    def final(self) -> Json | None:
        """The finished response, once there is one."""
        if self._final is None and self._last:
            self._final = load(self._last)[0]["response"]
        return self._final

    def follow(self, said: str, number: int) -> None:
        self._hot.texts.append(said)  # type: ignore[union-attr]
        paper = self._paper
        paper.number, paper.stale = number, None

    def _begin(self, meta: ev.Meta | None = None) -> None:
        """The response has begun; the frames that say so, unless they are out."""
        paper = self._paper
        if paper.id:
            return
        own = meta if meta is not None and self._same and meta.id else None
        paper.id = own.id if own and not self._shown.kept_as else response_id(self._shown)
        if own is not None and own.raw is not None:
            self._opened = raw = self._ours(own.raw)
            paper.copy("response.created", own.told.sequence_number if own.told is not None else number_in(raw), raw)
            return
        self._base = skeleton(self._shown, paper.id, own.created if own else 0)
        written = dump(self._base)
        for kind in ("response.created", "response.in_progress"):
            paper.out.append(_OPENING % (kind.encode(), kind.encode(), paper.next(), written))

    def _ours(self, raw: bytes) -> bytes:
        """An upstream's frame about a response that is kept here under a name of ours."""
        if not self._shown.kept_as:
            return raw
        doc: Json = load(raw)[0]
        return dump(doc) if kept_here(doc["response"], self._shown) else raw

    def _begun(self) -> Json:
        """The response as it began."""
        self._begin()
        if self._base is None:
            self._base = load(self._opened)[0]["response"]
        return self._base

    # ------------------------------------------------------------------ text
    def _said(self, event: ev.Text | ev.Reasoning | ev.Refusal) -> None:
        home, kind = _PART[type(event)]
        raw = event.raw if self._same else None
        self._refused = self._refused or kind == "refusal" and bool(event.text)
        if (raw is not None and self._said_raw(event.text, raw)) or not event.text:
            return
        item = self._at(home)
        part = item.open_part()
        if part is None or (part.kind != kind and home == "message"):
            if part is not None:
                self._paper.end_part(item, part)
            part = item.part(kind, len([key for key in item.parts if key[0] == FORMS[kind][0]]))
        self._paper.begin_part(item, part)
        part.lead = part.lead or item.lead(part)
        part.texts.append(event.text)
        self._paper.out += (part.lead, quoted(event.text), part.tail % self._paper.next())
        self._hot = part if kind == part.kind == "output_text" else None

    def _said_raw(self, text: str, raw: bytes) -> bool:
        """Copy a delta of the upstream's, if its item is known here and not over."""
        told = told_by(raw)
        item = self._theirs.get(told.output_index)
        if item is None or item.done:
            return False
        part = item.part_of(told)
        if part.closed:
            return False
        paper = self._paper
        if len(self._theirs) > 1:
            self._catch_up(item)
        paper.begin(item)
        self._current = item
        paper.begin_part(item, part)
        before = paper.last()
        paper.copy(told.type, told.sequence_number, raw, item)
        part.texts.append(text)
        alone = len(self._theirs) == 1 or [other for other in self._theirs.values() if not other.done] == [item]
        if alone and part.kind == "output_text" and item.index == item.theirs and told.sequence_number > before:
            self.even, self._hot = True, part
        return True

    def _at(self, home: str) -> Item:
        """The item that more text of a kind belongs to; what is ours and of another kind ends here."""
        self._begin()
        current = self._current
        if current is None or current.kind != home or current.done:
            if current is not None and current.theirs < 0:
                self._paper.end(current)
            theirs = [item for item in self._theirs.values() if item.kind == home and not item.done]
            self._current = current = theirs[-1] if theirs else self._own(home)
        self._paper.begin(current)
        return current

    def _own(self, home: str) -> Item:
        base: Json = {"id": self._paper.new_id(home), "type": home}
        base |= {"status": "in_progress", "role": "assistant", "content": []} if home == "message" else {"summary": []}
        return Item(home, base["id"], base)

    # ------------------------------------------------------------------ frames around text
    def _meta(self, event: ev.Meta) -> None:
        self._begin(event)

    def _opaque(self, event: ev.Opaque) -> None:
        if not self._same or event.wire != WIRE:
            return
        told, raw = event.payload, event.raw
        if raw is None:                          # of an answer that did not stream
            told, raw = by_hand(told), dump(told)
            told.sequence_number = -1
        if not self._paper.id:
            self._begin()
        kind = told.type
        if kind == "response.output_item.added":
            return self._added(told, raw)
        if told.output_index < 0:
            return self._paper.copy(kind, told.sequence_number, self._ours(raw) if told.response is not None else raw)
        item = self._theirs.get(told.output_index)
        if item is None or item.done:
            return
        if kind in PART_ADDED and item.index < 0:
            item.pending.append((told, raw))
            return
        if len(self._theirs) > 1:
            self._catch_up(item)
        if kind in PART_DONE:
            self._part_done(item, told, raw)
        elif kind in PART_OF:
            self._text_done(item, told, raw)
        elif kind == "response.output_item.done":
            self._item_done(item, told, raw)
        else:
            self._paper.begin(item)
            if kind in PART_ADDED:
                item.part_of(told).told = True
            self._paper.copy(kind, told.sequence_number, raw, item)

    def _added(self, told: Told, raw: bytes) -> None:
        assert told.item is not None
        item = Item(told.item.type, told.item.id, None, told.output_index, raw)
        self._theirs[item.theirs] = item
        self._used.add(item.id)
        item.pending.append((told, raw))
        if item.kind not in HELD:
            self._paper.begin(item)

    def _catch_up(self, item: Item) -> None:
        """A frame of this item follows: what was held of others keeps its place before it."""
        for other in self._theirs.values():
            if other is item and item.index < 0:
                return
            if other is not item and other.index < 0 and not other.refused:
                self._paper.begin(other)

    def _text_done(self, item: Item, told: Told, raw: bytes) -> None:
        part = item.part_of(told)
        if part.texted or told.said != part.text:
            item.refused = True
            return
        if not part.told:
            self._paper.begin(item)
            self._paper.begin_part(item, part)
        part.texted = True
        self._paper.copy(told.type, told.sequence_number, raw, item)

    def _part_done(self, item: Item, told: Told, raw: bytes) -> None:
        part = item.part_of(told)
        if part.closed or told.part is None or told.part.said != part.text:
            item.refused = True
            return
        if not part.told:
            self._paper.begin(item)
            self._paper.begin_part(item, part)
        if not part.texted:
            self._paper.end_text(item, part)
        part.closed, part.end = True, raw
        self._paper.copy(told.type, told.sequence_number, raw, item)

    def _item_done(self, item: Item, told: Told, raw: bytes) -> None:
        assert told.item is not None
        if item.kind in HELD and not item.says(told.item):
            item.refused = True
            final: Json = load(raw)[0]["item"]
            item.begun({**final, **{name: [] for name in ("content", "summary") if name in final}})
            return
        self._paper.begin(item)
        for part in item.parts.values():
            if not part.closed:
                self._paper.end_part(item, part)
        self._paper.copy(told.type, told.sequence_number, raw, item)
        item.closed(told.item, raw)

    def _settle(self, everything: bool) -> None:
        """End what the upstream will not end: our own items, and those whose end did not fit."""
        for item in self._paper.items:
            if not item.called and (everything or item.theirs < 0 or item.refused):
                self._paper.end(item)

    # ------------------------------------------------------------------ calls
    def _call(self, event: ev.ToolCall) -> None:
        self._settle(everything=True)
        item = self._call_item(event)
        self._paper.argue(item, event.arguments)
        self._paper.end(item)

    def _call_start(self, event: ev.ToolStart) -> None:
        self._settle(everything=False)
        self._calls[event.index] = self._call_item(event)

    def _call_args(self, event: ev.ToolArgs) -> None:
        item = self._calls.get(event.index)
        if item is not None and not item.done:
            self._paper.argue(item, event.text)

    def _call_item(self, event: ev.ToolCall | ev.ToolStart) -> Item:
        self._begin()
        kind, base = calls.head(event, self._origins, self._same)
        own = base.get("id")
        id_ = own if isinstance(own, str) and own and own not in self._used else self._paper.new_id(kind)
        self._used.add(id_)
        item = Item(kind, id_, {**calls.with_arguments(kind, base, ""), "id": id_, "type": kind, "status": "in_progress"})
        item.called = True
        item.held = kind == "local_shell_call" or kind == "custom_tool_call" and event.kind != "custom"
        self._paper.begin(item)
        item.begun({**item.base, "status": base.get("status") or "completed"})
        return item

    # ------------------------------------------------------------------ the end
    def _note_usage(self, event: ev.Usage) -> None:
        self._usage = event

    def _note_finish(self, event: ev.Finish) -> None:
        self._finish = self._finish or event

    def _nothing(self, event: ev.Event) -> None:
        """An event that only the turn reads."""

    def _end(self, event: ev.End) -> None:
        self._begin()
        status, details = status_of(self._finish, self._refused)
        items = self._paper.items
        for item in items:
            self._paper.end(item, status if item is items[-1] else "completed")
        self._over = True
        if event.raw is not None and self._same:
            return self._terminal(event.raw, event.told or told_by(event.raw), status, details)
        self._final = ended({**self._begun(), "model": self._shown.model}, status, details, [item.final for item in items],
                            self._usage, self._same)
        self._paper.write("response." + status, response=self._final)

    def _terminal(self, raw: bytes, told: Told, status: str, details: Json | None) -> None:
        """The upstream's own last frame, with what it says wrongly put right."""
        theirs, kind = told.response, "response." + status
        assert theirs is not None
        fits = alike(theirs.output, [item.gist for item in self._paper.items])
        if fits and told.type == kind and theirs.id == self._paper.id and theirs.status == status and counted(theirs.usage) \
                and not self._shown.kept_as:
            self._last = raw
            return self._paper.copy(kind, told.sequence_number, raw)
        doc: Json = load(raw)[0]
        self._final = response = doc["response"]
        kept_here(response, self._shown)
        if not fits:
            response["output"] = [item.final for item in self._paper.items]
        if theirs.status != status:
            response["status"], response["incomplete_details"] = status, details
        if not counted(theirs.usage):
            response["usage"] = write_usage(self._usage or ev.Usage(estimated=True), self._same)
        response["id"], doc["type"] = self._paper.id, kind
        self._paper.copy(kind, told.sequence_number, dump(doc))

    def _fault(self, event: ev.Fault) -> None:
        base = self._begun()
        self._over = True
        output = [item.final for item in self._paper.items if item.done]
        self._final = {**base, "status": "failed", "error": failure(event.error), "output": output, "model": self._shown.model}
        self._paper.write("response.failed", response=self._final)


_WRITE: Final[dict[type[ev.Event], Any]] = {
    ev.Meta: Encoder._meta, ev.Text: Encoder._said, ev.Reasoning: Encoder._said, ev.Refusal: Encoder._said,
    ev.Opaque: Encoder._opaque, ev.ToolDelta: Encoder._nothing, ev.ToolCall: Encoder._call, ev.ToolStart: Encoder._call_start,
    ev.ToolArgs: Encoder._call_args, ev.Finish: Encoder._note_finish, ev.Usage: Encoder._note_usage, ev.Fault: Encoder._fault,
    ev.End: Encoder._end,
}
