"""Nobody can be asked now: what is worth waiting for? A place, the end of a rest, or everybody once more; each bounded.

    a place      somebody's own limits are full: first come, first served
    everybody    all failed of what passes by itself: the whole set again (``max_set_retries``)
    a rest       the soonest cooldown ends: ``routing.wait_s`` in all, and a moment where nobody was asked yet
"""
import asyncio
from typing import Final

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.search import Search, Taken

SHORT_REST_S: Final = 1.5      # a refusal that says "in a second" is waited for, where all rest: a client would only ask again
LOOK_S: Final = 0.5            # somebody may be back earlier than was said
LEAST_S: Final = 0.01


async def later(search: Search) -> Taken | None:
    """Whoever can be asked after a wait; None = it is not worth it."""
    if search.walk.crowded():
        taken = await queued(search)
        if taken is not None or not search.ground.snapshot.routing.wait_s:
            return taken
    return await again(search) or await rested(search)


async def queued(search: Search) -> Taken | None:
    """Nobody else is left, but somebody only has no place just now: wait for one, first come, first served."""
    walk, ground = search.walk, search.ground
    for candidate in walk.crowded():
        settings, now = walk.settings(candidate), ground.clock.now()
        limits = search.wanted(candidate, now)
        wait_s = min(settings.queue_timeout_s, search.give_up_at - now)
        await ground.limits.stock(limits, walk.tokens)
        if await ground.limits.place(limits, wait_s, settings.queue_depth):
            now = ground.clock.now()
            try:
                taken = ground.limits.promised(limits, walk.tokens, now)
            except GatewayError:
                return None
            walk.forgive(candidate, now)
            return candidate, taken
    return None


async def again(search: Search) -> Taken | None:
    """All have failed: everybody whose failure may have passed once more, also while he rests for what we only guessed."""
    routing, own, now = search.ground.snapshot.routing, search.walk.resolution.settings, search.ground.clock.now()
    sets = routing.max_set_retries if own.max_set_retries is None else own.max_set_retries
    delay_s = routing.set_retry_delay_s if own.set_retry_delay_s is None else own.set_retry_delay_s
    while search.n_sets < sets and search.walk.passing and now + delay_s < search.give_up_at:
        search.n_sets += 1
        if not await pause(search, delay_s):
            return None
        now = max(search.ground.clock.now(), now + delay_s)
        search.walk.renew(excuse=True)
        if (taken := await search.take(now)) is not None:
            return taken
    return None


async def rested(search: Search) -> Taken | None:
    """Somebody who rests may be asked soon."""
    clock, routing = search.ground.clock, search.ground.snapshot.routing
    most_s = routing.wait_s - search.waited_s
    if not search.call.attempts:
        most_s = max(most_s, SHORT_REST_S)
    while most_s > 0:
        now = clock.now()
        rest_s = search.walk.soonest_retry(now)
        if rest_s is None or rest_s > most_s or now + rest_s >= search.give_up_at:
            return None
        step_s = max(min(rest_s, LOOK_S), LEAST_S)
        if not await pause(search, step_s):
            return None
        search.waited_s += step_s
        most_s -= step_s
        search.walk.renew()
        if (taken := await search.take(max(clock.now(), now + step_s))) is not None:
            return taken
    return None


async def pause(search: Search, seconds: float) -> bool:
    """Let time pass and keep the client company. False: the gateway stops, nothing is waited for any more."""
    client, ground, call = search.client, search.ground, search.call
    left_s = seconds
    while not ground.inflight.draining:
        await asyncio.sleep(min(left_s, LOOK_S))
        left_s -= LOOK_S
        if search.plan.request.stream:
            company(client, call, ground, ground.clock.now())
        if left_s <= 0:
            return True
    return False


def company(client: Client, call: Call, ground: Ground, now: float) -> None:
    """Nothing can be told yet to a client that wants a stream: whatever breaks the silence, where that is due."""
    timeouts = ground.snapshot.timeouts
    if timeouts.early_keepalive_s and now >= call.started + timeouts.early_keepalive_s:
        client.start_early(now)
    if client.started and timeouts.keepalive_s and now >= client.last_write + timeouts.keepalive_s:
        client.pulse(now)
