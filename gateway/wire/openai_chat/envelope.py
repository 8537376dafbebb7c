"""What stands around every frame of a stream? Id, creation time and model: learnt once, filled in where they are missing."""
import msgspec

from gateway.core import events as ev
from gateway.core.clock import SystemClock
from gateway.core.ids import token
from gateway.wire.lenient import dump
from gateway.wire.openai_chat.schema import Json

_encode = msgspec.json.encode


class Envelope:
    """Of one stream. ``shown`` is the model's name for the client ("" = the upstream's own); ``same``: frames may be passed on."""

    __slots__ = ("id", "created", "model", "shown", "same", "_needles")

    def __init__(self, shown: str, same: bool) -> None:
        self.id = ""
        self.created = 0
        self.model = ""                          # the upstream's own name
        self.shown = shown
        self.same = same
        self._needles: dict[str, tuple[bytes, bytes, bytes, bytes]] = {}

    def learn(self, doc: Json) -> None:
        """Note what this frame tells about the stream."""
        if not self.id and isinstance(doc.get("id"), (str, int)):
            self.id = str(doc["id"] or "")
        if not self.model and isinstance(doc.get("model"), str):
            self.model = doc["model"]
        if not self.created and isinstance(doc.get("created"), (int, float)):
            self.created = int(doc["created"])

    def invent(self) -> None:
        """The upstream names no id: one of ours, the same for the whole stream."""
        self.id = self.id or "chatcmpl-" + token()

    def meta(self, raw: bytes | None) -> ev.Meta:
        return ev.Meta(self.id, self.model, self.created, raw)

    def mend(self, doc: Json) -> bool:
        """Fill in what OpenAI's client libraries rely on. True: nothing was missing."""
        whole = True
        if not (isinstance(doc.get("id"), str) and doc["id"]):
            doc["id"], whole = str(doc.get("id") or self.id), False
        if not isinstance(doc.get("created"), int):
            self.created = self.created or int(SystemClock.wall())
            doc["created"], whole = self.created, False
        if not (isinstance(doc.get("model"), str) and doc["model"]):
            doc["model"], whole = self.shown or self.model or "unknown", False
        if doc.get("object") not in ("chat.completion.chunk", "text_completion"):
            legacy = any("text" in choice and "delta" not in choice for choice in doc.get("choices") or ())
            doc["object"], whole = "text_completion" if legacy else "chat.completion.chunk", False
        return whole

    def write(self, doc: Json) -> bytes | None:
        """A frame for a client of the same format."""
        if not self.same:
            return None
        self.mend(doc)
        if self.shown:
            doc["model"] = self.shown
        return dump(doc)

    def rename(self, data: bytes, model: str) -> bytes | None:
        """The upstream's own bytes with the client's name of the model; None where the bytes alone cannot tell its place."""
        if not self.shown or model == self.shown:
            return data
        needles = self._needles.get(model)
        if needles is None:
            old, new = _encode(model), _encode(self.shown)
            needles = (b'"model":' + old, b'"model":' + new, b'"model": ' + old, b'"model": ' + new)
            if len(self._needles) < 4:
                self._needles[model] = needles
        tight, tight_new, loose, loose_new = needles
        if data.count(tight) == 1:
            return data.replace(tight, tight_new)
        return data.replace(loose, loose_new) if data.count(loose) == 1 else None


def mend_choice(choice: Json, position: int) -> bool:
    """Index, delta and a null finish reason. True: all were there."""
    whole = True
    index = choice.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        choice["index"], whole = position, False
    if not isinstance(choice.get("delta"), dict):
        choice.pop("delta", None)
        if not isinstance(choice.get("text"), str):
            said = choice.pop("message", None)           # a server that sends whole messages as frames
            choice["delta"], whole = said if isinstance(said, dict) else {}, False
    if choice.get("finish_reason", "") == "":
        choice["finish_reason"], whole = None, False
    return whole
