"""Who goes on with an answer that broke off in the middle? The next target, from the text that was sent (``stream.resume``).

It is given the text as the beginning of its own answer where that is known to work (providers/prefill.py), else it is told to repeat
the last words and go on. What repeats is cut off (stream/resume.py); the client reads one answer. Who does not go on with it is left
and the next is asked; if nobody does, the failure is told as ever. The record has every attempt with what it took.
"""
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core import request as rq
from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.request import Conversation
from gateway.pipeline import guarding, purse
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.attempt import Exchange, try_once
from gateway.pipeline.booking import tried
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground, Lane
from gateway.pipeline.hop import Hop
from gateway.pipeline.prepare import Plan
from gateway.pipeline.search import Search, Way
from gateway.pipeline.sinks import conclude, told
from gateway.pipeline.telling import Listener, Telling
from gateway.providers.prefill import prefills
from gateway.routing.catalog import Target
from gateway.stream.resume import Joint, Strayed, anchor
from gateway.tokens.estimate import estimate

# What ends a text, or stands beside it. Openings and edges of blocks are the first target's, thoughts are behind it.
_SAYS: Final = frozenset({ev.Refusal, ev.ToolCall, ev.ToolStart, ev.ToolArgs, ev.Finish, ev.Usage, ev.End})
MOST: Final = 4                                      # targets that are asked to go on
GO_ON: Final = (
    "Your last message was cut off in the middle; the user has read it up to there. Go on exactly where it ends. Begin by repeating "
    "its last words, given here between the marks, letter by letter, and then continue, in the same language, form and tone, to the "
    "end of the answer. Do not begin anew, do not introduce or explain the continuation, do not apologise.\n"
    "<last_words>{}</last_words>")


def broken(failed: Sequence[tuple[Hop, GatewayError]]) -> tuple[Exchange, GatewayError] | None:
    """The attempt among these that broke in the middle of a text that can be gone on with."""
    for x, error in failed:
        if isinstance(x, Exchange) and x.attempt.committed and isinstance(x.sink, Telling) and x.sink.may_go_on(error):
            return x, error
    return None


async def carried_on(first: Exchange, why: GatewayError, search: Search) -> None:
    """Let others go on, or tell the client why nobody does."""
    call, ground, begun = search.call, search.ground, first.sink
    assert isinstance(begun, Telling)
    x: Hop = first
    error = why
    call.retold = True
    for _ in range(MOST):
        if error.kind == "client_gone" or ground.inflight.draining:
            break
        search.walk.at(x.leg)
        search.walk.failed(x.lane.candidate, error)
        if not await affordable(call, ground) or len(call.attempts) >= ground.snapshot.routing.max_attempts:
            break
        taken = await search.take(ground.clock.now())
        if taken is None:
            break
        talk = await dialogue(search)
        form = form_of(taken[0].target, talk)
        search.plan = going_on(begun, form, talk, search.plan)
        search.way = Way(partial(Onward, begun, form), try_once, nothing_left)
        x = search.begin(taken)
        failure = await tried(x, search)
        if failure is None:
            return
        error = failure
    if error.kind == "client_gone":
        raise error
    await begun.told(why)
    call.usage = together(call, first.attempt)


async def affordable(call: Call, ground: Ground) -> bool:
    try:
        return await purse.reaches(call, ground)
    except GatewayError:
        return False


async def dialogue(search: Search) -> Conversation:
    request, opened = search.plan.request, search.client.wire.open
    if request.conversation is None:
        request.conversation = await aside(opened, request) if len(request.raw) > LARGE_BYTES else opened(request)
    return request.conversation


def form_of(target: Target, talk: Conversation) -> str:
    """Who is to think takes no beginning: https://platform.claude.com/docs/en/build-with-claude/extended-thinking"""
    thought = talk.thought
    thinks = thought is not None and (thought.budget_tokens or thought.adaptive or thought.effort not in (None, "none"))
    return "" if thinks else prefills(target.provider, target.model)


def going_on(begun: Telling, form: str, talk: Conversation, plan: Plan) -> Plan:
    """The plan with what the next target is told."""
    request, heard, messages = plan.request, begun.encoder, list(talk.messages)
    assert heard is not None
    sent = guarding.told(begun.x.call, heard.text)
    if form:
        messages.append(rq.Message("assistant", [rq.Text(sent.rstrip() if form == "plain" else sent)],
                                   extra={"prefix": True} if form == "prefix" else {}))
    else:
        messages += [rq.Message("assistant", [rq.Text(sent)]), rq.Message("user", [rq.Text(GO_ON.format(anchor(sent)))])]
    made = msgspec.structs.replace(request, wire="", raw=b"", body=None, operation="chat",
                                   conversation=msgspec.structs.replace(talk, messages=messages))
    n_tokens = plan.input_tokens if plan.told is not None else plan.input_tokens + estimate(sent)
    return msgspec.structs.replace(plan, told=made, previous="", input_tokens=n_tokens,
                                   rules=msgspec.structs.replace(plan.rules, prompt_tokens=n_tokens))


