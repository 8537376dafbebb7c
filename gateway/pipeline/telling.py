"""What has the client been told so far, word for word? A stream that remembers its text, so that another target can go on with it.

Only plain text can be gone on with (``stream.resume``): a turn that called, refused or sent anything else breaks as it always does.
"""
from typing import TYPE_CHECKING, Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.pipeline.prepare import Plan
from gateway.pipeline.sinks import StreamSink
from gateway.routing.outcomes import OUTCOMES
from gateway.stream.resume import MAX_SENT

if TYPE_CHECKING:
    from gateway.pipeline.attempt import Exchange

# What a text may have had beside it: thoughts and openings are no part of it.
_SILENT: Final = frozenset({ev.Meta, ev.Reasoning, ev.Usage, ev.Finish, ev.End, ev.Fault})


def resumable(plan: Plan) -> bool:
    """May an answer to this be gone on with by somebody else, as far as the request says?"""
    request = plan.request
    return request.stream and request.n == 1 and plan.rules.format is None and plan.told is None


class Listener:
    """An encoder, and what it was given to write."""

    __slots__ = ("_encoder", "_texts", "n_chars", "plain")

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._texts: list[str] = []
        self.n_chars = 0
        self.plain = True

    def encode(self, events: list[ev.Event]) -> bytes:
        for event in events:
            kind = type(event)
            if kind is ev.Text:
                if self.n_chars <= MAX_SENT:
                    self._texts.append(event.text)               # type: ignore[attr-defined]
                    self.n_chars += len(event.text)              # type: ignore[attr-defined]
            elif kind not in _SILENT and getattr(event, "counts", True):         # edges of blocks are no answer
                self.plain = False
        return self._encoder.encode(events)                      # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def final(self) -> Any:
        return getattr(self._encoder, "final", None)


class Telling(StreamSink):
    """A stream that may be gone on with. Its failures after the commit point leave to the loop of attempts, untold."""

    __slots__ = ()
    listens = True
    encoder: Listener | None

    def __init__(self, x: "Exchange") -> None:
        super().__init__(x)

    async def _commit(self, now: float) -> None:
        await super()._commit(now)
        self.encoder = Listener(self.encoder)

    async def close(self, out: list[ev.Event]) -> None:
        fault = out[-1].error if out and type(out[-1]) is ev.Fault else None
        if fault is not None and OUTCOMES[fault.kind].moves_on:
            veil = self.x.veil
            await self.push(veil.cover(out)[:-1] if veil is not None else out[:-1], self.x.ground.clock.now())
            if self.may_go_on(fault):
                raise fault
            out = out[-1:]
        await super().close(out)

    def may_go_on(self, error: GatewayError) -> bool:
        heard = self.encoder
        return heard is not None and heard.plain and 0 < heard.n_chars <= MAX_SENT and OUTCOMES[error.kind].moves_on \
            and not self.x.turn.call_chars and not self.x.ground.inflight.draining

    async def told(self, error: GatewayError) -> None:
        """Nobody goes on: the client hears of it."""
        await super().close([ev.Fault(error)])
