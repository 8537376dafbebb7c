"""What does one GenerateContentResponse say? A frame of a stream, an element of an array, or a whole answer, taken apart into events.

A frame that says one plain thing is an event that carries it (``raw``); of one that says several, each event carries its own part,
and what stands beside the parts (grounding, ratings) goes with the finish reason or with the first of them. Function calls belong
to the turn: it makes calls of them, and their parts are not passed on.
"""
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import redact
from gateway.wire.gemini.faults import fault_of
from gateway.wire.gemini.partial import Partial
from gateway.wire.gemini.schema import FAILED, NAME, Json, arguments, finish_in, finish_word, read_usage
from gateway.wire.lenient import dump, whole_text

MEDIA: Final = frozenset({"inlineData", "fileData"})
_BESIDE_PARTS: Final = frozenset({"content", "index", "finishReason"})
_BESIDE_DATA: Final = frozenset({"thought", "thoughtSignature", "partMetadata", "videoMetadata"})
_ENVELOPE: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "createTime"})

Group = tuple[str, list[Json]]
"""Neighbouring parts of one kind: ``text``, ``thought``, or the name of the field that holds the data (one part each)."""


class Piece(bytes):
    """One of the ``n`` frames that a frame was taken apart into, the ``place``-th. Where all of them leave together, side by
    side, ``whole`` leaves instead, as it came."""
    whole: bytes
    place: int
    n: int

    @classmethod
    def of(cls, data: bytes, whole: bytes, place: int, n: int) -> "Piece":
        made = cls(data)
        made.whole, made.place, made.n = whole, place, n
        return made


