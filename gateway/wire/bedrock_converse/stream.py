"""What does a ConverseStream say? Messages of a binary event stream in, neutral events out."""
from collections.abc import Callable
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.bedrock_converse.eventstream import Splitter
from gateway.wire.bedrock_converse.reply import ending, served
from gateway.wire.bedrock_converse.schema import NAME, Json, fault, read_usage
from gateway.wire.lenient import load


class Decoder:
    """One stream. The last two messages say the reason and the counts, in either order; then it is over."""

    __slots__ = ("_splitter", "_served", "_begun", "_finished", "_counted", "_ended")
    said = ""

    def __init__(self, max_frame_bytes: int) -> None:
        self._splitter = Splitter(max_frame_bytes)
        self._served: set[int] = set()               # blocks of tools that the service runs itself
        self._begun = False
        self._finished = self._counted = self._ended = False

    def feed(self, data: bytes) -> list[ev.Event]:
        out: list[ev.Event] = []
        for headers, payload in self._splitter.feed(data):
            self._message(headers, payload, out)
        return out

    def close(self) -> list[ev.Event]:
        """Half a message at the end is a cut stream: the turn judges that by what is missing."""
        return self._end() if self._finished else []

    def run(self, data: bytes) -> int:
        return 0

    def _message(self, headers: dict[str, str], payload: bytes, out: list[ev.Event]) -> None:
        kind = headers.get(":message-type", "event")
        if kind == "error":
            out.append(ev.Fault(fault(headers.get(":error-code", ""), headers.get(":error-message", ""))))
            return
        try:
            doc, _ = load(payload) if payload.strip() else ({}, True)
        except ValueError:
            raise GatewayError("bad_reply", "The provider sent a message that is not JSON.") from None
        if not isinstance(doc, dict):
            return
        if kind == "exception":
            said = doc.get("message") or doc.get("Message")
            out.append(ev.Fault(fault(headers.get(":exception-type", ""), said if isinstance(said, str) else "")))
            return
        if not self._begun:
            self._begun = True
            out.append(ev.Meta())
        handle = _HANDLERS.get(headers.get(":event-type", ""))
        if handle is not None:
            handle(self, doc, out)

    def _start(self, doc: Json, out: list[ev.Event]) -> None:
        start = doc.get("start")
        use = start.get("toolUse") if isinstance(start, dict) else None
        if not isinstance(use, dict):
            return
        index = _index(doc)
        if served(use):
            self._served.add(index)
            out.append(ev.Opaque(NAME, "server_tool_use", use))
        else:
            out.append(ev.ToolDelta(index, _string(use.get("toolUseId")), _string(use.get("name"))))

    def _delta(self, doc: Json, out: list[ev.Event]) -> None:
        delta = doc.get("delta")
        if not isinstance(delta, dict):
            return
        if isinstance(text := delta.get("text"), str):
            if text:
                out.append(ev.Text(text))
        elif isinstance(use := delta.get("toolUse"), dict):
            if (index := _index(doc)) not in self._served and isinstance(given := use.get("input"), str) and given:
                out.append(ev.ToolDelta(index, arguments=given))
        elif isinstance(thought := delta.get("reasoningContent"), dict):
            self._thought(thought, out)
        elif "citation" in delta:
            out.append(ev.Opaque(NAME, "citations", delta["citation"]))

    def _thought(self, said: Json, out: list[ev.Event]) -> None:
        text, signature, sealed = _string(said.get("text")), _string(said.get("signature")), _string(said.get("redactedContent"))
        if text or signature:
            out.append(ev.Reasoning(text, None, 0, signature or None))
        if sealed:
            out.append(ev.Reasoning("", None, 0, None, sealed))

    def _stop(self, doc: Json, out: list[ev.Event]) -> None:
        ending(doc.get("stopReason"), out)
        self._finished = True
        if self._counted:
            out += self._end()

    def _metadata(self, doc: Json, out: list[ev.Event]) -> None:
        if isinstance(usage := doc.get("usage"), dict):
            out.append(read_usage(usage))
        self._counted = True
        if self._finished:
            out += self._end()

    def _end(self) -> list[ev.Event]:
        if self._ended:
            return []
        self._ended = True
        return [ev.End()]


def _index(doc: Json) -> int:
    value = doc.get("contentBlockIndex")
    return value if isinstance(value, int) else 0


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


_HANDLERS: Final[dict[str, Callable[[Decoder, Json, list[ev.Event]], None]]] = {
    "contentBlockStart": Decoder._start, "contentBlockDelta": Decoder._delta, "messageStop": Decoder._stop,
    "metadata": Decoder._metadata,
}
