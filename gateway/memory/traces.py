"""What did a model say in a session that it wants back? By call id, and by turn where no tool was called. Bounded in every way.

Pure: times are handed in. A look-up in a session that nothing is known of is one dict access.
"""
from typing import Final

import msgspec

from gateway.core import events as ev
from gateway.core.bounded import LruMap
from gateway.memory.needs import Needs
from gateway.wire.anthropic.schema import safe_id
from gateway.wire.gemini.encoder import signature_of
from gateway.wire.openai_responses.schema import clamped

TTL_S: Final = 1_800.0
MAX_SESSIONS: Final = 1_000
MAX_TRACES: Final = 400                          # calls, and plain turns, of one session
MAX_CHARS: Final = 262_144                       # of one turn's reasoning; half a thought is worse than none
MAX_BYTES: Final = 64 << 20


class Trace(msgspec.Struct, frozen=True, gc=False):
    """``maker``: only whoever made it gets it back."""
    text: str
    maker: str

    @property
    def size(self) -> int:
        return len(self.text) + len(self.maker) + 100


class Notes:
    """What one turn says to its client, as far as it will be wanted back."""

    __slots__ = ("calls", "_needs", "_said", "_n_chars")

    def __init__(self, needs: Needs) -> None:
        self.calls: list[tuple[str, str]] = []       # (id, signature)
        self._needs = needs
        self._said: list[str] = []
        self._n_chars = 0

    def hear(self, events: list[ev.Event]) -> None:
        for event in events:
            kind = type(event)
            if kind is ev.Reasoning:
                if self._needs.reasoning and not event.choice and self._n_chars <= MAX_CHARS:  # type: ignore[attr-defined]
                    self._said.append(event.text)                                              # type: ignore[attr-defined]
                    self._n_chars += len(event.text)                                           # type: ignore[attr-defined]
            elif isinstance(event, (ev.ToolCall, ev.ToolStart)) and not event.choice and len(self.calls) < MAX_TRACES:
                self.calls.append((event.id, signature_of(event.extra or {}) if self._needs.signatures else ""))

    @property
    def reasoning(self) -> str:
        """All of it, or nothing."""
        text = "".join(self._said) if self._n_chars <= MAX_CHARS else ""
        return text if text.strip() else ""


class Session:
    """One session's traces. ``turns`` goes by how many turns of the model came before."""

    __slots__ = ("signatures", "thoughts", "turns", "touched", "size")

    def __init__(self) -> None:
        self.signatures: LruMap[str, Trace] = LruMap(MAX_TRACES)
        self.thoughts: LruMap[str, Trace] = LruMap(MAX_TRACES)
        self.turns: LruMap[int, Trace] = LruMap(MAX_TRACES)
        self.touched = 0.0
        self.size = 0

    def measured(self) -> int:
        return sum(trace.size for kept in (self.signatures, self.thoughts, self.turns) for trace in kept.values())


class Traces:
    """All sessions; the ones that were silent longest go first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._sessions: LruMap[str, Session] = LruMap(MAX_SESSIONS)
        self._max_bytes = max_bytes
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session: str, now: float) -> Session | None:
        """What is known of a session; being asked for keeps it alive."""
        found = self._sessions.get(session)
        if found is None:
            return None
        if now - found.touched > TTL_S:
            self._forget(session)
            return None
        found.touched = now
        self._sessions.move_to_end(session)
        return found

    def remember(self, session: str, notes: Notes, provider: str, model: str, turn: int, now: float) -> None:
        """Keep what a finished turn said. ``provider`` signs, ``model`` thinks; ``turn``: how many of the model's came before."""
        reasoning = notes.reasoning
        signed = [(id_, signature) for id_, signature in notes.calls if signature]
        if not (reasoning or signed):
            return
        found = self.find(session, now) or Session()
        for id_, signature in signed:
            for shown in shown_ids(id_):
                found.signatures.put(shown, Trace(signature, provider))
        if reasoning:
            trace = Trace(reasoning, model)
            for id_, _ in notes.calls:
                for shown in shown_ids(id_):
                    found.thoughts.put(shown, trace)
            if not notes.calls:
                found.turns.put(turn, trace)
        self._keep(session, found, now)

    def _keep(self, session: str, found: Session, now: float) -> None:
        found.touched = now
        self.n_bytes -= found.size
        found.size = found.measured()
        self.n_bytes += found.size
        if session not in self._sessions and len(self._sessions) >= self._sessions.limit:
            self._forget(next(iter(self._sessions)))
        self._sessions.put(session, found)
        while self._sessions and (self.n_bytes > self._max_bytes
                                  or now - next(iter(self._sessions.values())).touched > TTL_S):
            self._forget(next(iter(self._sessions)))

    def _forget(self, session: str) -> None:
        self.n_bytes -= self._sessions.pop(session).size


def shown_ids(call_id: str) -> set[str]:
    """The names under which a call may come back: some formats write ids their own way."""
    return {call_id, safe_id(call_id), clamped(call_id), clamped(safe_id(call_id))}
