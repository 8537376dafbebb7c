"""What is on the client's paper so far? Frames with their numbers, items and parts that begin and end: the grammar of a stream.

``Paper`` knows how each thing is said; which is said when is the encoder's business.
"""
from typing import Any, Final

from gateway.wire.lenient import dump
from gateway.wire.openai_responses import calls
from gateway.wire.openai_responses.parts import FORMS, Item, Part, number_in, renumbered
from gateway.wire.openai_responses.schema import ID_PREFIX, Json
from gateway.wire.sse import END, heading

HELD: Final = frozenset({"message", "reasoning"})        # items that are told when they say something
ARGUMENTS: Final = {
    "function_call": ("response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input"),
}
_KINDS: Final = ("response.created", "response.in_progress", "response.completed", "response.output_item.added",
                 "response.output_item.done", *[kind for form in FORMS.values() for kind in form[2:6]])
_HEADS: Final = {kind: heading(kind) for kind in _KINDS}


class Paper:
    """One stream's output. ``out`` is what was written since the last read."""

    __slots__ = ("out", "id", "items", "number", "stale", "_made")

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.id = ""                             # of the response
        self.items: list[Item] = []              # told, in their order
        self.number = -1                         # of the last frame …
        self.stale: bytes | None = None          # … unless this one was written after it
        self._made = 0

    # ------------------------------------------------------------------ frames
    def next(self) -> int:
        self.number = self.last() + 1
        return self.number

    def last(self) -> int:
        """The last sequence number that was written."""
        if self.stale is not None:
            self.number, self.stale = number_in(self.stale), None
        return self.number

    def write(self, kind: str, **fields: Any) -> None:
        """A frame of ours."""
        doc = {"type": kind, "sequence_number": self.next(), **fields}
        self.out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), dump(doc)))

    def copy(self, kind: str, number: int, raw: bytes, item: Item | None = None) -> None:
        """A frame of the upstream's, its numbers fitted in. ``number``: its own, -1 where it has none that may stay."""
        last = self.number if self.stale is None else self.last()
        if item is not None and item.index != item.theirs:
            raw = renumbered(raw, "output_index", item.index)
        if number <= last:
            raw, number = renumbered(raw, "sequence_number", last + 1), last + 1
        self.number = number
        self.out += (_HEADS.get(kind) or heading(kind), raw, END)

    def new_id(self, kind: str) -> str:
        self._made += 1
        return f"{ID_PREFIX.get(kind, 'item')}_{self.id.removeprefix('resp_')}{self._made:02d}"

    # ------------------------------------------------------------------ parts
    def begin_part(self, item: Item, part: Part) -> None:
        if part.told:
            return
        part.told = True
        _, place, added, _, _, _, field = FORMS[part.kind]
        empty: Json = {"type": part.kind, field: ""}
        if part.kind == "output_text":
            empty |= {"annotations": [], "logprobs": []}
        self.write(added, item_id=item.id, output_index=item.index, **{place: part.place}, part=empty)

    def end_text(self, item: Item, part: Part) -> None:
        if part.texted:
            return
        part.texted = True
        _, place, _, _, done, _, field = FORMS[part.kind]
        more: Json = {"logprobs": []} if part.kind == "output_text" else {}
        self.write(done, item_id=item.id, output_index=item.index, **{place: part.place, field: part.text}, **more)

    def end_part(self, item: Item, part: Part) -> None:
        if part.closed:
            return
        self.begin_part(item, part)
        self.end_text(item, part)
        part.closed = True
        _, place, _, _, _, done, _ = FORMS[part.kind]
        self.write(done, item_id=item.id, output_index=item.index, **{place: part.place}, part=part.finished())

    # ------------------------------------------------------------------ items
    def begin(self, item: Item) -> None:
        """An item begins: with the frames that the upstream has for it, or one of ours."""
        if item.index >= 0:
            return
        item.index = len(self.items)
        self.items.append(item)
        if not item.pending:
            self.write("response.output_item.added", output_index=item.index, item=item.base)
        for told, raw in item.pending:
            self.copy(told.type, told.sequence_number, raw, item)
            if told.part is not None:
                item.part_of(told).told = True
        item.pending = []

    def end(self, item: Item, status: str = "completed") -> None:
        """An item ends, in our words."""
        if item.done or item.index < 0:
            return
        if item.called:
            self._end_call(item, status)
        else:
            for part in item.parts.values():
                self.end_part(item, part)
            item.ended(item.finished(status) if item.kind in HELD else {**item.base, "id": item.id})
        self.write("response.output_item.done", output_index=item.index, item=item.final)

    def argue(self, item: Item, piece: str) -> None:
        """More of a call's arguments."""
        item.arguments.append(piece)
        if piece and not item.held:
            self.write(ARGUMENTS[item.kind][0], item_id=item.id, output_index=item.index, delta=piece)

    def _end_call(self, item: Item, status: str) -> None:
        text = "".join(item.arguments)
        if item.kind in ARGUMENTS:
            delta, done, field = ARGUMENTS[item.kind]
            if item.held:
                text = calls.free_text(text)
                self.write(delta, item_id=item.id, output_index=item.index, delta=text)
            self.write(done, item_id=item.id, output_index=item.index, **{field: text})
        kept = item.base.get("status")
        item.ended({**calls.with_arguments(item.kind, item.base, text),
                    "status": kept if status == "completed" and kept != "in_progress" else status})
