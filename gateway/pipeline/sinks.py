"""In which form does an answer leave? As a stream of frames, or folded into one body.

Both are fed the events that the turn lets out. A stream commits with the first of them; a whole answer leaves at the end, so
any failure until then still moves on to another target.
"""
import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.pipeline import explaining, recall
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.hop import Hop
from gateway.wire.base import Shown
from gateway.wire.lenient import dump
from gateway.wire.splice import set_model

if TYPE_CHECKING:
    from gateway.pipeline.attempt import Exchange


class Sink(Protocol):
    """Where a turn's events go. ``model`` is the name that the client is shown ("" = the upstream's own), ``encoder`` who writes
    the frames of a stream that has begun to leave."""
    model: str
    encoder: Any
    listens: bool

    async def raw(self, data: bytes, now: float) -> None: ...

    def lead(self, data: bytes) -> None: ...

    async def push(self, out: list[ev.Event], now: float, more: bool = False) -> None: ...

    async def close(self, out: list[ev.Event]) -> None: ...

    def later(self, out: list[ev.Event]) -> None: ...

    async def broke(self, error: GatewayError) -> None: ...


class StreamSink:
    """Frames, as they may leave."""

    __slots__ = ("x", "model", "encoder", "_lead", "_ripe", "_task")
    listens = False                                  # must it see every frame, so that none may pass unread?

    def __init__(self, x: "Exchange") -> None:
        self.x = x
        self.model = shown_model(x)
        self.encoder: Any = None                     # an Encoder, from the commit point on
        self._lead = b""                             # goes before whatever is written next, in the same write
        self._ripe: list[ev.Event] = []              # let out by a timer, not yet written
        self._task: asyncio.Task[None] | None = None

    async def raw(self, data: bytes, now: float) -> None:
        if self._lead:
            data, self._lead = self._lead + data, b""
        await self.x.client.write(data, now)

    def lead(self, data: bytes) -> None:
        """Frames that passed unread, of a read whose rest says something else."""
        self._lead += data

    async def push(self, out: list[ev.Event], now: float, more: bool = False) -> None:
        """``more``: the rest of the same read follows at once, and leaves with this."""
        if not (out or self._lead or self._ripe):
            return
        x = self.x
        if not x.client.committed:
            await self._commit(now)
        elif not x.attempt.committed:
            return                                   # another target was first; this one's timer may still fire once
        if self._ripe:
            out, self._ripe = self._ripe + out, []
        if x.veil is not None:
            out = x.veil.cover(out)
        if x.notes is not None:
            x.notes.hear(out)
        data = self._lead + self.encoder.encode(out)
        self._lead = data if more else b""
        if data and not more:
            await x.client.write(data, now)

    def later(self, out: list[ev.Event]) -> None:
        """From a timer: write soon, and in any case before whatever the upstream says next."""
        if out:
            self._ripe = self._ripe + out
            self._task = asyncio.ensure_future(self._write_ripe())

    async def _write_ripe(self) -> None:
        try:
            if self._ripe:
                await self.push([], self.x.ground.clock.now())
        except GatewayError:
            pass                                     # the client is gone; the handler's own task is told by its connection

    async def close(self, out: list[ev.Event]) -> None:
        """The turn is over: its last events and the end of the stream leave in one write. Raises the turn's fault if
        nothing has left."""
        x = self.x
        if not out and x.turn.fault is not None and not x.client.committed:
            raise x.turn.fault
        if not x.client.committed:
            await self._commit(x.ground.clock.now())
        if out and type(out[-1]) is ev.Fault:
            x.attempt.error = x.call.error = out[-1].error
        if self._ripe:
            out, self._ripe = self._ripe + out, []
        if x.veil is not None:
            out = x.veil.cover(out)
        conclude(x, out)
        data = self._lead + self.encoder.encode(out)
        await told(x, x.client.end(data), getattr(self.encoder, "final", None) if x.call.response_id else None)

    async def broke(self, error: GatewayError) -> None:
        """The upstream failed after the commit: what is held leaves, then the failure in the surface's words."""
        out = self.x.turn.feed([ev.Fault(error)], self.x.ground.clock.now())
        await self.close(out or [ev.Fault(error)])

    async def _commit(self, now: float) -> None:
        x = self.x
        self.encoder = x.client.wire.encoder(shown(x, self.model))
        commit(x, now)
        await x.client.start()


