"""What may a frame of this format lack, and what is put in? The upstream's own numbering, mended; once for all that follow.

Servers leave out indexes, ids and sequence numbers, or change an item's id from frame to frame; clients rely on all of them.
``Ledger`` knows the items of one stream by their place, so that every frame that is passed on says the same of each.
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.clock import SystemClock
from gateway.core.ids import token
from gateway.wire.lenient import dump
from gateway.wire.openai_responses.schema import ID_PREFIX, WIRE, Json
from gateway.wire.openai_responses.told import by_hand

_encode = msgspec.json.encode
_OUTPUTLESS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})


class Known:
    """One item of the upstream. ``said`` counts the characters of its parts, ``argued`` keeps a call's arguments."""

    __slots__ = ("index", "id", "kind", "said", "argued", "over")

    def __init__(self, index: int, id_: str, kind: str) -> None:
        self.index = index
        self.id = id_
        self.kind = kind
        self.said: dict[tuple[str, int], int] = {}
        self.argued: list[str] = []
        self.over = False


class Ledger:
    """The items and the envelope of one stream. ``shown`` is the model's name for the client ("" = the upstream's own)."""

    __slots__ = ("items", "by_id", "last", "number", "shown", "same", "frames", "id", "created", "model")

    def __init__(self, shown: str, same: bool) -> None:
        self.items: dict[int, Known] = {}
        self.by_id: dict[str, Known] = {}
        self.last: Known | None = None
        self.number = -1
        self.shown = shown
        self.same = same
        self.frames = True                       # False: what is read did not come in frames
        self.id = self.model = ""
        self.created = 0

    # ------------------------------------------------------------------ items
    def add(self, doc: Json) -> Known:
        """The item of an ``output_item.added``."""
        item = doc["item"]
        given = doc.get("output_index")
        index = given if isinstance(given, int) and given not in self.items else max(self.items, default=-1) + 1
        kind = str(item.get("type") or "")
        own = item.get("id")
        return self.begin(index, own if isinstance(own, str) and own else f"{ID_PREFIX.get(kind, 'item')}_{token()}", kind)

    def begin(self, index: int, id_: str, kind: str) -> Known:
        known = self.items[index] = self.by_id[id_] = self.last = Known(index, id_, kind)
        return known

    def find(self, index: int, item_id: str) -> Known | None:
        """Whose frame is it? The index decides; ids of some servers change on every frame."""
        if index >= 0:
            return self.items.get(index)
        if item_id:
            return self.by_id.get(item_id)
        return self.last if self.last is not None and not self.last.over else None

    def find_for(self, doc: Json) -> Known | None:
        index, item_id = doc.get("output_index"), doc.get("item_id")
        if item_id is None and isinstance(doc.get("item"), dict):
            item_id = doc["item"].get("id")
        return self.find(index if isinstance(index, int) else -1, item_id if isinstance(item_id, str) else "")

    # ------------------------------------------------------------------ frames
    def frame(self, doc: Json, data: bytes | None, known: Known | None) -> bytes | None:
        """A frame as a client of this format may read it; ``data`` if nothing was missing."""
        if not self.same:
            return None
        whole = self._numbered(doc)
        if known is not None:
            whole = _placed(doc, known) and whole
        for name in PLACED.get(doc["type"], ()):
            place = doc.get(name)
            if not isinstance(place, int) or place < 0:
                doc[name], whole = 0, False
        if not self.frames:
            return None
        return data if whole and data is not None else dump(doc)

    def opaque(self, doc: Json, data: bytes | None, known: Known | None, counts: bool = False) -> ev.Opaque:
        """… as the event that a client of this format is told of it by."""
        raw = self.frame(doc, data, known)
        return ev.Opaque(WIRE, "frame", doc if raw is None else by_hand(doc), raw, counts=counts)

    def envelope(self, doc: Json, data: bytes | None) -> bytes | None:
        """A frame that holds a response: id, time and model filled in, the model renamed."""
        response = doc["response"]
        self.learn(response)
        if not self.same or not self.frames:
            return None
        whole = self._numbered(doc)
        for name, value in (("id", self.id), ("object", "response"), ("created_at", self.created), ("model", self.model)):
            if not response.get(name) and response.get(name) != 0:
                response[name], whole = value, False
        if doc["type"] in _OUTPUTLESS:
            if not isinstance(response.get("output"), list):
                response["output"], whole = [], False
            if not response.get("status"):
                response["status"], whole = "in_progress", False
        renamed = self.renamed(data, response["model"]) if whole and data is not None else None
        response["model"] = self.shown or response["model"]
        return renamed or dump(doc)

    def learn(self, response: Json) -> None:
        """The response's id, time and model, which stay the same from here on."""
        own, model, created = response.get("id"), response.get("model"), response.get("created_at")
        self.opens(own if isinstance(own, str) else "", model if isinstance(model, str) else "",
                   created if isinstance(created, (int, float)) else 0)

    def opens(self, id_: str, model: str, created: float) -> None:
        self.id = self.id or id_ or "resp_" + token()
        self.model = self.model or model or self.shown or "unknown"
        self.created = self.created or int(created) or int(SystemClock.wall())

    def renamed(self, data: bytes, model: str) -> bytes | None:
        """A frame with the client's name of the model; None where it stands in more than one place."""
        if not self.shown or model == self.shown:
            return data
        old, new = _encode(model), _encode(self.shown)
        for colon in (b":", b": "):
            needle = b'"model"' + colon + old
            if data.count(needle) == 1:
                return data.replace(needle, b'"model"' + colon + new)
        return None

    def _numbered(self, doc: Json) -> bool:
        number = doc.get("sequence_number")
        if isinstance(number, int) and not isinstance(number, bool) and number > self.number:
            self.number = number
            return True
        self.number += 1
        doc["sequence_number"] = self.number
        return False


_CONTENT: Final = ("content_index",)
_SUMMARY: Final = ("summary_index",)
PLACED: Final[dict[str, tuple[str, ...]]] = {
    "response.content_part.added": _CONTENT, "response.content_part.done": _CONTENT, "response.output_text.delta": _CONTENT,
    "response.output_text.done": _CONTENT, "response.refusal.delta": _CONTENT, "response.refusal.done": _CONTENT,
    "response.reasoning_text.delta": _CONTENT, "response.reasoning_text.done": _CONTENT,
    "response.reasoning_summary_part.added": _SUMMARY, "response.reasoning_summary_part.done": _SUMMARY,
    "response.reasoning_summary_text.delta": _SUMMARY, "response.reasoning_summary_text.done": _SUMMARY,
}


def _placed(doc: Json, known: Known) -> bool:
    whole = True
    if doc.get("output_index") != known.index:
        doc["output_index"], whole = known.index, False
    item: Any = doc.get("item")
    if isinstance(item, dict):
        if item.get("id") != known.id:
            item["id"], whole = known.id, False
    elif doc.get("item_id") != known.id and ("item_id" in doc or doc["type"] in PLACED):
        doc["item_id"], whole = known.id, False
    return whole
