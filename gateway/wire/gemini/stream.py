"""What does a Gemini upstream's stream say? Server-sent events in, neutral events out.

There is no terminal: a stream that was closed after a finish reason is complete, any other was cut. Frames of one text, which are
nearly all, are read with a typed decoder; the rest as plain JSON (``frames.py``). Token counts stand in every frame and the last
ones hold, so they are told with the finish reason and after it only.
https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import redact
from gateway.wire.gemini.frames import Reader
from gateway.wire.lenient import load
from gateway.wire.sse import LF, Splitter

_NOTHING: Final = msgspec.Raw(b"")


class Part(msgspec.Struct, gc=False):
    text: str | None = None
    thought: bool = False
    thoughtSignature: str | None = None


class Content(msgspec.Struct, gc=False):
    parts: list[Part] = []


class Candidate(msgspec.Struct, gc=False):
    content: Content | None = None
    index: int = 0
    finishReason: str | None = None


class Frame(msgspec.Struct, gc=False):
    """Just enough to tell a frame of one text."""
    candidates: list[Candidate]
    usageMetadata: msgspec.Raw = _NOTHING
    modelVersion: str = ""
    responseId: str = ""
    error: Any = None


_frame: Final = msgspec.json.Decoder(Frame).decode
_encode: Final = msgspec.json.encode


class Decoder:
    """One stream (``wire.base.Decoder``)."""

    __slots__ = ("_split", "_read", "_usage", "_over", "_renames")
    said = ""

    def __init__(self, same: bool, model: str, max_frame_bytes: int) -> None:
        self._split = Splitter(max_frame_bytes)
        self._read = Reader(same, model)
        self._usage = _NOTHING                       # of the newest typed frame, still JSON
        self._over = False
        self._renames: dict[str, tuple[tuple[bytes, bytes], ...]] = {}

    def feed(self, data: bytes) -> list[ev.Event]:
        out: list[ev.Event] = []
        if not self._over:
            for _, frame in self._split.feed(data):
                self._take(frame, out)
                if self._over:
                    break
        return out

    def close(self) -> list[ev.Event]:
        """The upstream's EOF. A last frame that was cut is not told: the missing finish reason is what counts."""
        out: list[ev.Event] = []
        for _, frame in [] if self._over else self._split.close():
            try:
                load(frame)
            except ValueError:
                continue
            self._take(frame, out)
        if self._over:
            return out
        self._over = True
        self._open_usage()
        out += self._read.counted()
        if self._read.finished:
            out.append(ev.End())
        return out

    def run(self, data: bytes) -> int:
        """Never: token counts in every frame make no two alike."""
        return 0

    def _take(self, data: bytes, out: list[ev.Event]) -> None:
        event = self._typed(data, out)
        if event is not None:
            out.append(event)
            return
        if data.strip() == b"[DONE]":                # of servers that copy the format
            return
        try:
            doc, exact = load(data)
        except ValueError:
            doc, exact = None, False
        if isinstance(doc, list) and len(doc) == 1:
            doc, exact = doc[0], False
        if not isinstance(doc, dict):
            self._over = True
            said = redact(data[:200].decode("utf-8", "replace"))
            out.append(ev.Fault(GatewayError("bad_reply", f"The provider sent a stream frame that is not JSON: {said}")))
            return
        self._open_usage()
        try:
            out += self._read.frame(doc, data if exact and LF not in data else None)
        except (ValueError, RecursionError):
            out.append(ev.Fault(GatewayError("bad_reply", "The provider sent a stream frame that is nested too deeply.")))
        self._over = bool(out) and type(out[-1]) is ev.Fault

    def _typed(self, data: bytes, out: list[ev.Event]) -> ev.Text | ev.Reasoning | None:
        """The event of a frame that is one text or one thought and nothing else; None for any other."""
        try:
            frame = _frame(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        if len(frame.candidates) != 1 or frame.error:
            return None
        candidate = frame.candidates[0]
        content, read = candidate.content, self._read
        if candidate.finishReason is not None or content is None or len(content.parts) != 1 or candidate.index < 0:
            return None
        part = content.parts[0]
        if not part.text or part.thoughtSignature is not None or read.finished:
            return None
        raw: bytes | None = None
        if read.same:
            raw = data if not read.model or frame.modelVersion == read.model else self._renamed(data, frame.modelVersion)
            if raw is None or LF in raw or not _is_utf8(raw):
                return None
        read.begin(frame.responseId, frame.modelVersion, out)
        if frame.usageMetadata is not _NOTHING:
            self._usage = frame.usageMetadata
        return (ev.Reasoning if part.thought else ev.Text)(part.text, raw, candidate.index)

    def _open_usage(self) -> None:
        raw, self._usage = self._usage, _NOTHING
        if raw is not _NOTHING:
            usage, _ = load(bytes(raw))
            if isinstance(usage, dict) and usage:
                self._read.usage = usage

    def _renamed(self, data: bytes, model: str) -> bytes | None:
        """The upstream's own bytes with the client's name of the model; None where the bytes alone cannot tell its place."""
        needles = self._renames.get(model)
        if needles is None:
            old, new = _encode(model), _encode(self._read.model)
            needles = tuple((key + old, key + new) for key in (b'"modelVersion":', b'"modelVersion": '))
            if len(self._renames) < 4:
                self._renames[model] = needles
        for was, now in needles:
            if data.count(was) == 1:
                return data.replace(was, now)
        return None


def _is_utf8(data: bytes) -> bool:
    """msgspec checks the strings that it decodes only; a frame that leaves must be UTF-8 everywhere."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
