"""What of earlier answers does this request need, and what of this answer will later ones need?

Before an attempt: the dialogue behind ``previous_response_id``, signatures and reasoning that a client dropped. After it: the same,
kept. Only what the client really got is kept. For nearly all models there is nothing to do, and nothing is done.
"""
import logging
from typing import TYPE_CHECKING

from gateway.core.call import Call
from gateway.core.ids import token
from gateway.core.request import Request
from gateway.memory import dialogue
from gateway.memory.needs import bare
from gateway.memory.remind import reminded, turns_before
from gateway.memory.traces import Session
from gateway.pipeline.ground import Ground
from gateway.routing.affinity import session_key

if TYPE_CHECKING:
    from gateway.pipeline.attempt import Exchange

log = logging.getLogger("gateway.recall")


async def dialogue_of(call: Call, request: Request, ground: Ground) -> Request:
    """The request with what was said before it; its response gets the id that it will be kept under. Raises 404."""
    if dialogue.stored(request):
        call.response_id = "resp_" + token(40)
    if not dialogue.stateful(request):
        return request
    return await dialogue.continued(request, call.principal, ground.responses)


def in_full(x: "Exchange") -> Request:
    """The request as this target needs it."""
    request, needs = x.plan.request, x.lane.needs
    if needs is None or not len(x.ground.traces):
        return request
    known: Session | None = x.ground.traces.find(session_of(x), x.ground.clock.now())
    if known is None:
        return request
    return reminded(request, known, needs, x.lane.to_whole, x.lane.wire.name)


def remember(x: "Exchange") -> None:
    """The turn has been told to its end."""
    if x.notes is not None:
        x.ground.traces.remember(session_of(x), x.notes, x.attempt.provider, bare(x.attempt.model),
                                 turns_before(x.plan.request), x.ground.clock.now())


def keep(x: "Exchange", body: bytes) -> None:
    """The response is about to be told whole."""
    call = x.call
    assert call.request is not None
    try:
        kept = dialogue.kept_of(call.response_id, call.request, body, owner=call.principal, created=call.wall,
                                target=x.attempt.label)
    except (ValueError, RecursionError):
        log.exception("the response %s cannot be kept", call.response_id)
    else:
        x.ground.responses.put(kept)


def unkeep(x: "Exchange") -> None:
    """… but its client was gone."""
    x.ground.responses.delete(x.call.principal, x.call.response_id)


def session_of(x: "Exchange") -> str:
    call = x.call
    if not call.session:
        call.session = session_key(x.client.headers, x.plan.request, call.principal)
    return call.session