async def nothing_left(x: Any) -> bool:
    return False


class Onward(Exchange):
    """An attempt to go on. What it says leaves through the stream that was begun."""

    __slots__ = ()

    def __init__(self, begun: Telling, form: str, call: Call, attempt: Attempt, lane: Lane, plan: Plan, client: Client,
                 ground: Ground) -> None:
        super().__init__(call, attempt, lane, plan, client, ground)
        attempt.role = "resumed"
        self.same = False
        self.notes = None                            # half an answer is no memory of a session
        self.sink = Joining(self, begun, form)


class Joining:
    """The rest of a text, joined to what was sent of it."""

    __slots__ = ("x", "model", "_begun", "_form", "_joint")
    encoder = None
    listens = True

    def __init__(self, x: Onward, begun: Telling, form: str) -> None:
        assert begun.encoder is not None
        self.x = x
        self.model = begun.model
        self._begun = begun
        self._form = form
        self._joint = Joint(begun.encoder.text, asked=not form, bare=form == "plain")

    @property
    def heard(self) -> Listener:
        assert self._begun.encoder is not None
        return self._begun.encoder

    async def raw(self, data: bytes, now: float) -> None:
        raise AssertionError("what goes on is read, every frame of it")

    def lead(self, data: bytes) -> None:
        raise AssertionError("what goes on is read, every frame of it")

    def later(self, out: list[ev.Event]) -> None:
        """A timer lets thoughts go: nobody waits for those."""

    async def push(self, out: list[ev.Event], now: float, more: bool = False) -> None:
        x = self.x
        events = self._joined(x.veil.cover(out) if x.veil is not None else out)
        data = self.heard.encode(events) if events else b""
        if data:                                     # an empty chunk would end the body
            x.attempt.committed = True
            await x.client.write(data, now)

    async def close(self, out: list[ev.Event]) -> None:
        x = self.x
        if x.veil is not None:
            out = x.veil.cover(out)
        fault = out[-1].error if out and type(out[-1]) is ev.Fault else x.turn.fault
        if fault is not None:
            if out:
                await self.push(out[:-1], x.ground.clock.now())
            if fault.kind != "empty" or not self._form or x.turn.reasoning_chars:
                raise fault
            # It was given the whole answer to go on with, and there was nothing to add.
            x.turn.fault, x.turn.finish = None, "stop"
            out = [ev.Finish("stop"), ev.Usage(), ev.End()]
        events = self._joined(out)
        x.attempt.committed = True
        first_token_at = x.call.first_token_at or self._begun.x.attempt.first_token_at
        conclude(x, events)
        x.call.first_token_at = first_token_at
        x.call.usage = together(x.call, x.attempt)
        for n, event in enumerate(events):
            if type(event) is ev.Usage:
                events[n] = x.call.usage
        final = self.heard
        data = final.encode(events)
        await told(self._begun.x, x.client.end(data), final.final if x.call.response_id else None)

    async def broke(self, error: GatewayError) -> None:
        await self.close(self.x.turn.feed([ev.Fault(error)], self.x.ground.clock.now()) or [ev.Fault(error)])

    def _joined(self, events: list[ev.Event]) -> list[ev.Event]:
        """Texts as far as they are new; nothing of the opening, and no thoughts behind the text that they led to."""
        out: list[ev.Event] = []
        try:
            for event in events:
                kind = type(event)
                if kind is ev.Text:
                    self._text(self._joint.feed(event.text), out)    # type: ignore[attr-defined]
                elif kind in _SAYS or (kind is ev.Opaque and event.counts):      # type: ignore[attr-defined]
                    if not self._joint.decided:
                        self._text(self._joint.end(), out)
                    out.append(event)
        except Strayed as away:
            raise GatewayError("format_ignored", f"{self.x.attempt.label} did not go on with the answer: {away}") from None
        return out

    def _text(self, text: str, out: list[ev.Event]) -> None:
        if text:
            out.append(ev.Text(text))


def together(call: Call, last: Attempt) -> ev.Usage:
    """What all attempts took that had a part in the answer."""
    found = [attempt.usage for attempt in call.attempts if attempt.usage is not None and (attempt.committed or attempt is last)]
    sums = {name: sum([getattr(one, name) for one in found]) for name in ("input", "output", "cached", "cache_write", "reasoning")}
    return ev.Usage(**sums, total=sums["input"] + sums["output"], estimated=any(one.estimated for one in found))