class Reader:
    """One answer. ``model``: the name shown to the client ("" = the upstream's own)."""

    __slots__ = ("same", "model", "usage", "finished", "n_candidates", "_begun", "_n_calls", "_partial", "_seen")

    def __init__(self, same: bool, model: str) -> None:
        self.same = same
        self.model = model
        self.usage: Json | None = None               # the newest, not yet told
        self.finished: set[int] = set()              # candidates that have said why they ended
        self.n_candidates = 0
        self._begun = False
        self._n_calls: dict[int, int] = {}
        self._partial: dict[int, Partial] = {}
        self._seen: set[tuple[int, str, str, str]] = set()

    def begin(self, id: str, model: str, out: list[ev.Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(ev.Meta(id, model))

    def frame(self, doc: Json, data: bytes | None) -> list[ev.Event]:
        """The events of one frame. ``data``: its bytes, if they may be passed on."""
        error = fault_of(doc)
        if error is not None:
            return [ev.Fault(error)]
        out: list[ev.Event] = []
        self.begin(_string(doc.get("responseId")), _string(doc.get("modelVersion")), out)
        if isinstance(usage := doc.get("usageMetadata"), dict) and usage:
            self.usage = usage
        found = doc.get("candidates")
        candidates = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        if not candidates:
            self._without_candidates(doc, out)
        for position, candidate in enumerate(candidates):
            one = doc if len(candidates) == 1 else {**doc, "candidates": [candidate]}
            self._candidate(one, candidate, position, data if one is doc else None, out)
            if out and type(out[-1]) is ev.Fault:
                return out
        if self.finished:
            out += self.counted()
        return out

    def counted(self) -> list[ev.Event]:
        """The newest token counts, once."""
        usage, self.usage = self.usage, None
        return [read_usage(usage)] if usage is not None else []

    def _without_candidates(self, doc: Json, out: list[ev.Event]) -> None:
        """A prompt that was blocked has no candidates; a frame of token counts ends nothing."""
        feedback = doc.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self.finished.add(0)
            out.append(ev.Finish("content_filter", 0, self._write({**doc, "candidates": []})))
        elif doc.keys() - _ENVELOPE:
            out.append(ev.Opaque(NAME, "frame", doc, self._write(doc)))

    # ------------------------------------------------------------------ one candidate
    def _candidate(self, doc: Json, candidate: Json, position: int, data: bytes | None, out: list[ev.Event]) -> None:
        index = candidate.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) and index >= 0 else position
        word = finish_word(candidate.get("finishReason"))
        if word in FAILED:
            said = candidate.get("finishMessage")
            more = f": {redact(said)}" if isinstance(said, str) and said else "."
            out.append(ev.Fault(GatewayError("in_band", f"The provider ended the answer with {word}{more}")))
            return
        groups = _groups(candidate)
        if not word and not any(kind == "functionCall" for kind, _ in groups) and groups:
            self._untouched(doc, candidate, index, groups, data, out)
            return
        beside = {key: value for key, value in candidate.items() if key not in _BESIDE_PARTS}
        for group in groups:
            if group[0] == "functionCall":
                self._call(group[1][0], index, out)
                continue
            extras, beside = ({}, beside) if word else (beside, {})
            self._event(group, index, self._slice(doc, extras, index, group[1]), out)
        if word:
            reason = finish_in(word)
            if reason == "stop" and self._n_calls.get(index):
                reason = "tool_calls"
            self.finished.add(index)
            out.append(ev.Finish(reason, index, self._slice(doc, {"finishReason": word, **beside}, index, [{"text": ""}])))
        elif beside and self.same:
            out.append(ev.Opaque(NAME, "candidate", beside, self._slice(doc, beside, index, []), index))

    def _untouched(self, doc: Json, candidate: Json, index: int, groups: list[Group], data: bytes | None, out: list[ev.Event]) -> None:
        """A frame that nothing has to be taken out of: one event, or several that may leave as the frame that they came in."""
        whole = (data if data is not None and self._named_right(doc) else self._write(doc)) if self.same else None
        if whole is None or _alone(groups):
            self._event(groups[0], index, whole, out)
            for group in groups[1:] if whole is None else ():
                self._event(group, index, None, out)
            return
        beside = {key: value for key, value in candidate.items() if key not in _BESIDE_PARTS}
        for place, (kind, parts) in enumerate(groups):
            raw = self._slice(doc, beside if not place else {}, index, parts) or b""
            self._event((kind, parts), index, Piece.of(raw, whole, place, len(groups)), out)

    def _event(self, group: Group, index: int, raw: bytes | None, out: list[ev.Event]) -> None:
        kind, parts = group
        if kind in ("text", "thought"):
            text = whole_text("".join([part["text"] for part in parts if isinstance(part.get("text"), str)]))
            signature = next((s for part in reversed(parts) if isinstance(s := part.get("thoughtSignature"), str)), None)
            if kind == "thought" or not text:
                out.append(ev.Reasoning(text, raw, index, signature))
            else:
                out.append(ev.Text(text, raw, index))
        elif kind in MEDIA and not self.same:
            out += _picture(parts[0], index)
        else:
            out.append(ev.Opaque(NAME, kind, parts[0], raw, index, kind in MEDIA))

    # ------------------------------------------------------------------ calls
    def _call(self, part: Json, index: int, out: list[ev.Event]) -> None:
        """Calls come whole; Vertex can send their arguments in pieces, each with the path of its place."""
        call: Json = part["functionCall"] if isinstance(part["functionCall"], dict) else {}
        going = self._partial.get(index)
        if going is None and (call.get("willContinue") or call.get("partialArgs") is not None):
            going = self._partial[index] = Partial(part)
        if going is not None:
            going.add(call)
            if call.get("willContinue"):
                return
            del self._partial[index]
            part = going.part()
            call = part["functionCall"]
        name, made, args = _string(call.get("name")), _string(call.get("id")), arguments(call.get("args"))
        if not name and not call.get("args"):
            return                                       # ends a call that has ended
        if made:
            told = (index, made, name, args)
            if told in self._seen:
                return
            self._seen.add(told)
        place = self._n_calls.get(index, 0)
        self._n_calls[index] = place + 1
        out.append(ev.ToolDelta(place, made, name, args, index, True, extra=_beside_call(part)))

    # ------------------------------------------------------------------ frames for a client of this format
    def _slice(self, doc: Json, extras: Json, index: int, parts: list[Json]) -> bytes | None:
        """The frame with these parts alone; token counts go with the finish reason."""
        if not self.same:
            return None
        candidate = {"content": {"parts": parts, "role": "model"}, "index": index, **extras}
        kept = {key: value for key, value in doc.items() if key != "usageMetadata"}
        return self._write({**kept, "candidates": [candidate]})

    def _write(self, doc: Json) -> bytes | None:
        if not self.same:
            return None
        if self.model and doc.get("modelVersion") != self.model:
            doc = {**doc, "modelVersion": self.model}
        return dump(doc)

    def _named_right(self, doc: Json) -> bool:
        return not self.model or doc.get("modelVersion") == self.model


def _groups(candidate: Json) -> list[Group]:
    """The parts of a candidate, neighbours of a kind together. Empty texts say nothing; a signature alone does."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    out: list[Group] = []
    for part in parts if isinstance(parts, list) else [parts]:
        if not isinstance(part, dict):
            continue
        kind = _kind(part)
        if kind == "text" and not part.get("text") and not part.get("thoughtSignature"):
            continue
        if kind in ("text", "thought") and out and out[-1][0] == kind:
            out[-1][1].append(part)
        else:
            out.append((kind, [part]))
    return out


def _alone(groups: list[Group]) -> bool:
    """Is this one event? One thing said, or several that only clients of this format can read."""
    return len(groups) == 1 or not {kind for kind, _ in groups} & {"text", "thought", *MEDIA}


def _kind(part: Json) -> str:
    if isinstance(part.get("functionCall"), dict):
        return "functionCall"
    if isinstance(part.get("text"), str):
        return "thought" if part.get("thought") else "text"
    return next((key for key in part if key not in _BESIDE_DATA), "text")


def _beside_call(part: Json) -> Json | None:
    """What a part holds beside its call: the signature, which must come back with it, and whatever else."""
    out: Json = {}
    if isinstance(signature := part.get("thoughtSignature"), str) and signature:
        out["thought_signature"] = signature
    rest = {key: value for key, value in part.items() if key not in ("functionCall", "thoughtSignature")}
    if rest:
        out[NAME] = rest
    return out or None


def _picture(part: Json, index: int) -> list[ev.Event]:
    """Media for a client of another format, in the one form that clients know: the ``images`` of a chat message."""
    file = part.get("inlineData")
    media = str(file.get("mimeType") or "") if isinstance(file, dict) else ""
    if not isinstance(file, dict) or not media.startswith("image/"):
        return []
    url = {"url": f"data:{media};base64,{file.get('data') or ''}"}
    return [ev.Opaque("openai-chat", "images", [{"type": "image_url", "image_url": url}], None, index, True)]


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
