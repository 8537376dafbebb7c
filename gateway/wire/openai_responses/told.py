"""What does a frame around text say? The members that matter, typed; everything else stays in the frame's own bytes.

The usual frames are decoded into ``Told`` at once. A frame that had to be mended, or whose members are of odd types, was read as a
dict and becomes one by hand, so that whoever writes knows one form only.
"""
from typing import Any, Final

import msgspec

from gateway.wire.lenient import load
from gateway.wire.openai_responses.schema import CALLS, Json


class Part(msgspec.Struct, gc=False):
    """Of a message or of reasoning."""
    type: str = ""
    text: str | None = None
    refusal: str | None = None

    @property
    def said(self) -> str:
        return self.text or self.refusal or ""


class Item(msgspec.Struct, gc=False):
    type: str = ""
    id: str = ""
    content: list[Part] | None = None
    summary: list[Part] | None = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None


class Response(msgspec.Struct, gc=False):
    """Negative and empty defaults tell that a field is missing."""
    id: str = ""
    object: str = ""
    created_at: int | float = -1
    model: str = ""
    status: str = ""
    output: list[Item] | None = None
    usage: Json | None = None


class Told(msgspec.Struct, gc=False):
    """A frame of any kind."""
    type: str
    sequence_number: int = -1
    output_index: int = -1
    item_id: str = ""
    content_index: int = -1
    summary_index: int = -1
    text: str | None = None
    refusal: str | None = None
    part: Part | None = None
    item: Item | None = None
    response: Response | None = None

    @property
    def said(self) -> str:
        return self.text or self.refusal or ""


decode: Final = msgspec.json.Decoder(Told).decode
ODD: Final = (msgspec.DecodeError, RecursionError)


def of(raw: bytes) -> Told:
    """A frame, whatever the types of its members."""
    try:
        return decode(raw)
    except ODD:
        return by_hand(load(raw)[0])


def by_hand(doc: Json) -> Told:
    part, item, response = doc.get("part"), doc.get("item"), doc.get("response")
    return Told(
        _text(doc, "type"), _number(doc, "sequence_number"), _number(doc, "output_index"), _text(doc, "item_id"),
        _number(doc, "content_index"), _number(doc, "summary_index"), _said(doc, "text"), _said(doc, "refusal"),
        _part(part) if isinstance(part, dict) else None, item_by_hand(item) if isinstance(item, dict) else None,
        _response(response) if isinstance(response, dict) else None)


def item_by_hand(doc: Json) -> Item:
    return Item(_text(doc, "type"), _text(doc, "id"), _parts(doc.get("content")), _parts(doc.get("summary")),
                doc.get("call_id"), doc.get("name"), doc.get("arguments"), doc.get("input"))


def _response(doc: Json) -> Response:
    usage = doc.get("usage")
    return Response(_text(doc, "id"), _text(doc, "object"), _number(doc, "created_at"), _text(doc, "model"), _text(doc, "status"),
                    items_by_hand(doc.get("output")), usage if isinstance(usage, dict) else None)


def items_by_hand(output: Any) -> list[Item] | None:
    return [item_by_hand(item) if isinstance(item, dict) else Item() for item in output] if isinstance(output, list) else None


def _parts(parts: Any) -> list[Part] | None:
    return [_part(part) for part in parts] if isinstance(parts, list) else None


def _part(part: Any) -> Part:
    if not isinstance(part, dict):
        return Part("", str(part))
    return Part(_text(part, "type"), _said(part, "text"), _said(part, "refusal"))


def _text(doc: Json, name: str) -> str:
    value = doc.get(name)
    return value if isinstance(value, str) else ""


def _said(doc: Json, name: str) -> str | None:
    value = doc.get(name)
    return str(value) if value else None


def _number(doc: Json, name: str) -> int:
    value = doc.get(name)
    return value if isinstance(value, int) else -1


# ---------------------------------------------------------------- comparing
def texts(parts: list[Part] | None) -> list[str]:
    return [said for part in parts if (said := part.said)] if parts else []


def alike(theirs: list[Item] | None, ours: list[Item]) -> bool:
    """Does the upstream's final output list just the items that were streamed?"""
    return theirs is not None and (theirs == ours or [_gist(item) for item in theirs] == [_gist(item) for item in ours])


def _gist(item: Item) -> Any:
    kind = item.type
    if kind == "message" or kind == "reasoning":
        return kind, item.id, texts(item.content), texts(item.summary)
    if kind in CALLS:
        return kind, item.id, item.call_id, item.name, item.arguments, item.input
    return kind, item.id
