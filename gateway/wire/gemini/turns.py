"""How is a dialogue said as Gemini's contents? user and model take turns, and calls are answered in the very next one.

Responses are paired with calls by their order (ids are told only where the target knows them), so each call gets exactly one; a
response that nobody asked for becomes a user's text. https://ai.google.dev/gemini-api/docs/function-calling
"""
from collections import deque
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Image,
    Message,
    Opaque,
    Part,
    Refusal,
    Result,
    Text,
    Thinking,
)
from gateway.wire.base import Outbound
from gateway.wire.gemini.schema import NAME, Json, call_args, plain_base64, safe_name
from gateway.wire.gemini.thinking import generation
from gateway.wire.lenient import load

NO_RESULT: Final = "No result was returned for this call."
OPENING: Final = "Continue."
SYSTEM: Final = frozenset({"system", "developer"})
# What Google lets stand for a signature that is not there: without one Gemini 3 refuses a history with calls.
# https://ai.google.dev/gemini-api/docs/thought-signatures
NO_SIGNATURE: Final = "skip_thought_signature_validator"
_OWN_FILES: Final = ("gs://", "https://generativelanguage.googleapis.com/", "https://www.youtube.com/", "https://youtu.be/")
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/yaml", "application/javascript")

Place = tuple[int, ...]                          # of a part: its message, its number there, its number inside a result


class Contents:
    """The turns of one dialogue for one target."""

    def __init__(self, talk: Conversation, to: Outbound) -> None:
        self.to = to
        self.ids = "call_ids" in to.flags
        self.signed = generation(to.model) >= 3
        self.turns: list[Json] = []
        self._results: dict[str, deque[tuple[int, int, Result]]] = {}
        self._taken: set[tuple[int, int]] = set()
        for i, message in enumerate(talk.messages):
            for j, part in enumerate(message.parts):
                if isinstance(part, Result):
                    self._results.setdefault(part.call_id, deque()).append((i, j, part))
        for i, message in enumerate(talk.messages):
            if message.role == "assistant":
                self._model(message, i)
            elif message.role not in SYSTEM:
                self._say("user", self._user(message, i))

    def _say(self, role: str, parts: list[Json]) -> None:
        """Add to the turn of this role, or begin one; parts that answer calls go first."""
        if not parts:
            return
        if not self.turns and role == "model":
            self.turns.append({"role": "user", "parts": [{"text": OPENING}]})
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1]["parts"] += parts
        else:
            self.turns.append({"role": role, "parts": parts})

    # ------------------------------------------------------------------ the model's turns
    def _model(self, message: Message, i: int) -> None:
        parts: list[Json] = []
        calls: list[Call] = []
        for j, part in enumerate(message.parts):
            if isinstance(part, Call):
                calls.append(part)
                continue
            made = self._part(part, (i, j))
            if made is not None:
                parts.append(made)
        if not calls:
            self._say("model", parts)
            return
        if self.turns and self.turns[-1]["role"] == "model" and not any("functionCall" in p for p in self.turns[-1]["parts"]):
            parts = [*self.turns.pop()["parts"], *parts]
        self._say("model", parts + [self._call(call, first=not n) for n, call in enumerate(calls)])
        self._answers(calls, i)

    def _call(self, call: Call, first: bool) -> Json:
        function: Json = {"name": safe_name(call.name), "args": call_args(call.arguments, call.kind)}
        if self.ids and call.id:
            function["id"] = call.id
        part: Json = {"functionCall": function}
        if call.signature:
            part["thoughtSignature"] = call.signature
        elif first and self.signed:
            part["thoughtSignature"] = NO_SIGNATURE
        return part

    def _answers(self, calls: list[Call], i: int) -> None:
        """A user's turn that answers them all, in their order, wherever the dialogue has the answers; what no response
        can hold (pictures) follows."""
        responses: list[Json] = []
        shown: list[Json] = []
        for call in calls:
            waiting = self._results.get(call.id)
            while waiting and waiting[0][0] <= i:
                waiting.popleft()                    # said before it was asked: no answer to this one
            if not waiting:
                responses.append(self._response(call, {"result": NO_RESULT}))
                continue
            at, place, result = waiting.popleft()
            self._taken.add((at, place))
            responses.append(self._response(call, _said(result)))
            shown += [made for k, part in enumerate(result.parts) if not isinstance(part, (Text, Refusal)) and not _text_of(part)
                      and (made := self._part(part, (at, place, k))) is not None]
        self._say("user", responses + shown)

    def _response(self, call: Call, said: Json) -> Json:
        function: Json = {"name": safe_name(call.name), "response": said}
        if self.ids and call.id:
            function["id"] = call.id
        return {"functionResponse": function}

    # ------------------------------------------------------------------ everybody else's
    def _user(self, message: Message, i: int) -> list[Json]:
        out: list[Json] = []
        for j, part in enumerate(message.parts):
            if isinstance(part, Result):
                if (i, j) not in self._taken:
                    out += self._unasked(part, (i, j))
            elif (made := self._part(part, (i, j))) is not None:
                out.append(made)
        return out

    def _unasked(self, result: Result, at: Place) -> list[Json]:
        made = [self._part(part, (*at, k)) for k, part in enumerate(result.parts)]
        return [part for part in made if part is not None] or [{"text": "(an empty tool result)"}]

    # ------------------------------------------------------------------ parts
    def _part(self, part: Part, at: Place) -> Json | None:
        kind = type(part)
        if kind is Text:
            own = part.extra.get(NAME)  # type: ignore[union-attr]
            text = part.text  # type: ignore[union-attr]
            return None if not text else {"text": text, **own} if own else {"text": text}
        if isinstance(part, Refusal):
            return {"text": part.text} if part.text else None
        if isinstance(part, Thinking):
            return _thought(part, self.to)
        if isinstance(part, Image):
            return _image(part, at)
        if isinstance(part, Document):
            return _document(part, at)
        return part.payload if isinstance(part, Opaque) and part.wire == NAME and isinstance(part.payload, dict) else None


