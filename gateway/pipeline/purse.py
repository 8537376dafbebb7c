"""What may this request cost at most, and what has it cost? Set aside before anybody is asked, settled when it is over.

Aside is put the estimated input and the longest possible answer at the list price of the dearest target that may serve. Targets
whose price nobody knows are not asked for a caller with a budget, unless its key says otherwise.
"""
from typing import Final

import msgspec

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.keys import NANOS
from gateway.core.request import Request
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan
from gateway.policy.keys import Principal
from gateway.prices import Price, at, cost
from gateway.routing.catalog import Target
from gateway.routing.resolve import Resolution
from gateway.tokens.estimate import CHARS_PER_TOKEN
from gateway.wire.embeddings import CLIENTS as EMBEDDINGS

OUTPUT_UNKNOWN: Final = 8_192                        # of a model of which nobody says how long its answers may be
_SILENT: Final = frozenset({"embedding", "rerank", "moderation"})      # kinds whose answers cost no tokens
FREE: Final = Price()


async def reserve(call: Call, plan: Plan, principal: Principal, ground: Ground) -> Plan:
    """Set aside what the plan may cost. Returns the plan without targets that this caller may not spend on; raises budget."""
    needed = 0
    if principal.budgeted:
        if not principal.allow_unknown_price:
            plan = priced(plan)
        request = plan.request
        n_input = plan.input_tokens
        if request.operation in EMBEDDINGS:              # whose plan counts the longest of several texts
            n_input = max(n_input, request.chars // CHARS_PER_TOKEN)
        needed = most(plan, n_input)
        if ground.budgets.leases is not None:
            await ground.budgets.stock(principal.scopes, needed)
    call.hold = ground.budgets.reserve(principal.scopes, needed)
    return plan


def most(plan: Plan, n_input: int) -> int:
    """Of one answer; of a panel: as many as answer at once, the dearest of them, and the judge who reads them all."""
    request, resolution, brief = plan.request, plan.resolution, plan.brief
    if brief is None:
        return max((bound(target, n_input, request) for target in (*resolution.targets, *resolution.spare)), default=0)
    each = sorted((bound(target, n_input, request) for target in brief.targets), reverse=True)[:brief.k]
    if brief.best_of:
        return sum(each)
    n_read = n_input + brief.k * min(request.max_tokens or OUTPUT_UNKNOWN, OUTPUT_UNKNOWN)
    return sum(each) + max((bound(target, n_read, request) for target in brief.judges or brief.targets), default=0)


def priced(plan: Plan) -> Plan:
    """Only targets whose price is known. Raises budget when there is none."""
    resolution: Resolution = plan.resolution
    if plan.brief is not None and (brief := plan.brief.among(lambda target: price_of(target) is not None)).members:
        return msgspec.structs.replace(plan, brief=brief)
    known = tuple([target for target in resolution.targets if price_of(target) is not None])
    spare = tuple([target for target in resolution.spare if price_of(target) is not None])
    if plan.brief is None and len(known) == len(resolution.targets) and len(spare) == len(resolution.spare):
        return plan
    if not known or plan.brief is not None:
        raise GatewayError("budget", f"This client key has a budget, and nobody knows the price of {resolution.requested[:200]!r}; "
                           "the operator can state it (price = {input, output}), or allow_unknown_price for the key.",
                           param="model", code="price_unknown", status=402)
    return msgspec.structs.replace(plan, resolution=msgspec.structs.replace(resolution.only(known), spare=spare))


def price_of(target: Target) -> Price | None:
    return FREE if "demo" in target.provider.flags else target.model.price


def bound(target: Target, n_input: int, request: Request) -> int:
    """Nano-dollars of the longest answer that this target may give to so much input."""
    price, model = price_of(target), target.model
    if price is None:
        return 0
    rate = at(price, n_input)
    longest = model.max_output or (model.context or 0) - n_input
    silent = model.kind in _SILENT or request.operation in EMBEDDINGS
    n_each = 0 if silent else min(filter(None, (request.max_tokens, max(longest, 0))), default=OUTPUT_UNKNOWN)
    n_output = n_each * max(request.n, request.made, 1)
    usd = n_input * max(rate.input, rate.cache_write or 0.0) + n_output * max(rate.output, rate.reasoning or 0.0)
    return round(usd * NANOS / 1_000_000)


async def reaches(call: Call, ground: Ground) -> bool:
    """Before another attempt: what the last ones cost is gone. Raises budget when there is no room for one more."""
    hold = call.hold
    if hold is not None and call.attempts:
        hold.spend(sum(map(paid, call.attempts)) - hold.used)
        if ground.budgets.leases is not None and hold.reserved:
            await ground.budgets.stock(hold.scopes, 0)
        hold.again()
    return True


async def doubled(call: Call, ground: Ground) -> bool:
    """Is there money for a second attempt at the same time? Then it is set aside."""
    try:
        if call.hold is not None:
            if ground.budgets.leases is not None and call.hold.reserved:
                await ground.budgets.stock(call.hold.scopes, call.hold.reserved)
            call.hold.twice()
    except GatewayError:
        return False
    return True


def settle(call: Call) -> None:
    """The request is over, its attempts are charged."""
    hold = call.hold
    total, counted = 0, True
    for attempt in call.attempts:
        total += paid(attempt)
        counted = counted and (attempt.cost_usd is not None or attempt.price is None)
    if not counted:
        total = max(total, hold.reserved)            # an answer without counts: what was set aside stands
    hold.settle(total)


def paid(attempt: Attempt) -> int:
    """Nano-dollars, as far as is known."""
    usd = attempt.cost_usd if attempt.cost_usd is not None else cost(attempt.usage, attempt.price)
    return round(usd * NANOS) if usd else 0
