"""Who is tried, in which order, for how long? One loop for every surface (contract 7).

Each failure before the commit point is booked (health, skip sets, trail) and the next candidate is tried, until one turn is
whole, the request itself is at fault, the time is up, or nobody is left. Then the last resort: an answer that was refused
only because a better one was hoped for (``Turn.salvage``), else the honest status.
"""
from typing import Final

import msgspec

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline import explaining, fit, handoff, hedge, purse, resume, shadow
from gateway.pipeline.asking import ask
from gateway.pipeline.attempt import Exchange, deliver_salvage, try_once
from gateway.pipeline.booking import tried
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.hop import Hop
from gateway.pipeline.mend import mended
from gateway.pipeline.patience import later
from gateway.pipeline.prepare import Plan
from gateway.pipeline.search import Search
from gateway.pipeline.search import Way as Way
from gateway.routing import exhaust
from gateway.routing.outcomes import REFUSED_KINDS
from gateway.routing.walk import Walk

SPARES: Final = 4          # turns kept for the last resort

TURN: Final = Way(Exchange, try_once, deliver_salvage, races=True)


async def run(call: Call, plan: Plan, client: Client, ground: Ground, way: Way = TURN) -> None:
    """Deliver an answer or raise the GatewayError that ends the request."""
    clock, settings = ground.clock, ground.snapshot.routing
    asked = ask(plan, call.principal, client, ground)
    plan = handoff.noticed(plan, asked, ground)
    walk = Walk(plan.resolution, plan.request, ground.health, plan.input_tokens, call.started, asked, settings.sticky_ttl_s)
    search = Search(call, plan, client, ground, way, walk)
    explaining.begin(search)
    if settings.shadow and way.races and not call.attempts:
        shadow.cast(search)
    spares: list[Hop] = []
    timed_out = alone = False
    most = min(settings.max_attempts, way.most)
    while len(call.attempts) < most and await purse.reaches(call, ground):
        now = clock.now()
        timed_out = search.overdue(now)
        taken = None if timed_out else await search.take(now) or await later(search)
        if taken is None:
            alone = not timed_out
            break
        x = search.begin(taken)
        after_s = hedge.delay_s(x, search) if settings.hedge == "race" else None
        if after_s is not None:
            failed = await hedge.race(x, after_s, search)
        else:
            error = await tried(x, search)
            failed = [(x, error)] if error is not None else []
        if not failed:
            return
        if ground.resumes and (broken := resume.broken(failed)) is not None:
            return await resume.carried_on(*broken, search)
        for each, error in failed:
            if judged(each, error, search):
                spares = [*spares, each][:SPARES]
    if await salvaged(spares, way):
        return
    if alone and (shorter := await fit.shorter(call, search.plan, walk, ground)) is not None:
        return await run(call, shorter, client, ground, way)
    raise nobody_left(search, timed_out)


async def salvaged(spares: list[Hop], way: Way) -> bool:
    """The last resort: the longest of the answers that were refused, as far as it is one."""
    for x in sorted(spares, key=lambda x: -x.said):
        if await way.salvage(x):
            return True
    return False


def judged(x: Hop, error: GatewayError, search: Search) -> bool:
    """What follows from a failure: True: somebody else is asked; False: the same, without what was refused. Raises what ends
    the request."""
    if not x.client.committed and (lighter := mended(x.plan.request, error)) is not None:
        search.plan = msgspec.structs.replace(search.plan, request=lighter)
        return False
    if hedge.final(error, x.client):
        raise blamed(search.call, error) from None
    search.walk.at(x.leg)
    search.walk.failed(x.lane.candidate, error)
    return True


def nobody_left(search: Search, timed_out: bool) -> GatewayError:
    clock, walk, attempts = search.ground.clock, search.walk, search.call.attempts
    now, wall = clock.now(), clock.wall()
    return exhaust.exhausted(attempts, walk, now, wall, timed_out) if attempts else walk.exhaustion(now, wall)


def blamed(call: Call, error: GatewayError) -> GatewayError:
    """What is told at the end: the first refusal of the request itself, where all targets refused it; else the last failure."""
    errors = [hop.error for hop in call.attempts if hop.error is not None]
    return errors[0] if all(one.kind in REFUSED_KINDS for one in errors) else error
