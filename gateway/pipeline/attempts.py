"""Who is tried, in which order, for how long? One loop for every surface (contract 7).

Each failure before the commit point is booked (health, skip sets, trail) and the next candidate is tried, until one turn is
whole, the request itself is at fault, the time is up, or nobody is left. Then the last resort: an answer that was refused
only because a better one was hoped for (``Turn.salvage``), else the honest status.
"""
import asyncio
from collections.abc import Awaitable, Callable, Hashable
from math import inf
from typing import Any, Final

import msgspec

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.pipeline import purse
from gateway.pipeline.asking import ask
from gateway.pipeline.attempt import Exchange, deliver_salvage, try_once
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.hop import Hop
from gateway.pipeline.mend import mended
from gateway.pipeline.prepare import Plan
from gateway.policy.limits import Reservation, Wanted
from gateway.providers.registry import Ceiling
from gateway.routing import exhaust
from gateway.routing.catalog import Candidate
from gateway.routing.outcomes import OUTCOMES, REFUSED_KINDS
from gateway.routing.walk import Walk

EXEMPT: Final = 2          # the first attempt and the first retry are always allowed, whatever they took (spec/streaming 2.1)
SPARES: Final = 4          # turns kept for the last resort
SHORT_REST_S: Final = 1.5  # a refusal that says "in a second" is waited for, where all rest: a client would only ask again


class Way(msgspec.Struct, frozen=True):
    """How one kind of operation is tried: what an attempt is, how it goes, and what is left of those that failed."""
    make: Callable[..., Any]
    go: Callable[[Any], Awaitable[None]]
    salvage: Callable[[Any], Awaitable[bool]]


TURN: Final = Way(Exchange, try_once, deliver_salvage)


async def run(call: Call, plan: Plan, client: Client, ground: Ground, way: Way = TURN) -> None:
    """Deliver an answer or raise the GatewayError that ends the request."""
    clock, settings = ground.clock, ground.snapshot.routing
    asked = ask(plan.request, plan.resolution, call.principal, client, settings.sticky_ttl_s > 0)
    call.strategy = plan.resolution.strategy
    walk = Walk(plan.resolution, plan.request, ground.health, plan.input_tokens, call.started, asked, settings.sticky_ttl_s)
    spares: list[Hop] = []
    timed_out = False
    give_up_at = call.started + settings.budget_s if settings.budget_s else inf
    while len(call.attempts) < settings.max_attempts and purse.reaches(call):
        now = clock.now()
        timed_out = len(call.attempts) >= EXEMPT and now >= give_up_at
        taken = None if timed_out else take(walk, ground, now) or await later(call, walk, ground, give_up_at)
        if taken is None:
            break
        candidate, reservation = taken
        x: Hop = way.make(call, begin(call, candidate, ground), ground.lane(candidate), plan, client, ground)
        bound(x, give_up_at if len(call.attempts) > EXEMPT and settings.hedge == "deadline" else inf, walk)
        try:
            await way.go(x)
        except GatewayError as error:
            finish(x, error, reservation, walk)
            if not client.committed and (lighter := mended(plan.request, error)) is not None:
                plan = msgspec.structs.replace(plan, request=lighter)
                continue
            if client.committed or error.kind == "client_gone" or not OUTCOMES[error.kind].moves_on:
                raise blamed(call, error) from None
            walk.failed(candidate, error)
            spares = [*spares, x][:SPARES]
        except BaseException as end:
            abandon(x, end, reservation)
            raise
        else:
            finish(x, x.attempt.error, reservation, walk)
            return
    for x in sorted(spares, key=lambda x: -x.said):
        if await way.salvage(x):
            return
    raise nobody_left(call, walk, ground, timed_out)


def nobody_left(call: Call, walk: Walk, ground: Ground, timed_out: bool) -> GatewayError:
    now, wall = ground.clock.now(), ground.clock.wall()
    if not call.attempts:
        return walk.exhaustion(now, wall)
    return exhaust.exhausted(call.attempts, walk, now, wall, timed_out)


def blamed(call: Call, error: GatewayError) -> GatewayError:
    """What is told at the end: the first refusal of the request itself, where all targets refused it; else the last failure."""
    errors = [hop.error for hop in call.attempts if hop.error is not None]
    return errors[0] if all(one.kind in REFUSED_KINDS for one in errors) else error


def take(walk: Walk, ground: Ground, now: float) -> tuple[Candidate, Reservation] | None:
    """The next candidate whose own limits have room."""
    while (candidate := walk.next(now)) is not None:
        try:
            return candidate, ground.limits.take_accounts(wanted(walk, candidate, ground, now), walk.tokens, now)
        except GatewayError as full:
            walk.busy(candidate, now + (full.retry_after_s or 1.0))
    return None


