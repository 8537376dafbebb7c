"""How is a turn told to a Gemini client? Each frame is a GenerateContentResponse; the last one has the reason and the counts.

``data:`` lines only: an event name, a comment or a [DONE] is fatal to Google's own libraries. Without ``alt=sse`` the frames are
the elements of one JSON array (operation ``chat-array``).
"""
from typing import Any, Final

import orjson

from gateway.core import events as ev
from gateway.core.ids import token
from gateway.wire import jsonl
from gateway.wire.base import Shown
from gateway.wire.gemini.faults import ARRAY, in_stream
from gateway.wire.gemini.frames import Piece
from gateway.wire.gemini.schema import NAME, Json, call_args, finish_in, finish_out, finish_word, write_usage
from gateway.wire.lenient import dump, load
from gateway.wire.sse import DATA, END

_HEAD: Final = b'{"candidates":[{"content":{"parts":['
_TEXT: Final = b'{"text":%b}'
_THOUGHT: Final = b'{"text":%b,"thought":true}'


class Encoder:
    """One stream to one client."""

    __slots__ = ("_shown", "_same", "_array", "_first", "_id", "_name", "_tails", "_pieces", "_calls", "_live", "_finishes", "_usage",
                 "_ended")

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._same = shown.same
        self._array = shown.operation == ARRAY
        self._first = True
        self._id = shown.id or token()
        self._name = quoted(shown.model)
        self._tails: dict[int, bytes] = {}
        self._pieces: list[Piece] = []               # of one frame, as long as they come in their order
        self._calls: list[ev.ToolCall] = []          # that follow each other: they leave in one frame
        self._live: dict[tuple[int, int], tuple[ev.ToolStart, list[str]]] = {}
        self._finishes: list[ev.Finish] = []
        self._usage: ev.Usage | None = None
        self._ended = False

    def encode(self, events: list[ev.Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if self._ended:
                break
            if type(event) is ev.Text and event.raw is not None and self._same and not self._calls:
                self._pass(event.raw, out)
                continue
            if self._calls and type(event) is not ev.ToolCall:
                self._put_calls(out)
            _WRITE[type(event)](self, event, out)
        if self._pieces:
            self._part_pieces(out)
        return b"".join(out)

    # ------------------------------------------------------------------ framing
    def _frame(self, data: bytes, out: list[bytes]) -> None:
        if self._pieces:
            self._part_pieces(out)
        if self._array:
            out.append(jsonl.element(data, self._first))
            self._first = False
        else:
            out += (DATA, data, END)

    def _pass(self, raw: bytes, out: list[bytes]) -> None:
        """The upstream's own frame. One from an answer that did not stream may still hold the upstream's name of the model."""
        if type(raw) is Piece and self._joins(raw, out):
            return
        self._frame(raw if self._name in raw else dump({**load(raw)[0], "modelVersion": self._shown.model}), out)

    def _joins(self, piece: Piece, out: list[bytes]) -> bool:
        """Keep it if it is the first of its frame, or the next one; with the last of them the frame leaves as it came."""
        pieces = self._pieces
        if piece.place != len(pieces) or (pieces and pieces[0].whole is not piece.whole):
            return False
        pieces.append(piece)
        if len(pieces) == piece.n:
            self._pieces = []
            self._pass(piece.whole, out)
        return True

    def _part_pieces(self, out: list[bytes]) -> None:
        """The others of their frame do not come, or come later."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            self._pass(bytes(piece), out)

    def _part(self, part: bytes, choice: int, out: list[bytes]) -> None:
        tail = self._tails.get(choice)
        if tail is None:
            around = dump({"modelVersion": self._shown.model, "responseId": self._id})[1:]
            tail = self._tails[choice] = b'],"role":"model"},"index":%d}],%b' % (choice, around)
        self._frame(_HEAD + part + tail, out)

    # ------------------------------------------------------------------ one kind of event each
    def _meta(self, event: ev.Meta, out: list[bytes]) -> None:
        if self._same and event.id:
            self._id = event.id
            self._tails.clear()

    def _text(self, event: ev.Text | ev.Refusal, out: list[bytes]) -> None:
        if event.raw is not None and self._same:
            self._pass(event.raw, out)
        elif event.text:
            self._part(_TEXT % quoted(event.text), event.choice, out)

    def _reasoning(self, event: ev.Reasoning, out: list[bytes]) -> None:
        if event.raw is not None and self._same:
            self._pass(event.raw, out)
        elif event.signature and self._same:
            part: Json = {"text": event.text, "thoughtSignature": event.signature}
            self._part(dump({**part, "thought": True} if event.text else part), event.choice, out)
        elif event.text:
            self._part(_THOUGHT % quoted(event.text), event.choice, out)

    def _opaque(self, event: ev.Opaque, out: list[bytes]) -> None:
        if self._same and event.wire == NAME and event.raw is not None:
            self._pass(event.raw, out)

    def _call(self, event: ev.ToolCall, out: list[bytes]) -> None:
        if self._calls and self._calls[-1].choice != event.choice:
            self._put_calls(out)
        self._calls.append(event)

    def _put_calls(self, out: list[bytes]) -> None:
        calls, self._calls = self._calls, []
        self._part(b",".join([dump(call_part(call)) for call in calls]), calls[0].choice, out)

    def _call_start(self, event: ev.ToolStart, out: list[bytes]) -> None:
        """This format has no calls in pieces: a live call is told when it is complete."""
        self._live[(event.choice, event.index)] = (event, [])

    def _call_args(self, event: ev.ToolArgs, out: list[bytes]) -> None:
        live = self._live.get((event.choice, event.index))
        if live is not None:
            live[1].append(event.text)

    def _finish(self, event: ev.Finish, out: list[bytes]) -> None:
        for key in [key for key in self._live if key[0] == event.choice]:
            start, pieces = self._live.pop(key)
            self._calls.append(ev.ToolCall(start.index, start.id, start.name, "".join(pieces), start.choice, start.kind, start.extra))
        if self._calls:
            self._put_calls(out)
        self._finishes.append(event)

    def _count(self, event: ev.Usage, out: list[bytes]) -> None:
        self._usage = event

    def _fault(self, event: ev.Fault, out: list[bytes]) -> None:
        self._ended = True
        if self._pieces:
            self._part_pieces(out)
        out.append(in_stream(event.error, self._shown.operation, self._first))

    def _end(self, event: ev.End, out: list[bytes]) -> None:
        self._ended = True
        finishes = self._finishes or [ev.Finish("stop")]
        for finish in finishes:
            doc = self._last(finish)
            if finish is finishes[-1] and self._usage is not None:
                doc["usageMetadata"] = write_usage(self._usage, self._same)
            self._frame(dump(doc), out)
        if self._array:
            out.append(jsonl.CLOSE)

    def _last(self, finish: ev.Finish) -> Json:
        """The frame of a reason: the upstream's own, as far as it says the same."""
        if finish.raw is not None and self._same:
            doc: Json = {**load(finish.raw)[0], "modelVersion": self._shown.model}
            for candidate in doc["candidates"]:
                candidate["finishReason"] = reason_for(candidate.get("finishReason"), finish.reason)
            return doc
        return {"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"},
                                "finishReason": finish_out(finish.reason), "index": finish.choice}],
                "modelVersion": self._shown.model, "responseId": self._id}


