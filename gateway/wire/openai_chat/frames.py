"""What does one rich frame say? Frames that are more than plain text, taken apart into events.

The stream decoder reads plain frames by itself; everything else comes here as a dict: the opening, tool calls, finishes, usage,
parts, errors, and frames of servers that leave out what OpenAI's clients rely on. A frame that says several things becomes
several events; what belongs to none of them stays in the frame of one of them, so that nothing unknown is lost.
"""
from collections.abc import Iterator
from typing import Any, Final

from gateway.core import events as ev
from gateway.wire.lenient import dump, load
from gateway.wire.openai_chat.envelope import Envelope, mend_choice
from gateway.wire.openai_chat.faults import ended_in_failure, fault_of
from gateway.wire.openai_chat.schema import Json, finish_word, read_usage, says_failed

WIRE: Final = "openai-chat"
REASONING: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
COUNTS: Final = frozenset({"audio", "images", "image", "video"})                 # an answer by itself
_PAYLOAD: Final = frozenset({"content", "refusal", "tool_calls", "function_call", *REASONING})
_CALLS: Final = frozenset({"tool_calls", "function_call"})
_SILENT: Final = frozenset({"role", "index", "channel", "token_id", "type"})     # says nothing by itself
_CALL_FIELDS: Final = frozenset({"index", "id", "type", "function", "custom"})

Piece = tuple["ev.Text | ev.Reasoning | ev.Refusal", Json, bool]
"""An event, the members of a delta that say it, and whether the upstream's own delta said it just so."""


def parse_frame(data: bytes, event: str | None) -> tuple[Json | ev.Fault | None, bool]:
    """The JSON object of a frame, or the failure that it tells; and whether its bytes may be passed on as they came.

    None: it is no object. An array with one object is that object (some relays wrap errors so)."""
    try:
        doc, exact = load(data)
    except ValueError:
        return None, False
    if isinstance(doc, list) and len(doc) == 1:
        doc, exact = doc[0], False
    if not isinstance(doc, dict):
        return None, False
    error = fault_of(doc, event)
    return (ev.Fault(error) if error is not None else doc), exact


def read_frame(doc: Json, envelope: Envelope, data: bytes | None = None) -> list[ev.Event]:
    """The events of one frame. ``data``: its own bytes, if they may be passed on."""
    counted = doc.get("usage") is not None
    usage = _take_usage(doc)
    told = doc.get("choices")
    choices: list[Json] = [c for c in told if isinstance(c, dict)] if isinstance(told, list) else []
    if not choices:
        return _choiceless(doc, usage, envelope)
    whole = data is not None and told == choices and len(choices) == 1 and usage is None and not counted
    doc["choices"] = choices
    for position, choice in enumerate(choices):
        whole = mend_choice(choice, position) and whole
    original = None
    if envelope.same and whole and data is not None and envelope.mend(doc):
        original = envelope.rename(data, doc["model"])
    out: list[ev.Event] = []
    for choice in choices:
        out += _Choice(doc, choice, envelope, original).events()
    if usage is not None:
        out.append(read_usage(usage))
    return out


def _take_usage(doc: Json) -> Json | None:
    """The usage object, taken out of the frame. Groq's stands in a bag of its own, in older streams only there."""
    usage = doc.pop("usage") if doc.get("usage") is not None else None
    bag = doc.get("x_groq")
    if isinstance(bag, dict) and bag.get("usage"):
        doc["x_groq"] = {key: value for key, value in bag.items() if key != "usage"}
        usage = usage or bag["usage"]
    return usage if usage and isinstance(usage, dict) else None


def _choiceless(doc: Json, usage: Json | None, envelope: Envelope) -> list[ev.Event]:
    doc["choices"] = []
    if usage is None:
        return [envelope.meta(envelope.write(doc))]
    event = read_usage(usage)
    doc["usage"] = event.native
    event.raw = envelope.write(doc)
    return [event]


