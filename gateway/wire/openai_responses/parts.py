"""What has a client been told so far? Items and their parts, as they grow in one stream, and what they are when finished."""
import re
from typing import Final

import orjson

from gateway.wire.lenient import dump, load, whole_text
from gateway.wire.openai_responses import told as read
from gateway.wire.openai_responses.schema import Json
from gateway.wire.openai_responses.told import Told

# part type -> (its list in the item, the frames' number, events: added, delta, text done, part done, the text's field)
FORMS: Final = {
    "output_text": ("content", "content_index", "response.content_part.added", "response.output_text.delta",
                    "response.output_text.done", "response.content_part.done", "text"),
    "refusal": ("content", "content_index", "response.content_part.added", "response.refusal.delta", "response.refusal.done",
                "response.content_part.done", "refusal"),
    "reasoning_text": ("content", "content_index", "response.content_part.added", "response.reasoning_text.delta",
                       "response.reasoning_text.done", "response.content_part.done", "text"),
    "summary_text": ("summary", "summary_index", "response.reasoning_summary_part.added",
                     "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
                     "response.reasoning_summary_part.done", "text"),
}
PART_OF: Final = {form[3]: kind for kind, form in FORMS.items()} | {form[4]: kind for kind, form in FORMS.items()}
PART_ADDED: Final = frozenset({"response.content_part.added", "response.reasoning_summary_part.added"})
PART_DONE: Final = frozenset({"response.content_part.done", "response.reasoning_summary_part.done"})
_SEQUENCE: Final = re.compile(rb'"sequence_number"\s*:\s*(\d+)')
_OUTPUT: Final = re.compile(rb'"output_index"\s*:\s*\d+')


class Part:
    """One part. ``told``: its opening, ``texted``: its whole text, ``closed``: its end have been written."""

    __slots__ = ("kind", "place", "texts", "told", "texted", "closed", "lead", "tail", "end", "_whole", "_of")

    def __init__(self, kind: str, place: int) -> None:
        self.kind = kind
        self.place = place
        self.texts: list[str] = []
        self.told = self.texted = self.closed = False
        self.lead = b""                          # how a delta of ours begins and ends
        self.tail = b',"logprobs":[],"sequence_number":%d}\n\n' if kind == "output_text" else b',"sequence_number":%d}\n\n'
        self.end = b""                           # the frame in which the upstream finished it
        self._whole = self._of = ""              # the text without halves of characters, and of what

    @property
    def text(self) -> str:
        if len(self.texts) != 1:
            self.texts = ["".join(self.texts)]
        said = self.texts[0]
        if said is not self._of:
            self._whole, self._of = whole_text(said), said
        return self._whole

    def finished(self) -> Json:
        if self.end:
            doc: Json = load(self.end)[0]["part"]
            return doc
        out: Json = {"type": self.kind, FORMS[self.kind][6]: self.text}
        return {**out, "annotations": [], "logprobs": []} if self.kind == "output_text" else out


class Item:
    """One item. ``index`` is its place for the client, -1 until it is told; ``theirs`` its place in the upstream's frames, -1
    where it is ours alone. ``pending`` are frames that open it, held until it says something. What the upstream says of it stays
    in the bytes of its frames until somebody asks."""

    __slots__ = ("index", "theirs", "id", "kind", "pending", "parts", "done", "refused", "called", "arguments", "held", "gist",
                 "_base", "_final", "_begin", "_end")

    def __init__(self, kind: str, id_: str, base: Json | None, theirs: int = -1, begin: bytes = b"") -> None:
        self.index = -1
        self.theirs = theirs
        self.id = id_
        self.kind = kind
        self._base = base                        # … as it began
        self._begin = begin                      # … or the frame that says so
        self.pending: list[tuple[Told, bytes]] = []
        self.parts: dict[tuple[str, int], Part] = {}
        self.done = False
        self._final: Json | None = None          # … as it ended
        self._end = b""                          # … or the frame that says so
        self.gist = read.Item()                  # what of it is compared
        self.refused = False                     # the upstream's end of it did not fit and was left out
        self.called = False                      # a call that the turn has put together
        self.arguments: list[str] = []
        self.held = False                        # … whose arguments are told at its end only

    # ------------------------------------------------------------------ as a whole
    @property
    def base(self) -> Json:
        if self._base is None:
            self._base = load(self._begin)[0]["item"]
        return self._base

    def begun(self, base: Json) -> None:
        self._base = base

    @property
    def final(self) -> Json:
        if self._final is None:
            self._final = load(self._end)[0]["item"] if self._end else {}
        return self._final

    def ended(self, final: Json) -> None:
        """In our words."""
        self._final, self.gist, self.done = final, read.item_by_hand(final), True

    def closed(self, gist: read.Item, frame: bytes) -> None:
        """In the upstream's."""
        self._end, self.gist, self.done = frame, gist, True

    # ------------------------------------------------------------------ parts
    def part(self, kind: str, place: int) -> Part:
        key = (FORMS[kind][0], place)
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = Part(kind, place)
        return part

    def part_of(self, told: Told) -> Part:
        """The part that a frame of the upstream is about."""
        kind = told.part.type if told.part is not None else PART_OF.get(told.type, "")
        form = FORMS.get(kind)
        if form is None:
            kind, form = "output_text", FORMS["output_text"]
        place = told.content_index if form[0] == "content" else told.summary_index
        part = self.parts.get((form[0], place))
        return part if part is not None else self.part(kind, max(place, 0))

    def lead(self, part: Part) -> bytes:
        """How a delta of ours begins."""
        place, delta = FORMS[part.kind][1], FORMS[part.kind][3]
        at = dump({"type": delta, "item_id": self.id, "output_index": self.index, place: part.place})
        return b'event: %b\ndata: %b,"delta":' % (delta.encode(), at[:-1])

    def open_part(self) -> Part | None:
        return next((part for part in reversed(self.parts.values()) if not part.closed), None)

    def says(self, theirs: read.Item) -> bool:
        """Is a finished item, as the upstream has it, what the client was told?"""
        told = [(list_, text) for (list_, _), part in sorted(self.parts.items()) if (text := part.text)]
        said = [("content", text) for text in read.texts(theirs.content)] + [("summary", text) for text in read.texts(theirs.summary)]
        return told == said

    def finished(self, status: str) -> Json:
        """The item, built from its parts."""
        out: Json = {**self.base, "id": self.id, "type": self.kind}
        if self.kind == "message":
            out |= {"status": status, "role": "assistant", "content": self._list("content")}
        else:
            out["summary"] = self._list("summary")
            if content := self._list("content"):
                out["content"] = content
            if "status" in out:
                out["status"] = status
        return out

    def _list(self, name: str) -> list[Json]:
        return [part.finished() for (list_, _), part in sorted(self.parts.items()) if list_ == name]


def quoted(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:
        return dump(text)                        # half a surrogate pair stays an escape


def number_in(raw: bytes) -> int:
    """A frame's own sequence number."""
    found = _SEQUENCE.findall(raw)
    if len(found) == 1:
        return int(found[0])
    number = load(raw)[0].get("sequence_number")
    return number if isinstance(number, int) else -1


def renumbered(raw: bytes, name: str, value: int) -> bytes:
    """A frame with another number. Inside a string the quotes of the name would be escaped."""
    pattern = _SEQUENCE if name == "sequence_number" else _OUTPUT
    if len(pattern.findall(raw)) == 1:
        return pattern.sub(b'"%b":%d' % (name.encode(), value), raw)
    doc: Json = load(raw)[0]
    return dump({**doc, name: value})
