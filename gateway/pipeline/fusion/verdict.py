"""What does the client get of a panel? Calls that most of it made, a judge's synthesis, or the best of its answers.

    calls     members called tools: the set of calls that most of them agree on leaves as it came, and nobody judges
    judge     two answers or more: one of the named judges, or of those who answered, writes the answer; in the client's format
    best      one answer, or best_of, or a judge who fails before anything has left: the longest whole answer
"""
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.pipeline import attempts, guarding
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.attempt import Exchange, try_once
from gateway.pipeline.deliver import Client
from gateway.pipeline.fusion import frames, words
from gateway.pipeline.fusion.panel import Panel
from gateway.pipeline.fusion.seat import Draft, nothing_left, part
from gateway.pipeline.ground import Ground, Lane
from gateway.pipeline.prepare import Plan
from gateway.pipeline.search import Way
from gateway.pipeline.sinks import Sink, StreamSink, WholeSink
from gateway.routing.resolve import resolution
from gateway.stream import structured
from gateway.tokens.estimate import estimate
from gateway.wire.lenient import dump

MOST_JUDGES: Final = 6                               # attempts at a judge


async def told(panel: Panel) -> None:
    """Say the last word, or raise the failure of the whole panel."""
    drafts = panel.drafts
    if not drafts:
        raise panel.failure()
    calling = [draft for draft in drafts if draft.calls]
    answers = [draft for draft in drafts if draft.answers]
    if calling:
        await given(elected(calling, panel.plan.request.tools), "tool_call", panel)
    elif len(answers) < 2 or panel.brief.best_of:
        await given(best(drafts), "best", panel)
    else:
        await judged(answers, panel)


# ---------------------------------------------------------------- the panel's own words
def elected(calling: Sequence[Draft], tools: Mapping[str, Any]) -> Draft:
    """Whose calls most agree on; those that fit their schemas before all others, the earlier member before the later."""
    sets = [meant(draft.calls) for draft in calling]
    votes = Counter(sets)
    fits = [all(valid(call, tools) for call in draft.calls) for draft in calling]
    return calling[max(range(len(calling)), key=lambda n: (fits[n], votes[sets[n]], -n))]


def meant(calls: Sequence[ev.ToolCall]) -> tuple[tuple[str, str], ...]:
    """The same for sets of calls that do the same: ids, spaces and the order of keys say nothing."""
    return tuple(sorted((call.name, canonical(call)) for call in calls))


