"""How does one try go? Send, judge the status, read the turn, let out what may leave.

Raises ``GatewayError`` if the attempt failed before the commit point: nothing has left, the next target may be asked. After
the commit point a failure is told to the client here and noted on the attempt.
"""
import asyncio
from math import inf
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.memory.traces import Notes
from gateway.pipeline import guarding, handoff, recall
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground, Lane
from gateway.pipeline.hop import Hop
from gateway.pipeline.linger import linger
from gateway.pipeline.prepare import Plan
from gateway.pipeline.sinks import Sink, StreamSink, WholeSink
from gateway.pipeline.source import Source
from gateway.pipeline.telling import Telling, resumable
from gateway.pipeline.tracing import carried
from gateway.providers.classify import classify, refine
from gateway.stream import usage
from gateway.stream.dialects import failed_generation
from gateway.stream.turn import Turn
from gateway.upstream.deadline import Deadline
from gateway.upstream.fetch import BYTES_ONLY, with_bytes
from gateway.upstream.guard import forwards, outgoing
from gateway.upstream.signed import Hidden
from gateway.upstream.transport import Outgoing, Reply
from gateway.wire.base import Outbound
from gateway.wire.change import changed

ERROR_BODY_LIMIT: Final = 65_536
GOODBYE_S: Final = 5.0                               # what may pass between a finish reason and the end of the stream
NO_ANSWER: Final = frozenset({204, 205})             # of those that mean success
LOST: Final = frozenset({"timeout", "transport", "truncated"})


class Exchange(Hop):
    """One attempt at a turn."""

    __slots__ = ("turn", "sink", "same", "whole", "notes", "veil")

    def __init__(self, call: Call, attempt: Attempt, lane: Lane, plan: Plan, client: Client, ground: Ground) -> None:
        super().__init__(call, attempt, lane, plan, client, ground)
        self.same = lane.wire.speaks(plan.request, lane.to_stream)
        self.turn = Turn(plan.rules, attempt.started)
        self.sink: Sink = (StreamSink if plan.request.stream else WholeSink)(self)
        if ground.resumes and resumable(plan):
            self.sink = Telling(self)
        self.whole: bytes | None = None              # the upstream's body, where it did not stream
        self.veil = guarding.veiled(lane.secrets, call)
        self.notes = Notes(lane.needs) if lane.needs is not None else None

    @property
    def first_token_at(self) -> float | None:
        return self.turn.first_token_at

    @property
    def silent(self) -> bool:
        return not self.turn.spoke

    @property
    def said(self) -> int:
        return self.turn.text_chars

    def spent(self, cut: bool) -> ev.Usage | None:
        """Of a turn that has not ended: what was seen of it. A failure that was told before any text cost nothing."""
        turn = self.turn
        n_chars = turn.text_chars + turn.call_chars
        if not turn.finish and (cut or n_chars + turn.reasoning_chars):
            return usage.spent(turn.usage, self.plan.rules.prompt_tokens, n_chars, turn.reasoning_chars)
        return turn.usage

    def let_go(self) -> None:
        super().let_go()
        del self.sink

    def tick(self, now: float) -> None:
        """The deadline's timer: keep a silent client company, let thinking go that was held long enough."""
        client, timeouts = self.client, self.ground.snapshot.timeouts
        if not client.committed:
            if now >= self.commit_by:
                self.overdue = True
                raise GatewayError("timeout", "the time for this request is over")
            self.sink.later(self.turn.tick(now))
            if timeouts.early_keepalive_s and self.plan.request.stream \
                    and now >= self.call.started + timeouts.early_keepalive_s:
                client.start_early(now)
        if timeouts.keepalive_s and not client.started:
            client.last_write = now
        if client.started and timeouts.keepalive_s and now >= client.last_write + timeouts.keepalive_s:
            client.pulse(now)
        self.schedule()

    def depart(self) -> None:
        """It goes out now."""
        self.schedule()
        self.asks()

    def schedule(self) -> None:
        """Ask for the next tick: the earliest moment at which ``tick`` could have something to do."""
        if not self.plan.request.stream and self.commit_by == inf:
            return
        client, settings, attempt = self.client, self.ground.snapshot, self.attempt
        timeouts, due = settings.timeouts, self.commit_by if not client.committed else inf
        if self.plan.request.stream:
            if timeouts.keepalive_s:                 # from the start on: the commit then needs no timer of its own
                due = min(due, (client.last_write or attempt.started) + timeouts.keepalive_s)
            if not client.committed and settings.stream.hold_max_s and not self.turn.committed:
                due = min(due, max(attempt.started + settings.stream.hold_max_s, self.ground.clock.now() + 1.0))
            if not client.started and timeouts.early_keepalive_s:
                due = min(due, self.call.started + timeouts.early_keepalive_s)
        assert self.deadline is not None
        self.deadline.wake_at(due)


async def try_once(x: Exchange) -> None:
    """Send the request to one candidate and deliver its turn."""
    lane, request = x.lane, x.plan.told or x.plan.request
    to = lane.to_stream if request.stream else lane.to_whole
    if request.conversation is None and request.wire != lane.wire.name:
        opening = x.client.wire.open
        request.conversation = await aside(opening, request) if len(request.raw) > LARGE_BYTES else opening(request)
    headers = lane.headers_stream if request.stream else lane.headers_whole
    if forwards(x.client.headers):
        headers = outgoing(lane.headers_account, x.client.headers, stream=request.stream)
    if x.ground.traced:
        headers = carried(x, headers)
    body = await written(x, to)
    out = Outgoing(method="POST", url=lane.url(request, to), body=body, headers=headers, timeouts=lane.timeouts, proxy=lane.proxy,
                   stream=request.stream)
    try:
        with Deadline(lane.timeouts, stream=request.stream, on_tick=x.tick) as x.deadline:
            x.depart()
            running = x.ground.inflight.attempts
            running.add(x.deadline)
            try:
                reply = await lane.transport.send(out)
                try:
                    await answered(x, reply)
                finally:
                    linger(reply, x.turn.done and x.turn.fault is None)
            finally:
                running.discard(x.deadline)
    except GatewayError as error:
        if error.kind == "client_gone":
            raise
        if x.turn.over and error.kind in LOST:
            await x.sink.close(await ending(x.turn, x.ground.clock.now()))
        elif x.client.committed:
            await x.sink.broke(error)
        else:
            raise


