"""Who is it, and may they? Everything that refuses a request before anybody is asked."""
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy import access
from gateway.policy.keys import Principal
from gateway.policy.limits import Reservation
from gateway.tokens.estimate import estimate_request, reserve

SHED_RETRY_S = 1.0


def caller(call: Call, client: Client, ground: Ground) -> Principal:
    """Authenticate before the body is read. Raises unauthorized, forbidden or shed."""
    shed(ground)
    principal = identify(client, ground)
    if principal.anonymous:
        if not client.local or access.elsewhere(client.headers):
            raise GatewayError("forbidden", "Without client keys only this machine is served; configure [[auth.keys]].",
                               code="host_not_allowed")
        refused = access.browser_guard(client.headers, client.method, ground.snapshot.server.cors_allow_origins,
                                       call.operation == "transcriptions")
        if refused is not None:
            raise refused
    call.principal = principal.name
    return principal


def shed(ground: Ground) -> None:
    """Refuse what would only make everybody slower: too many at once, or a loop that is late already. Raises shed."""
    limits, inflight = ground.snapshot.limits, ground.inflight
    if inflight.closed:
        raise GatewayError("shed", "The gateway is shutting down.", retry_after_s=SHED_RETRY_S)
    if limits.max_inflight and inflight.count > limits.max_inflight:
        raise GatewayError("shed", f"The gateway serves {limits.max_inflight} requests at once and has no room for another now.",
                           retry_after_s=SHED_RETRY_S)
    if limits.max_lag_s and inflight.lag_s > limits.max_lag_s:
        raise GatewayError("shed", f"The gateway is busy: it answers {inflight.lag_s:.1f} s late.", retry_after_s=SHED_RETRY_S)


def identify(client: Client, ground: Ground) -> Principal:
    if client.principal is not None:
        return client.principal
    try:
        return ground.keys.authenticate(client.headers, client.query_key)
    except GatewayError:
        if client.keyless:
            return ground.keys.anonymous
        raise


async def stock(request: Request, principal: Principal, ground: Ground) -> None:
    """Where other processes share the limits: have enough of the key's at hand. ``request`` must follow at once."""
    await ground.limits.stock_key(principal, needed(request, ground))


def needed(request: Request, ground: Ground) -> int:
    """Tokens, before anybody knows."""
    return estimate_request(request, ground.calibration.factor(request.model)) + reserve(request.max_tokens)


def longest(request: Request, tokens: int) -> int:
    """All that was asked for; ``tokens``, set aside of the key's rate, hold one short answer and are corrected later."""
    n_each = reserve(request.max_tokens)
    return tokens - n_each + max(request.max_tokens or 0, n_each) * max(request.n, request.made, 1)


def request(request: Request, principal: Principal, client: Client, ground: Ground) -> Reservation:
    """Take the key's limits. Raises body_too_large (token budget) or limited; a refusal charges nothing."""
    tokens, budget = needed(request, ground), ground.snapshot.limits.request_max_tokens
    if budget and (most := longest(request, tokens)) > budget:
        raise GatewayError("body_too_large", f"This request may need about {most} tokens; the limit is {budget}.",
                           code="request_token_budget")
    now = ground.clock.now()
    if principal.limited:
        client.rate_headers = ground.limits.headers(principal, now)      # for the refusal, if it is one
    reservation = ground.limits.take(principal, tokens, now)
    client.rate_headers = reservation.headers
    return reservation
