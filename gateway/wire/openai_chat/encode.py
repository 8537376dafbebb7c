"""How is a turn written to a chat client? Events that may leave -> frames.

An event that carries its own frame (``raw``) is written as it came; everything else is put between prebuilt bytes. The rules of
a finished stream (contract 6.4) are kept here once more: a role first, one finish per choice, usage once and after it, one [DONE].
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.ids import token
from gateway.wire.base import Shown
from gateway.wire.lenient import dump, load
from gateway.wire.openai_chat.faults import in_stream
from gateway.wire.openai_chat.frames import WIRE
from gateway.wire.openai_chat.schema import FINISH, NO_TOOLS, Body, Json, write_usage
from gateway.wire.sse import DATA, DONE, END

_strict: Final = msgspec.json.encode


def chat_id(shown: Shown) -> str:
    """The answer's id where the upstream gave none."""
    return shown.id if shown.id.startswith("chatcmpl-") else "chatcmpl-" + (shown.id or token())


def finish_for(reason: str, legacy_call: bool) -> str:
    """A neutral reason as one of chat's words."""
    word = FINISH.get(reason, "stop")
    return "function_call" if legacy_call and word == "tool_calls" else word


def legacy_calls(body: Any) -> bool:
    """Does this client speak the form before tools? https://platform.openai.com/docs/api-reference/chat/create#functions"""
    return isinstance(body, Body) and bool(body.functions) and bytes(body.tools) in NO_TOOLS


def call_json(call: ev.ToolCall | ev.ToolStart, arguments: str, same: bool) -> Json:
    """A call's head with these arguments, as a delta or message has it."""
    named: Json = {"name": call.name, "input" if call.kind == "custom" else "arguments": arguments}
    out: Json = {"id": call.id, "type": call.kind, call.kind: named}
    extra = call.extra or {}
    if same:
        out.update(extra)
    elif signature := extra.get("thought_signature"):
        # https://ai.google.dev/gemini-api/docs/openai: where Google's own chat endpoint keeps it
        out["extra_content"] = {"google": {"thought_signature": signature}}
    return out