def _thought(part: Thinking, to: Outbound) -> Json | None:
    """Only what this API has signed goes back to it."""
    if part.owner not in (NAME, to.provider) or not part.signature:
        return None
    return {"text": part.text, "thought": True, "thoughtSignature": part.signature}


def _said(result: Result) -> Json:
    """A response must be an object: the text goes under ``result``, as the JSON that it is where it is any."""
    text = "\n".join([said for part in result.parts if (said := _text_of(part))])
    value: Any = text
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = load(text.encode("utf-8", "surrogatepass"))[0]
        except ValueError:
            value = text
    return {"error" if result.is_error else "result": value}


def _text_of(part: Part) -> str:
    if isinstance(part, (Text, Refusal)):
        return part.text
    return part.text if isinstance(part, Document) else ""


# ---------------------------------------------------------------- pictures and documents
def unsupported(field: str, why: str) -> GatewayError:
    return GatewayError("unsupported", f"{field}: {why}", param=field)


def _path(at: Place) -> str:
    return f"messages.{at[0]}.content.{'.'.join(map(str, at[1:]))}"


def _data_url(url: str) -> tuple[str, str]:
    """(media type, base64); empty for any other address."""
    if not url.startswith("data:"):
        return "", ""
    head, _, data = url[5:].partition(",")
    return (head.partition(";")[0], data) if head.endswith("base64") else ("", "")


def _image(part: Image, at: Place) -> Json:
    media, data = part.media_type, part.data
    if part.url and not data:
        found, data = _data_url(part.url)
        media = found or media
    if data:
        return {"inlineData": {"mimeType": media_type(data, media), "data": data}}
    return _linked(part.url or part.file_id, media, at, "an image")


def _document(part: Document, at: Place) -> Json:
    media, data = part.media_type, part.data
    if part.text:
        return {"text": f"{part.title}\n{part.text}" if part.title else part.text}
    if part.url and not data:
        found, data = _data_url(part.url)
        media = found or media
    if data:
        return {"inlineData": {"mimeType": media or "application/pdf", "data": plain_base64(data)}}
    return _linked(part.url or part.file_id, media, at, "a file")


def _linked(uri: str, media: str, at: Place, what: str) -> Json:
    if uri.startswith(_OWN_FILES):
        return {"fileData": {"fileUri": uri, **({"mimeType": media} if media else {})}}
    if uri.startswith(("http://", "https://")):
        raise unsupported(_path(at), f"{what} must be sent to this model as data, not as an address.")
    raise unsupported(_path(at), f"{what} that was uploaded elsewhere cannot be given to this model.")


# The first bytes of a picture in base64, and what it therefore is.
_MAGIC: Final = (("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))


def media_type(data: str, declared: str) -> str:
    """By its bytes, else by its declaration."""
    for head, kind in _MAGIC:
        if data.startswith(head):
            return kind
    return "image/jpeg" if declared in ("image/jpg", "image/pjpeg") else declared or "image/png"
