"""What does a stream of Cohere's say? Server-sent events with typed JSON in, neutral events out."""
from collections.abc import Callable
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import redact
from gateway.wire.cohere.reply import call_of
from gateway.wire.cohere.schema import NAME, Json, ending, read_usage, string
from gateway.wire.lenient import load
from gateway.wire.sse import Frame, Splitter


class Decoder:
    """One stream; ``message-end`` says the reason and the counts, ``[DONE]`` that it is over."""

    __slots__ = ("_splitter", "_index", "_finished", "_ended")
    said = ""

    def __init__(self, max_frame_bytes: int) -> None:
        self._splitter = Splitter(max_frame_bytes)
        self._index = 0
        self._finished = self._ended = False

    def feed(self, data: bytes) -> list[ev.Event]:
        return self._events(self._splitter.feed(data))

    def close(self) -> list[ev.Event]:
        """Half an event at the end is a cut stream: the turn judges that by what is missing."""
        try:
            out = self._events(self._splitter.close())
        except GatewayError:
            out = []
        return out + self._end() if self._finished else out

    def run(self, data: bytes) -> int:
        return 0

    def _events(self, frames: list[Frame]) -> list[ev.Event]:
        out: list[ev.Event] = []
        for name, data in frames:
            if data.strip() == b"[DONE]":
                out += self._end()
                continue
            try:
                doc, _ = load(data)
            except ValueError:
                raise GatewayError("bad_reply", "The provider sent an event that is not JSON.") from None
            if isinstance(doc, dict):
                self._frame(string(doc.get("type")) or name or "", doc, out)
        return out

    def _frame(self, kind: str, doc: Json, out: list[ev.Event]) -> None:
        handle = _HANDLERS.get(kind)
        delta = doc.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        if handle is not None:
            message = delta.get("message")
            handle(self, doc, message if isinstance(message, dict) else delta, out)
        elif isinstance(said := doc.get("message") or doc.get("error"), str):
            out.append(ev.Fault(GatewayError("in_band", redact(said))))

    def _start(self, doc: Json, message: Json, out: list[ev.Event]) -> None:
        out.append(ev.Meta(string(doc.get("id"))))

    def _content(self, doc: Json, message: Json, out: list[ev.Event]) -> None:
        content = message.get("content")
        if not isinstance(content, dict):
            return
        if thought := string(content.get("thinking")):
            out.append(ev.Reasoning(thought))
        if text := string(content.get("text")):
            out.append(ev.Text(text))

    def _plan(self, doc: Json, message: Json, out: list[ev.Event]) -> None:
        if plan := string(message.get("tool_plan")):
            out.append(ev.Reasoning(plan))

    def _call(self, doc: Json, message: Json, out: list[ev.Event]) -> None:
        given: Any = message.get("tool_calls")
        index = doc.get("index")
        self._index = index if isinstance(index, int) else self._index
        for call in given if isinstance(given, list) else (given,):
            out += call_of(self._index, call)

    def _citation(self, doc: Json, message: Json, out: list[ev.Event]) -> None:
        out.append(ev.Opaque(NAME, "citations", message.get("citations")))

    def _last(self, doc: Json, message: Json, out: list[ev.Event]) -> None:
        self._finished = ending(message.get("finish_reason"), message.get("error"), out)
        if self._finished and (usage := read_usage(message.get("usage"))) is not None:
            out.append(usage)

    def _end(self) -> list[ev.Event]:
        if self._ended:
            return []
        self._ended = True
        return [ev.End()]


_HANDLERS: Final[dict[str, Callable[[Decoder, Json, Json, list[ev.Event]], None]]] = {
    "message-start": Decoder._start, "content-start": Decoder._content, "content-delta": Decoder._content,
    "tool-plan-delta": Decoder._plan, "tool-call-start": Decoder._call, "tool-call-delta": Decoder._call,
    "citation-start": Decoder._citation, "message-end": Decoder._last,
    "content-end": lambda *_: None, "tool-call-end": lambda *_: None, "citation-end": lambda *_: None,
    "debug": lambda *_: None,
}
