"""What has a client been told so far? Items and their parts, as they grow in one stream, and what they are when finished."""
import re
from typing import Any, Final

import orjson

from gateway.wire.lenient import dump, load, whole_text
from gateway.wire.openai_responses.schema import CALLS, Json, texts_of

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

    __slots__ = ("kind", "place", "texts", "told", "texted", "closed", "lead", "tail", "doc")

    def __init__(self, kind: str, place: int) -> None:
        self.kind = kind
        self.place = place
        self.texts: list[str] = []
        self.told = self.texted = self.closed = False
        self.lead = b""                          # how a delta of ours begins and ends
        self.tail = b',"logprobs":[],"sequence_number":%d}\n\n' if kind == "output_text" else b',"sequence_number":%d}\n\n'
        self.doc: Json | None = None             # as the upstream finished it

    @property
    def text(self) -> str:
        if len(self.texts) != 1:
            self.texts = ["".join(self.texts)]
        return whole_text(self.texts[0])

    def finished(self) -> Json:
        if self.doc is not None:
            return self.doc
        out: Json = {"type": self.kind, FORMS[self.kind][6]: self.text}
        return {**out, "annotations": [], "logprobs": []} if self.kind == "output_text" else out


class Item:
    """One item. ``index`` is its place for the client, -1 until it is told; ``theirs`` its place in the upstream's frames, -1
    where it is ours alone. ``pending`` are frames that open it, held until it says something."""

    __slots__ = ("index", "theirs", "id", "kind", "base", "pending", "parts", "done", "final", "refused", "called", "arguments",
                 "held")

    def __init__(self, kind: str, id_: str, base: Json, theirs: int = -1) -> None:
        self.index = -1
        self.theirs = theirs
        self.id = id_
        self.kind = kind
        self.base = base
        self.pending: list[tuple[str, Json, bytes | None]] = []
        self.parts: dict[tuple[str, int], Part] = {}
        self.done = False
        self.final: Json = {}
        self.refused = False                     # the upstream's end of it did not fit and was left out
        self.called = False                      # a call that the turn has put together
        self.arguments: list[str] = []
        self.held = False                        # … whose arguments are told at its end only

    def part(self, kind: str, place: int) -> Part:
        key = (FORMS[kind][0], place)
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = Part(kind, place)
        return part

    def part_of(self, doc: Json) -> Part:
        """The part that a frame of the upstream is about."""
        told = doc.get("part")
        kind = told.get("type") if isinstance(told, dict) else PART_OF.get(doc["type"])
        kind = kind if kind in FORMS else "output_text"
        place = doc.get(FORMS[kind][1])
        return self.part(kind, place if isinstance(place, int) else 0)

    def lead(self, part: Part) -> bytes:
        """How a delta of ours begins."""
        place, delta = FORMS[part.kind][1], FORMS[part.kind][3]
        at = dump({"type": delta, "item_id": self.id, "output_index": self.index, place: part.place})
        return b'event: %b\ndata: %b,"delta":' % (delta.encode(), at[:-1])

    def open_part(self) -> Part | None:
        return next((part for part in reversed(self.parts.values()) if not part.closed), None)

    def says(self, doc: Json) -> bool:
        """Is a finished item, as the upstream has it, what the client was told?"""
        for name in ("content", "summary"):
            theirs = [text for text in texts_of(doc.get(name)) if text]
            ours = [text for (list_, _), part in sorted(self.parts.items()) if list_ == name and (text := part.text)]
            if theirs != ours:
                return False
        return True

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


def alike(theirs: Any, ours: list[Json]) -> bool:
    """Does the upstream's final output list just the items that were streamed?"""
    return isinstance(theirs, list) and [_gist(item) for item in theirs] == [_gist(item) for item in ours]


def _gist(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    kind = item.get("type")
    if kind == "message" or kind == "reasoning":
        return (kind, item.get("id"), [text for text in texts_of(item.get("content")) if text],
                [text for text in texts_of(item.get("summary")) if text])
    if kind in CALLS:
        return kind, item.get("id"), item.get("call_id"), item.get("name"), item.get("arguments"), item.get("input")
    return kind, item.get("id")