class Encoder:
    """One stream to one client."""

    __slots__ = ("shown", "same", "id", "created", "legacy_call", "_heads", "_opened", "_finished", "_custom", "_usage", "_done")

    object_ = "chat.completion.chunk"
    own_frames = b'"chat.completion.chunk"'          # what a raw frame must hold to be one of this format

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.same = shown.same
        self.id = chat_id(shown)
        self.created = shown.created
        self.legacy_call = legacy_calls(shown.request.body)
        self._heads: dict[int, bytes] = {}
        self._opened: set[int] = set()               # choices whose role is out
        self._finished: set[int] = set()
        self._custom: set[tuple[int, int]] = set()
        self._usage = False
        self._done = False

    def encode(self, events: list[ev.Event]) -> bytes:
        out: list[bytes] = []
        same, opened = self.same, self._opened
        for event in events:
            if type(event) is ev.Text and same and event.raw is not None and event.choice in opened:
                out += (DATA, event.raw, END)
            else:
                getattr(self, _WRITERS[type(event)])(event, out)
        return b"".join(out)

    # ------------------------------------------------------------------ one kind of event each
    def meta(self, event: ev.Meta, out: list[bytes]) -> None:
        if not self.same:
            return
        if event.id:
            self.id, self.created = event.id, event.created or self.created
            self._heads.clear()
        if event.raw is not None and self._is_own(event.raw):
            out += (DATA, event.raw, END)
            if event.raw.find(b'"role"') >= 0:
                self._opened.update(_choices(event.raw))

    def text(self, event: ev.Text, out: list[bytes]) -> None:
        if not self._passed(event.raw, event.choice, out) and event.text:
            self._member(event.choice, b'"content":' + _encode(event.text), out)

    def reasoning(self, event: ev.Reasoning, out: list[bytes]) -> None:
        if not self._passed(event.raw, event.choice, out) and event.text:
            self._member(event.choice, b'"reasoning_content":' + _encode(event.text), out)

    def refusal(self, event: ev.Refusal, out: list[bytes]) -> None:
        if not self._passed(event.raw, event.choice, out) and event.text:
            self._member(event.choice, b'"refusal":' + _encode(event.text), out)

    def opaque(self, event: ev.Opaque, out: list[bytes]) -> None:
        if event.wire == WIRE and not self._passed(event.raw, event.choice, out) and event.payload is not None:
            self._member(event.choice, _encode(event.kind) + b":" + dump(event.payload), out)

    def call(self, event: ev.ToolCall, out: list[bytes]) -> None:
        if self.legacy_call and event.kind == "function":
            if event.index == 0:
                self._member(event.choice, b'"function_call":' + dump({"name": event.name, "arguments": event.arguments}), out)
            return
        call = {"index": event.index, **call_json(event, event.arguments, self.same)}
        self._member(event.choice, b'"tool_calls":[' + dump(call) + b"]", out)

    def call_start(self, event: ev.ToolStart, out: list[bytes]) -> None:
        if event.kind == "custom":
            self._custom.add((event.choice, event.index))
        if self.legacy_call and event.kind == "function":
            if event.index == 0:
                self._member(event.choice, b'"function_call":' + dump({"name": event.name, "arguments": ""}), out)
            return
        call = {"index": event.index, **call_json(event, "", self.same)}
        self._member(event.choice, b'"tool_calls":[' + dump(call) + b"]", out)

    def call_args(self, event: ev.ToolArgs, out: list[bytes]) -> None:
        custom = (event.choice, event.index) in self._custom
        if self.legacy_call and not custom:
            if event.index == 0:
                self._member(event.choice, b'"function_call":{"arguments":%b}' % _encode(event.text), out)
            return
        field = b'"custom":{"input":' if custom else b'"function":{"arguments":'
        self._member(event.choice, b'"tool_calls":[{"index":%d,%b%b}}]' % (event.index, field, _encode(event.text)), out)

    def finish(self, event: ev.Finish, out: list[bytes]) -> None:
        if event.choice in self._finished:
            return
        self._finished.add(event.choice)
        reason = finish_for(event.reason, self.legacy_call)
        if self.same and event.raw is not None and self._is_own(event.raw):
            self._role(event.raw, event.choice, out)
            out += (DATA, _with_reason(event.raw, reason), END)
            return
        self._write([self.last(event.choice, reason)], None, out)

    def usage(self, event: ev.Usage, out: list[bytes]) -> None:
        if self._usage or not self.shown.include_usage:
            return
        self._usage = True
        if self.same and event.raw is not None and self._is_own(event.raw):
            out += (DATA, event.raw, END)
        else:
            self._write([], write_usage(event, self.same), out)

    def fault(self, event: ev.Fault, out: list[bytes]) -> None:
        if not self._done:
            self._done = True
            out.append(in_stream(event.error, self.shown))

    def end(self, event: ev.End, out: list[bytes]) -> None:
        if not self._done:
            self._done = True
            out.append(DONE)

    def nothing(self, event: ev.Event, out: list[bytes]) -> None:
        """An event that only the turn reads."""

    # ------------------------------------------------------------------ frames
    def last(self, choice: int, reason: str) -> Json:
        """The choice of a finish frame."""
        delta: Json = {} if choice in self._opened else {"role": "assistant", "content": ""}
        return {"index": choice, "delta": delta, "logprobs": None, "finish_reason": reason}

    def _passed(self, raw: bytes | None, choice: int, out: list[bytes]) -> bool:
        """Write the upstream's own frame, if there is one of this format."""
        if not self.same or raw is None or not self._is_own(raw):
            return False
        self._role(raw, choice, out)
        out += (DATA, raw, END)
        return True

    def _role(self, raw: bytes, choice: int, out: list[bytes]) -> None:
        """The first frame of a choice names the role; where the upstream's does not, one of ours goes before it."""
        if choice not in self._opened:
            if raw.find(b'"role"') < 0:
                self._member(choice, b'"content":""', out)
            self._opened.add(choice)

    def _is_own(self, raw: bytes) -> bool:
        return raw.find(self.own_frames) >= 0

    def _member(self, choice: int, member: bytes, out: list[bytes]) -> None:
        """A chunk whose delta has this member, and the role if it is the choice's first."""
        head = self._heads.get(choice)
        if head is None:
            around = {"id": self.id, "object": self.object_, "created": self.created, "model": self.shown.model}
            head = self._heads[choice] = DATA + dump(around)[:-1] + b',"choices":[{"index":%d,"delta":{' % choice
        if choice not in self._opened:
            self._opened.add(choice)
            member = b'"role":"assistant",' + member
        out += (head, member, b'},"finish_reason":null}]}\n\n')

    def _write(self, choices: list[Json], usage: Json | None, out: list[bytes]) -> None:
        chunk: Json = {"id": self.id, "object": self.object_, "created": self.created, "model": self.shown.model,
                       "choices": choices}
        if usage is not None:
            chunk["usage"] = usage
        out += (DATA, dump(chunk), END)


_WRITERS: Final[dict[type[ev.Event], str]] = {
    ev.Meta: "meta", ev.Text: "text", ev.Reasoning: "reasoning", ev.Refusal: "refusal", ev.Opaque: "opaque",
    ev.ToolCall: "call", ev.ToolStart: "call_start", ev.ToolArgs: "call_args", ev.ToolDelta: "nothing",
    ev.Finish: "finish", ev.Usage: "usage", ev.Fault: "fault", ev.End: "end",
}


def _with_reason(raw: bytes, reason: str) -> bytes:
    """The finish frame with this reason; the turn may have corrected the upstream's."""
    if raw.find(b'"finish_reason":"%b"' % reason.encode()) >= 0:
        return raw
    doc, _ = load(raw)
    doc["choices"][0]["finish_reason"] = reason
    return dump(doc)


def _choices(raw: bytes) -> list[int]:
    if raw.count(b'"index":0,') == 1 == raw.count(b'"index"'):
        return [0]
    return [choice["index"] for choice in load(raw)[0]["choices"]]


def _encode(text: str) -> bytes:
    try:
        return _strict(text)
    except UnicodeEncodeError:
        return dump(text)                        # half a surrogate pair stays an escape