def canonical(call: ev.ToolCall) -> str:
    try:
        return json.dumps(json.loads(call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return call.arguments


def valid(call: ev.ToolCall, tools: Mapping[str, Any]) -> bool:
    schema = tools.get(call.name)
    if call.name not in tools or not schema or call.kind != "function" or len(call.arguments) > structured.MAX_CHECKED:
        return call.name in tools
    try:
        return not structured.violation(json.loads(call.arguments), schema)
    except (ValueError, RecursionError):
        return False


def best(drafts: Sequence[Draft]) -> Draft:
    """The longest that came to an end by itself; a refusal only if there is nothing else."""
    return max(drafts, key=lambda draft: (draft.answers, draft.whole, len(draft.text)))


async def given(draft: Draft, kind: str, panel: Panel) -> None:
    """A member's turn as the answer, in the client's format."""
    panel.kind = kind
    x = draft.x
    x.call.response_id, x.call.panel = panel.call.response_id, panel
    x.client, x.plan, x.same, x.whole, x.veil = panel.client, panel.plan, False, None, guarding.veiled((), panel.call)
    x.turn.touched = True
    await sink(x).close(list(draft.events))


# ---------------------------------------------------------------- the judge
async def judged(answers: Sequence[Draft], panel: Panel) -> None:
    call, ground = part(panel.call, "judge", panel.ground), panel.ground
    call.response_id, call.panel, panel.judge, panel.kind = panel.call.response_id, panel, call, "judge"
    call.guard = panel.call.guard                    # members are told and say placeholders; the answer has the caller's own values
    plan = await summoned(answers, panel)
    try:
        await attempts.run(call, plan, panel.client, ground, WAY)
    except GatewayError as error:
        if panel.client.committed or error.kind == "client_gone":
            raise
        await given(best(answers), "best", panel)


async def summoned(answers: Sequence[Draft], panel: Panel) -> Plan:
    """What the judges are asked by: they read more than the panel did, and call nothing."""
    plan, brief = panel.plan, panel.brief
    answered = [draft.x.lane.candidate.target for draft in answers]
    targets = brief.judges or tuple(dict.fromkeys([*answered, *brief.targets]))
    texts = [draft.text for draft in answers]
    request = plan.request
    sees = bool(request.images) and any(target.model.vision is not False for target in targets)
    opened, talk = panel.client.wire.open, panel.member_plan.request.conversation
    if talk is None:
        talk = await aside(opened, request) if len(request.raw) > LARGE_BYTES else opened(request)
    asks = words.told(request, talk, texts, sees)
    asked = msgspec.structs.replace(request, tools={}, tool_choice=None, images=request.images if sees else 0)
    n_tokens = plan.input_tokens + sum(map(estimate, texts)) + estimate(words.ROLE)
    return msgspec.structs.replace(plan, resolution=resolution(targets, "fusion", "target"), request=asked, told=asks, previous="",
                                   input_tokens=n_tokens, brief=None,
                                   rules=msgspec.structs.replace(plan.rules, tools={}, prompt_tokens=n_tokens))


class Verdict(Exchange):
    """One attempt of a judge."""

    __slots__ = ()

    def __init__(self, call: Call, attempt: Attempt, lane: Lane, plan: Plan, client: Client, ground: Ground) -> None:
        super().__init__(call, attempt, lane, plan, client, ground)
        attempt.role = "judge"
        self.same = False                            # what leaves is told anew: with other counts, and more beside it
        self.sink: Sink = sink(self)

    def elapsed(self) -> float:
        panel: Panel = self.call.panel
        return self.ground.clock.now() - panel.call.started


def sink(x: Exchange) -> "FusedStream | FusedWhole":
    return (FusedStream if x.plan.request.stream else FusedWhole)(x)


def fused(x: Exchange, out: list[ev.Event]) -> list[ev.Event]:
    """With the counts of everybody, and under one id."""
    panel: Panel = x.call.panel
    made: list[ev.Event] = []
    for event in out:
        if type(event) is ev.Usage:
            counted = panel.usage(None if panel.kind != "judge" else event)
            made.append(counted or event)
        elif type(event) is ev.Meta:
            made.append(ev.Meta("" if panel.shows else event.id, event.model, event.created))
        else:
            made.append(event)
    return made


class FusedStream(StreamSink):
    """Frames of the last word; what is told of the panel goes before them, in the same write."""

    __slots__ = ()

    async def push(self, out: list[ev.Event], now: float, more: bool = False) -> None:
        await super().push(fused(self.x, out) if out else out, now, more)

    async def close(self, out: list[ev.Event]) -> None:
        await super().close(fused(self.x, out) if out else out)

    async def _commit(self, now: float) -> None:
        await super()._commit(now)
        panel: Panel = self.x.call.panel
        panel.pending.append(frames.last_word(panel.kind, self.x.attempt))
        self._lead = panel.frames() + self._lead


class FusedWhole(WholeSink):
    """One body of the last word."""

    __slots__ = ()

    async def close(self, out: list[ev.Event]) -> None:
        await super().close(fused(self.x, out))

    def _body(self) -> bytes:
        body, panel = super()._body(), self.x.call.panel
        if not panel.shows or not body.endswith(b"}"):
            return body
        return body[:-1] + b"," + dump(frames.beside(panel, self.x.attempt))[1:]


WAY: Final = Way(Verdict, try_once, nothing_left, most=MOST_JUDGES)