async def written(x: Exchange, to: Outbound) -> bytes:
    """The body for this target."""
    lane = x.lane
    asked = x.plan.told or (x.plan.request if lane.needs is None else recall.in_full(x))
    if x.plan.previous:
        asked = await handoff.relayed(x, asked)
    if lane.wire.name in BYTES_ONLY:
        asked = await with_bytes(asked, lane.wire.name, x.ground.fetcher)
    large = len(asked.raw) > LARGE_BYTES
    body = await aside(lane.wire.build_request, asked, to) if large else lane.wire.build_request(asked, to)
    return changed(body, lane.changes) if lane.changes else body


async def answered(x: Exchange, reply: Reply) -> None:
    """The status line is there: an error, or a turn to read."""
    x.attempt.status = reply.status
    x.attempt.headers_at = x.heard()
    assert x.deadline is not None
    x.deadline.headers()
    if x.ground.learns:
        x.ground.health.learn(x.lane.candidate, reply.headers, x.attempt.headers_at, x.ground.clock.wall())
    if reply.status >= 400:
        await refused(x, reply)
    elif not 200 <= reply.status < 300 or reply.status in NO_ANSWER:
        raise unanswered(reply.status)
    else:
        if type(reply) is Hidden and reply.secret:   # asked with a token that nobody knew before
            x.veil = guarding.veiled((*x.lane.secrets, reply.secret), x.call)
        await read_turn(x, Source(reply, x))


def unanswered(status: int) -> GatewayError:
    """A status that no answer has, whatever its body says: a redirect, another protocol, "no content"."""
    return GatewayError("bad_reply", f"The provider answered with the status {status}, which is no answer.", upstream_status=status)


async def read_turn(x: Exchange, source: Source) -> None:
    """Read until the turn is over; what may leave goes to the sink."""
    turn, sink, clock, deadline, attempt = x.turn, x.sink, x.ground.clock, x.deadline, x.attempt
    assert deadline is not None
    waiting = True                                   # for the first token
    while True:
        deadline.resume()
        attempt.waiting_from = began = clock.now()
        data = await source.chunk()
        deadline.pause()                             # what follows may wait for a slow client; that is not the upstream's silence
        now = clock.now()
        attempt.waiting_from = 0.0
        attempt.upstream_s += now - began
        if turn.fast and x.same and data and not sink.listens:
            n_used = source.run(data)
            if n_used:
                turn.run(source.said)
                if n_used == len(data):
                    await sink.raw(data, now)
                    continue
                sink.lead(data[:n_used])
                data = data[n_used:]
        large = x.whole is not None and len(x.whole) > LARGE_BYTES
        events = await aside(source.events, data) if large else source.events(data)
        if events and type(events[-1]) is ev.Fault:
            events[-1] = ev.Fault(refine(events[-1].error, x.lane.candidate.target.provider))
        out = turn.feed(events, now)
        if waiting and turn.spoke:                   # blanks alone keep nobody waiting for ever
            waiting = False
            deadline.token()
        if turn.done or not data:
            await sink.close(out + await ending(turn, now))
            return
        if turn.over:
            deadline.ending(GOODBYE_S)
        await sink.push(out, now, source.more)


async def ending(turn: Turn, now: float) -> list[ev.Event]:
    """The verdict, where feed has not given it; heavy repair or schema work is done off the loop."""
    return await asyncio.to_thread(turn.eof, now) if turn.heavy else turn.eof(now)


async def refused(x: Exchange, reply: Reply) -> None:
    """An HTTP error. One kind carries an answer: a call that the provider's own parser refused (``failed_generation``)."""
    body = await reply.read(ERROR_BODY_LIMIT)
    error = classify(reply.status, reply.headers, body, x.lane.candidate.target.provider)
    told: list[ev.Event] = rescued(error.extra, x.plan.rules.tools) if error.extra and x.plan.rules.rescue else []
    if not told:
        raise error
    await x.sink.close(x.turn.feed(told, x.ground.clock.now()))


def rescued(extra: dict[str, Any], tools: Any) -> list[ev.Event]:
    """The turn that an error's ``failed_generation`` is, or []."""
    parsed = failed_generation({"error": extra}, tools) if "failed_generation" in extra else None
    if parsed is None:
        return []
    text: list[ev.Event] = [ev.Text(parsed.text)] if parsed.text else []
    calls = [ev.ToolDelta(index=i, name=call.name, arguments=call.arguments, whole=True) for i, call in enumerate(parsed.calls)]
    return [*text, *calls, ev.Finish("tool_calls"), ev.End()]


async def deliver_salvage(x: Exchange) -> bool:
    """Nobody is left: deliver what this attempt had to say after all, if that is an answer (contract 7)."""
    events = x.turn.salvage(x.ground.clock.now())
    if not events:
        return False
    x.attempt.error = None
    await x.sink.close(events)
    return True