_WRITE: Final[dict[type[ev.Event], Any]] = {
    ev.Meta: Encoder._meta, ev.Text: Encoder._text, ev.Refusal: Encoder._text, ev.Reasoning: Encoder._reasoning,
    ev.Opaque: Encoder._opaque, ev.ToolCall: Encoder._call, ev.ToolStart: Encoder._call_start,
    ev.ToolArgs: Encoder._call_args, ev.Finish: Encoder._finish, ev.Usage: Encoder._count, ev.Fault: Encoder._fault,
    ev.End: Encoder._end,
}


def call_part(call: ev.ToolCall) -> Json:
    """A call, with the signature that its model wants back."""
    extra = call.extra or {}
    part: Json = {"functionCall": {"name": call.name, "args": call_args(call.arguments, call.kind), "id": call.id}}
    if signature := signature_of(extra):
        part["thoughtSignature"] = signature
    rest = extra.get(NAME)
    return {**rest, **part} if isinstance(rest, dict) else part


def signature_of(extra: Json) -> str:
    """Where a Gemini upstream of ours, or Google's own chat endpoint, has put it.
    https://ai.google.dev/gemini-api/docs/openai"""
    own = extra.get("thought_signature")
    if not own and isinstance(content := extra.get("extra_content"), dict) and isinstance(google := content.get("google"), dict):
        own = google.get("thought_signature")
    return own if isinstance(own, str) else ""


def reason_for(theirs: Any, reason: str) -> str:
    """The upstream's own word where the turn means the same, else the word for what the turn means. Words, never the numbers
    that some of Google's servers send: clients know them by name only."""
    word = finish_word(theirs)
    means = finish_in(word)
    if word and (means == reason or (means == "stop" and finish_out(reason) == "STOP")):
        return word
    return finish_out(reason)


def quoted(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:
        return dump(text)                            # half a surrogate pair stays an escape
