"""How does one attempt end? Limits, health and what is known of it change in one synchronous step, whatever the end was."""
import asyncio

from gateway.core.errors import GatewayError
from gateway.pipeline.hop import Hop
from gateway.pipeline.search import Search


async def tried(x: Hop, search: Search) -> GatewayError | None:
    """Try once and book the end. The failure, where another target may be asked instead; None: the client has an answer."""
    try:
        await search.way.go(x)
    except GatewayError as error:
        finish(x, error, search)
        return error
    except BaseException as end:
        abandon(x, end)
        raise
    finish(x, x.attempt.error, search)
    return None


def close(x: Hop, error: GatewayError | None, now: float) -> None:
    """What is known of an attempt at its end."""
    attempt = x.attempt
    attempt.ended, attempt.error = now, error
    attempt.first_token_at = x.first_token_at or 0.0
    if attempt.waiting_from:
        attempt.upstream_s += now - attempt.waiting_from
        attempt.waiting_from = 0.0
    cut = attempt.hedged or (error is not None and error.kind == "client_gone")
    attempt.usage = x.spent(cut)
    if cut and attempt.committed:
        x.call.usage = attempt.usage


def abandon(x: Hop, end: BaseException) -> None:
    """Book an attempt that nobody waits for any more (the client left, another target was first), or that failed in the gateway
    itself: nobody's failure."""
    attempt, ground, candidate = x.attempt, x.ground, x.lane.candidate
    now = ground.clock.now()
    if attempt.hedged:
        close(x, None, now)
        if x.first_token_at is None:
            ground.health.stats.waited(candidate, now - attempt.started, whole=not x.plan.request.stream)
    else:
        kind = "client_gone" if isinstance(end, asyncio.CancelledError) else "internal"
        close(x, GatewayError(kind, "ended before its turn was whole"), now)
    x.reservation.release(now)
    ground.health.released(candidate)
    x.let_go()


def finish(x: Hop, error: GatewayError | None, search: Search) -> None:
    """Book an attempt that came to an end of its own."""
    attempt, ground, candidate, walk = x.attempt, x.ground, x.lane.candidate, search.walk
    now = ground.clock.now()
    close(x, error, now)
    usage = x.call.usage
    if usage is not None and attempt.committed:
        x.reservation.settle(usage.input + usage.output, now)
    else:
        x.reservation.release(now)
    began = x.first_token_at
    if error is None:
        took_s = now - began if began is not None else 0.0
        ground.health.succeeded(candidate, now, first_s=began - attempt.started if began is not None else 0.0,
                                rate=usage.output / took_s if usage is not None and took_s > 0.05 else 0.0, tokens=walk.tokens,
                                whole=not x.plan.request.stream)
        walk.at(x.leg)
        walk.succeeded(candidate, now)
        x.let_go()
    elif error.kind == "client_gone":
        ground.health.released(candidate)
    else:
        ground.health.failed(candidate, error, now, ground.clock.wall(), committed=attempt.committed,
                             silent_s=(began or now) - attempt.started, overdue=x.overdue and not x.own_time,
                             tokens=walk.tokens)