class _Choice:
    """One choice of one frame, taken apart."""

    __slots__ = ("doc", "choice", "index", "delta", "legacy", "envelope", "original")

    def __init__(self, doc: Json, choice: Json, envelope: Envelope, original: bytes | None) -> None:
        self.doc = doc
        self.choice = choice
        self.index: int = choice["index"]
        self.legacy = "delta" not in choice                  # text_completion: a text instead of a delta
        self.delta: Json = {"content": choice.get("text")} if self.legacy else choice["delta"]
        self.envelope = envelope
        self.original = original

    def events(self) -> list[ev.Event]:
        native = self.choice.get("finish_reason")
        if says_failed(native):
            return [ev.Fault(ended_in_failure(native))]
        finish = finish_word(native)
        pieces = list(pieces_of(self.delta, self.index))
        calls = list(calls_of(self.delta, self.index))
        if not calls and any(self.delta.get(key) not in (None, [], {}) for key in _CALLS):
            self.original = None                             # calls that are none: such a frame does not go on as it is
        used = {key for _, members, _ in pieces for key in members}
        extras = {key: value for key, value in self.delta.items()
                  if key not in used and (key not in _PAYLOAD or (not value and key not in _CALLS))}
        if len(pieces) == 1 and pieces[0][2] and not calls and not finish and self.original is not None:
            pieces[0][0].raw = self.original
            return [pieces[0][0]]
        out = self._pieces(pieces, extras) + calls
        if pieces:
            extras = {}
        if finish:
            out.append(self._finish(finish, extras, bare=bool(pieces)))
        elif (kind := next((k for k, v in extras.items() if v and k not in _SILENT), None)) is not None:
            out.append(ev.Opaque(WIRE, kind, extras[kind], self._own(extras, calls), self.index, kind in COUNTS))
        elif not out:
            out.append(self.envelope.meta(self._own(extras, calls)))
        return out

    def _pieces(self, pieces: list[Piece], extras: Json) -> list[ev.Event]:
        """Each with a frame of its own; what is unknown goes with the text, else with the first."""
        main = next((event for event, _, _ in pieces if isinstance(event, ev.Text)), pieces[0][0] if pieces else None)
        for event, members, _ in pieces:
            event.raw = self._frame({**extras, **members} if event is main else members, bare=event is not main)
        return [event for event, _, _ in pieces]

    def _finish(self, finish: str, extras: Json, bare: bool) -> ev.Finish:
        raw = self._frame(extras, bare=bare, finish=finish)
        matched = self.choice.get("stop_sequence")
        return ev.Finish(finish, self.index, raw, matched if isinstance(matched, str) else None)

    def _own(self, extras: Json, calls: list[ev.ToolDelta]) -> bytes | None:
        return self.original if self.original is not None and not calls else self._frame(extras)

    def _frame(self, delta: Json, bare: bool = False, finish: str | None = None) -> bytes | None:
        """A frame of this choice alone; ``bare``: without what stands beside the delta (logprobs …)."""
        if not self.envelope.same:
            return None
        choice: Json = {"index": self.index} if bare else dict(self.choice)
        if self.legacy:
            choice["text"] = delta.get("content") or ""
        else:
            choice["delta"] = delta
        choice["finish_reason"] = finish
        return self.envelope.write({**self.doc, "choices": [choice]})


def pieces_of(delta: Json, index: int) -> Iterator[Piece]:
    """Reasoning, text and refusal of a delta or a whole message, in this order."""
    if thought := reasoning_of(delta):
        keys = [key for key in (*REASONING, "reasoning_details") if delta.get(key)]
        yield ev.Reasoning(thought, None, index), {key: delta[key] for key in keys}, True
    content = delta.get("content")
    if isinstance(content, list):
        for thinking, text in text_parts(content):
            if thinking:
                yield ev.Reasoning(text, None, index), {"reasoning_content": text}, False
            else:
                yield ev.Text(text, None, index), {"content": text}, False
    elif content is not None and content != "":
        text = content if isinstance(content, str) else dump(content).decode()
        yield ev.Text(text, None, index), {"content": text}, text is content
    refusal = delta.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield ev.Refusal(refusal, None, index), {"refusal": refusal}, True


def reasoning_of(message: Json) -> str:
    """Thinking text of a delta or message; servers have three ways to say it and some use two at once."""
    for key in REASONING:
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("content")
        if isinstance(value, str) and value:
            return value
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return ""
    return "".join([str(d.get("text") or d.get("summary") or "") for d in details if isinstance(d, dict)])


def text_parts(content: list[Any]) -> list[tuple[bool, str]]:
    """The texts of a list of parts, each with: is it thinking? https://docs.mistral.ai/capabilities/reasoning/"""
    out: list[tuple[bool, str]] = []
    for part in content:
        if isinstance(part, str):
            out.append((False, part))
        elif isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            inner = [{"text": inner}] if isinstance(inner, str) else inner if isinstance(inner, list) else []
            out.append((True, "".join([str(p.get("text") or "") for p in inner if isinstance(p, dict)])))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            out.append((False, part["text"]))
    return [piece for piece in out if piece[1]]


def calls_of(delta: Json, index: int) -> Iterator[ev.ToolDelta]:
    """Pieces of tool calls; the legacy ``function_call`` is one without an id."""
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else [calls]:
        if isinstance(call, dict):
            yield read_call(call, index)
    legacy = delta.get("function_call")
    if isinstance(legacy, dict) and (legacy.get("name") or legacy.get("arguments")):
        yield read_call({"index": 0, "function": legacy}, index)


def read_call(call: Json, choice: int) -> ev.ToolDelta:
    """One call, or a piece of one, as the upstream sent it."""
    position, called, kind = call.get("index"), call.get("function"), "function"
    if not isinstance(called, dict):
        custom = call.get("custom")
        # Neither: name and arguments at the top, as some local servers write them.
        called, kind = (custom, "custom") if isinstance(custom, dict) else (call, "function")
    arguments = called.get("input" if kind == "custom" else "arguments")
    whole = arguments is not None and not isinstance(arguments, str)
    extra = {key: value for key, value in call.items() if key not in _CALL_FIELDS and value}
    return ev.ToolDelta(
        index=position if isinstance(position, int) and not isinstance(position, bool) else None,
        id=_string(call.get("id")), name=_string(called.get("name")),
        arguments=dump(arguments).decode() if whole else arguments or "", choice=choice, whole=whole, kind=kind,
        extra=extra if extra and called is not call else None)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else dump(value).decode()