class WholeSink:
    """One body, at the end."""

    __slots__ = ("x", "model", "events")
    encoder = None
    listens = False

    def __init__(self, x: "Exchange") -> None:
        self.x = x
        self.model = shown_model(x)
        self.events: list[ev.Event] = []

    async def raw(self, data: bytes, now: float) -> None:
        raise AssertionError("a whole answer has no fast lane")

    def lead(self, data: bytes) -> None:
        raise AssertionError("a whole answer has no fast lane")

    async def push(self, out: list[ev.Event], now: float, more: bool = False) -> None:
        self.events += out

    def gather(self, out: list[ev.Event]) -> None:
        """The last events: ``events`` is the whole turn now. Raises its fault."""
        x = self.x
        self.events += out
        if x.turn.fault is not None and (not self.events or type(self.events[-1]) is ev.Fault):
            raise x.turn.fault
        if x.veil is not None:
            self.events = x.veil.cover(self.events)
            x.turn.touched = x.turn.touched or x.veil.touched

    async def close(self, out: list[ev.Event]) -> None:
        x = self.x
        self.gather(out)
        large = x.whole is not None and len(x.whole) > LARGE_BYTES
        body = await aside(self._body) if large else self._body()
        commit(x, x.ground.clock.now())
        conclude(x, self.events)
        await told(x, x.client.answer(body), body)

    def _body(self) -> bytes:
        x, body = self.x, self._passing()
        if body is None:
            form = shown(x, self.model)
            form.touched = x.turn.touched
            body = x.client.wire.build_reply(fold(self.events), form, x.whole if x.same else None)
        return body

    def _passing(self) -> bytes | None:
        """The upstream's body with the client's name of the model, where nothing else has to change."""
        x, opening = self.x, self.events[0]
        if not x.same or x.whole is None or x.turn.touched or type(opening) is not ev.Meta or not opening.passes:
            return None
        return x.whole if self.model in ("", opening.model) else set_model(x.whole, opening.model, self.model)

    def later(self, out: list[ev.Event]) -> None:
        raise AssertionError("a whole answer commits at its end only")

    async def broke(self, error: GatewayError) -> None:
        raise error


def shown_model(x: "Exchange") -> str:
    """The model's name in the answer (stream.model_echo)."""
    echo = x.ground.snapshot.stream.model_echo
    if echo == "routed":
        return x.lane.to_whole.model
    return x.plan.request.model if echo == "requested" else ""


def shown(x: "Exchange", model: str) -> Shown:
    call, settings = x.call, x.ground.snapshot.stream
    return Shown(model=model or x.turn.upstream_model or x.lane.to_whole.model, request=x.plan.request, same=x.same,
                 id=call.id, kept_as=call.response_id,
                 created=int(call.wall), include_usage=x.plan.request.include_usage or settings.usage == "always",
                 done_after_error=settings.done_after_error, operation=call.operation, elapsed=x.elapsed)


def commit(x: Hop, now: float) -> None:
    """The commit point: from here on this target answers, and who was asked at the same time is left."""
    if x.race is not None:
        x.race.won(x, now)
    x.client.committed = x.attempt.committed = True
    x.client.route_headers = explaining.headers(x.call, x.attempt, x.ground)
    x.call.routed = x.attempt.label
    x.call.committed_at = now


async def told(x: "Exchange", sending: Awaitable[None], final: Any) -> None:
    """Send the end. What is kept for later requests is there when the client has it, and gone when the client was."""
    if not x.call.response_id or final is None:
        await sending
        return
    recall.keep(x, final if isinstance(final, bytes) else dump(final))
    try:
        await sending
    except BaseException:
        recall.unkeep(x)
        raise


def conclude(x: "Exchange", out: list[ev.Event]) -> None:
    """The turn's facts go onto the call; ``out`` is the last of it."""
    if x.notes is not None:
        x.notes.hear(out)
        recall.remember(x)
    turn, call, attempt = x.turn, x.call, x.attempt
    call.usage = attempt.usage = x.spent(cut=False)
    call.finish, call.first_token_at = turn.finish, turn.first_token_at or 0.0
    attempt.upstream_id = turn.upstream_id
    x.served(turn.upstream_model)