def wanted(walk: Walk, candidate: Candidate, ground: Ground, now: float) -> Wanted:
    """Every limit of an attempt: the operator's, those that refusals taught, the combo's own."""
    found: list[tuple[Hashable, Ceiling]] = [(candidate.account_key, candidate.target.provider.limits)]
    if (learned := ground.health.learned).known and (taught := learned.ceiling(candidate, now)) is not None:
        found.append((candidate.key, taught))
    if places := walk.settings(candidate).concurrency:
        found.append((("combo", walk.resolution.scope, candidate.key), Ceiling(concurrency=places)))
    return found


async def later(call: Call, walk: Walk, ground: Ground, give_up_at: float) -> tuple[Candidate, Reservation] | None:
    """Nobody can be asked now: is there somebody worth waiting for?"""
    if walk.crowded():
        return await queued(walk, ground, give_up_at)
    now = ground.clock.now()
    rest_s = None if call.attempts else walk.soonest_retry(now)
    if rest_s is None or rest_s > SHORT_REST_S or now + rest_s >= give_up_at:
        return None
    await asyncio.sleep(rest_s)
    return take(walk, ground, max(ground.clock.now(), now + rest_s))


async def queued(walk: Walk, ground: Ground, give_up_at: float) -> tuple[Candidate, Reservation] | None:
    """Nobody else is left, but somebody only has no place just now: wait for one, first come, first served."""
    for candidate in walk.crowded():
        settings, now = walk.settings(candidate), ground.clock.now()
        limits = wanted(walk, candidate, ground, now)
        wait_s = min(settings.queue_timeout_s, give_up_at - now)
        if await ground.limits.place(limits, wait_s, settings.queue_depth):
            now = ground.clock.now()
            try:
                taken = ground.limits.promised(limits, walk.tokens, now)
            except GatewayError:
                return None
            walk.forgive(candidate, now)
            return candidate, taken
    return None


def begin(call: Call, candidate: Candidate, ground: Ground) -> Attempt:
    target = candidate.target
    # key1, key2 … by first appearance in this request: no real ids leak
    number = call.accounts.setdefault((target.provider.id, candidate.account.ordinal), len(call.accounts) + 1)
    attempt = Attempt(label=target.label, provider=target.provider.id, model=target.model.id, key=number,
                      started=ground.clock.now(), price=target.model.price)
    call.attempts.append(attempt)
    return attempt


def bound(x: Hop, give_up_at: float, walk: Walk) -> None:
    """When an attempt is given up that has let nothing out: the request's time, or the combo's for one target."""
    x.commit_by = give_up_at
    own_s = walk.settings(x.lane.candidate).target_timeout_s
    if own_s and x.attempt.started + own_s < give_up_at:
        x.commit_by, x.own_time = x.attempt.started + own_s, True


def close(x: Hop, error: GatewayError | None, now: float) -> None:
    """What is known of an attempt at its end, whatever the end was."""
    attempt = x.attempt
    attempt.ended, attempt.error = now, error
    attempt.first_token_at = x.first_token_at or 0.0
    if attempt.waiting_from:
        attempt.upstream_s += now - attempt.waiting_from
        attempt.waiting_from = 0.0
    cut = error is not None and error.kind == "client_gone"
    attempt.usage = x.spent(cut)
    if cut and attempt.committed:
        x.call.usage = attempt.usage


def abandon(x: Hop, end: BaseException, reservation: Reservation) -> None:
    """Book an attempt that nobody waits for any more, or that failed in the gateway itself: nobody's failure."""
    now, gone = x.ground.clock.now(), isinstance(end, asyncio.CancelledError)
    close(x, GatewayError("client_gone" if gone else "internal", "ended before its turn was whole"), now)
    reservation.release(now)
    x.ground.health.released(x.lane.candidate)


def finish(x: Hop, error: GatewayError | None, reservation: Reservation, walk: Walk) -> None:
    """Book the end of an attempt. Synchronous: limits and health change in one step."""
    attempt, ground, candidate = x.attempt, x.ground, x.lane.candidate
    now = ground.clock.now()
    close(x, error, now)
    usage = x.call.usage
    if usage is not None and attempt.committed:
        reservation.settle(usage.input + usage.output, now)
    else:
        reservation.release(now)
    began = x.first_token_at
    if error is None:
        took_s = now - began if began is not None else 0.0
        ground.health.succeeded(candidate, now, first_s=began - attempt.started if began is not None else 0.0,
                                rate=usage.output / took_s if usage is not None and took_s > 0.05 else 0.0, tokens=walk.tokens)
        walk.succeeded(candidate, now)
        x.let_go()
    elif error.kind == "client_gone":
        ground.health.released(candidate)
    else:
        ground.health.failed(candidate, error, now, ground.clock.wall(), committed=attempt.committed,
                             silent_s=(began or now) - attempt.started, overdue=x.overdue and not x.own_time,
                             tokens=walk.tokens)
