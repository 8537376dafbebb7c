"""How does an Ollama stream become events, and how are events told to an Ollama client? One JSON object a line."""
from typing import Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire import splice
from gateway.wire.base import Shown
from gateway.wire.jsonl import line
from gateway.wire.lenient import dump, load
from gateway.wire.ollama.faults import fault_in, in_stream
from gateway.wire.ollama.reply import call_out, events_of
from gateway.wire.ollama.schema import GENERATE, Json, closing, stamp, stop_out
from gateway.wire.sse import CR

_PLAIN: Final = (ev.Text, ev.Reasoning)


class Decoder:
    """Lines -> events, for any cut of the bytes."""

    __slots__ = ("_same", "_model", "_limit", "_held", "_begun", "_n_calls")
    said = ""

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self._same = same
        self._model = model
        self._limit = max_frame_bytes
        self._held = b""
        self._begun = False
        self._n_calls = 0

    def feed(self, data: bytes) -> list[ev.Event]:
        *lines, self._held = (self._held + data).split(b"\n")
        if len(self._held) > self._limit:
            raise GatewayError("bad_reply", f"The provider sent a line of more than {self._limit} bytes.")
        out: list[ev.Event] = []
        for one in lines:
            self._line(one, out)
        return out

    def close(self) -> list[ev.Event]:
        out: list[ev.Event] = []
        last, self._held = self._held, b""
        self._line(last, out)
        return out

    def run(self, data: bytes) -> int:
        return 0

    def _line(self, raw: bytes, out: list[ev.Event]) -> None:
        raw = raw.strip()
        if not raw:
            return
        try:
            doc, exact = load(raw)
        except ValueError:
            raise GatewayError("bad_reply", "The provider sent a line that is not JSON.") from None
        if not isinstance(doc, dict):
            return
        error = fault_in(doc)
        if error is not None:
            out.append(ev.Fault(error))
            return
        if not self._begun:
            self._begun = True
            out.append(ev.Meta("", str(doc.get("model") or "")))
        found = events_of(doc, self._n_calls)
        self._n_calls += sum(isinstance(event, ev.ToolDelta) for event in found)
        if self._same and exact and found and CR not in raw:         # blank for JSON, but some clients end a line there
            if len(found) == 1 and isinstance(found[0], _PLAIN):
                found[0].raw = self._named(raw, doc)
            elif isinstance(found[-1], ev.End) and isinstance(found[0], ev.Finish):
                found[-1].raw = self._named(raw, doc)
        out += found

    def _named(self, raw: bytes, doc: Json) -> bytes | None:
        model = doc.get("model")
        if not self._model or model == self._model:
            return raw
        return splice.set_model(raw, model, self._model) if isinstance(model, str) else None


class Encoder:
    """One stream to one client."""

    __slots__ = ("_shown", "_lead", "_finish", "_usage")

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        # How every line begins; what it says follows.
        self._lead = dump({"model": shown.model, "created_at": stamp(shown.created)})[:-1] + b","
        self._finish: ev.Finish | None = None
        self._usage: ev.Usage | None = None

    def encode(self, events: list[ev.Event]) -> bytes:
        return b"".join([self._one(event) for event in events])

    def _one(self, event: ev.Event) -> bytes:
        raw = getattr(event, "raw", None)
        if raw is not None and self._shown.same and isinstance(event, _PLAIN):
            return line(raw)
        match event:
            case ev.Text() | ev.Refusal() if event.text and not event.choice:
                return self._say({"content": event.text})
            case ev.Reasoning() if event.text and not event.choice:
                return self._say({"content": "", "thinking": event.text})
            case ev.ToolCall() if not event.choice:
                return self._say({"content": "", "tool_calls": [call_out(event)]})
            case ev.Usage():
                self._usage = event
            case ev.Finish() if self._finish is None:
                self._finish = event
            case ev.End():
                return line(event.raw) if event.raw is not None and self._shown.same else self._last()
            case ev.Fault():
                return in_stream(event.error)
        return b""

    def _say(self, said: Json) -> bytes:
        if self._shown.operation == GENERATE:
            content: Json = {"response": said.pop("content")} | said
        else:
            content = {"message": {"role": "assistant", **said}}
        content["done"] = False
        return line(self._lead + dump(content)[1:])

    def _last(self) -> bytes:
        reason = self._finish.reason if self._finish else "stop"
        return line(self._lead + dump(empty(self._shown.operation) | {"done": True, "done_reason": stop_out(reason)}
                                      | closing(self._usage, self._shown.elapsed()))[1:])


def empty(operation: str) -> Json:
    """What the last line says beside its counts: nothing, in the form of its operation."""
    return {"response": "", "context": []} if operation == GENERATE else {"message": {"role": "assistant", "content": ""}}
