"""The story of one request: who asks, what is asked, who answers, what is kept. Read this first.

    admit     who is it, and may they?               401 403 503 leave here
    again     was it asked before?                   an answer that is kept is given again, and nothing else is done
    prepare   what is asked, and of whom?            400 404 422 leave here
    purse     what may it cost?                      429 leaves here
    admit     does it fit into their limits?         413 429 leave here
    attempts  one target after the other, until a turn is whole; nothing has left before its commit point
    record    always, whatever the end was

Errors are ``GatewayError`` and become a status line as long as nothing has left, an error in the surface's own words after.
A client that went away cancels this task, and with it whatever it waits for.
"""
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline import (
    admit,
    again,
    attempts,
    explaining,
    fit,
    fusion,
    guarding,
    prepare,
    purse,
    recall,
    record,
    retell,
    shrink,
)
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy.fields import bounded, vet
from gateway.policy.keys import Principal
from gateway.policy.limits import Reservation

log = logging.getLogger("gateway.serve")


class Story(msgspec.Struct, frozen=True):
    """The steps in which operations differ: what the body says, what follows from it, who answers."""
    parse: Callable[[Call, Client, bytes], Request] = prepare.parse
    plan: Callable[[Call, Request, Principal, Ground], prepare.Plan] = prepare.plan
    run: Callable[[Call, prepare.Plan, Client, Ground], Awaitable[None]] = attempts.run
    visit: Callable[[Call, Client, Principal, Ground, bytes], again.Visit | None] = again.visit


TURN: Final = Story()


async def serve(call: Call, client: Client, ground: Ground, story: Story = TURN) -> None:
    """Answer one request completely; raises nothing but cancellation."""
    reservation: Reservation | None = None
    visit: again.Visit | None = None
    ground.inflight.enter(call)
    try:
        principal = admit.caller(call, client, ground)
        body = await client.body(ground.snapshot.server.max_body_bytes)
        visit = story.visit(call, client, principal, ground, body)
        if visit is not None and await visit.known():
            return
        request = await asked(call, client, story, body)
        if visit is not None and await visit.same(request):
            return
        plan = await planned(call, request, principal, client, ground, story)
        if ground.limits.leases is not None:
            await admit.stock(request, principal, ground)
        reservation = admit.request(request, principal, client, ground)
        await (story.run if plan.brief is None else fusion.run)(call, plan, client, ground)
    except GatewayError as error:
        client.route_headers = explaining.headers(call, None, ground)
        await client.fail(error)
    except asyncio.CancelledError:
        call.outcome = "client_gone"
        raise
    except Exception:
        log.exception("request %s failed inside the gateway", call.id)
        await client.fail(GatewayError("internal", "The gateway failed on this request; its log has the details."))
    finally:
        asyncio.get_running_loop().call_soon(over, call, client, reservation, visit, ground)     # the answer's last bytes go first


def over(call: Call, client: Client, reservation: Reservation | None, visit: again.Visit | None, ground: Ground) -> None:
    """It has been answered, or nobody waits for it any more. Before anything else is read: what it took is given back then."""
    ground.inflight.leave(call)
    record.close(call, client, reservation, ground)
    if visit is not None:
        visit.leave()


async def asked(call: Call, client: Client, story: Story, body: bytes) -> Request:
    """What the body says; a large one is read off the loop."""
    return await aside(story.parse, call, client, body) if len(body) > LARGE_BYTES else story.parse(call, client, body)


async def vetted(request: Request, principal: Principal, ground: Ground) -> None:
    """Nothing in it chooses past the bounds of this caller."""
    raw, allowed = request.raw, ground.snapshot.limits.vendor_fields
    if len(raw) > LARGE_BYTES:
        await aside(vet, raw, principal, allowed)
    else:
        vet(raw, principal, allowed)


async def planned(call: Call, request: Request, principal: Principal, client: Client, ground: Ground, story: Story) -> prepare.Plan:
    """Who may answer it, under which rules, with what put aside for it."""
    if bounded(principal) or ground.snapshot.limits.request_max_tokens:
        await vetted(request, principal, ground)
    if request.images and (max_side := ground.snapshot.images.max_side):
        request = await prepare.smaller(call, client, request, max_side)
    if call.wire == "openai-responses":
        request = await recall.dialogue_of(call, request, ground)
    if ground.snapshot.compression.mode != "off":
        request = await shrink.shrunk(call, client, request, ground)
    plan = story.plan(call, request, principal, ground)
    if ground.guards is not None:
        plan = await guarding.guarded(call, plan, principal, client, ground, None if story.plan is prepare.plan else story.parse)
    if story.plan is prepare.plan:
        if retell.needed(plan, principal.manner, ground.snapshot.thinking):
            plan = await retell.retold(call, plan, client, ground, principal.manner)
        if ground.snapshot.context.overflow == "trim":
            plan = await fit.fitted(call, plan, ground)
        if plan.resolution.fusion:
            plan = await fusion.briefed(call, plan, principal, client, ground)
    return await purse.reserve(call, plan, principal, ground) if principal.scopes else plan
