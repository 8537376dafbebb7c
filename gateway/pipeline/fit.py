"""Is a dialogue too long for whoever could answer it? Then, where the operator allows it, it is made to fit the largest window.

Whoever has room for all of it is asked first, as it was written. Only when nobody of those is left, it is made to fit the largest
window among those who can still be asked, then the next one. Where no window is known, the refusal tells. What was left out stands in
the record (``call.remarks``).
"""
import logging
from math import inf
from typing import Final

import msgspec

from gateway.core.call import Call, Remark
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan, replanned
from gateway.pipeline.shrink import reparsed
from gateway.routing.catalog import Target
from gateway.routing.walk import Walk
from gateway.tokens.estimate import CHARS_PER_TOKEN, estimate_request, reserve
from gateway.wire import history
from gateway.wire.gemini.keys import camel_keys
from gateway.wire.lenient import dump, load

log = logging.getLogger("gateway.fit")

ANSWER_SHARE: Final = 0.15                       # of a window, put aside for the answer …
ANSWER_LEAST, ANSWER_MOST = 256, 16_000          # … within these bounds
PASSES: Final = 3                                # how often the estimate may turn out too low


async def fitted(call: Call, plan: Plan, ground: Ground) -> Plan:
    """The plan with a shorter dialogue; the very same where somebody has room, or where leaving things out does not help."""
    room = widest(plan, ground)
    if plan.input_tokens + reserve(plan.request.max_tokens) <= room or plan.request.wire not in history.LISTS:
        return plan
    answer = max(min(max(int(room * ANSWER_SHARE), ANSWER_LEAST), ANSWER_MOST), reserve(plan.request.max_tokens))
    large, budget = len(plan.request.raw) > LARGE_BYTES, int(room) - answer
    try:
        made = await aside(shortened, call, plan, budget, ground) if large else shortened(call, plan, budget, ground)
    except (GatewayError, ValueError, RecursionError):
        log.exception("request %s cannot be made to fit", call.id)
        return plan
    if made is None:
        return plan
    request, found = made
    call.retold = True
    call.remarks += (Remark("context", "trimmed", found.messages + found.results + found.thoughts, f"left out: {found.words}"),)
    return replanned(plan, request, ground)


async def shorter(call: Call, plan: Plan, walk: Walk, ground: Ground) -> Plan | None:
    """Nobody is left who has room. The plan for the size that a refusal has taught, or for those who were not asked because of theirs.
    None: size is not what is wrong."""
    if ground.snapshot.context.overflow != "trim" or plan.told is not None:
        return None
    if any(attempt.error is not None and attempt.error.kind == "context_too_large" for attempt in call.attempts):
        made = await fitted(call, plan, ground)
        if made is not plan:
            return made
    smaller = left_out(walk, ground)
    if not smaller:
        return None
    rest = msgspec.structs.replace(plan, resolution=plan.resolution.only(smaller))
    made = await fitted(call, rest, ground)
    return made if made is not rest else None


def left_out(walk: Walk, ground: Ground) -> list[Target]:
    """Who could be asked now, were the dialogue not too long for him."""
    now, health = ground.clock.now(), ground.health
    found = dict.fromkeys(row.target for row in walk.rows(now) if row.reason == "too_large")
    return [target for target in found if any(health.cooldown(candidate, now) is None for candidate in target.candidates)]


def widest(plan: Plan, ground: Ground) -> float:
    """Tokens of the largest window among those who could answer, as far as is known."""
    learned, now = ground.health.learned, ground.clock.now()
    rooms = (min(target.room, learned.room(target, now) if learned.known else inf) for target in plan.resolution.targets)
    return max(rooms, default=inf)


def shortened(call: Call, plan: Plan, budget: int, ground: Ground) -> tuple[Request, history.Cut] | None:
    """A request of at most so many tokens, and what it lacks."""
    if budget <= 0:
        return None
    request, tokens, told = plan.request, plan.input_tokens, history.Cut(0)
    factor = ground.calibration.factor(request.model)
    for _ in range(PASSES):
        doc, _exact = load(request.raw)
        if request.wire == "gemini":
            doc = camel_keys(doc)
        found = history.cut(doc, request.wire, int((tokens - budget) * CHARS_PER_TOKEN / min(factor, 1.0)))
        if found.missing > 0:
            return None
        request = reparsed(call, request, dump(doc))
        tokens = estimate_request(request, factor)
        told = history.Cut(0, told.results + found.results, told.thoughts + found.thoughts, told.messages + found.messages)
        if tokens <= budget:
            return request, told
    return None
