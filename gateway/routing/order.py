"""In which order does this request go through the places of its name? Tags, strategy, session, fitness: one after the other.

    tags      places that carry the request's tags, if any does
    strategy  the table's; a pinned session skips it
    session   who answered this session last leads, while healthy and not nearly used up
    fitness   who would cut the answer or ignore its format comes last, never out
"""
from collections.abc import Sequence
from typing import Final

from gateway.core.request import Request
from gateway.routing.ask import Ask
from gateway.routing.memory import Bound
from gateway.routing.places import Candidate, Leg
from gateway.routing.resolve import Resolution
from gateway.routing.strategies import NOT_STICKY, STRATEGIES
from gateway.routing.strategies.view import View, fronted

SATURATED: Final = 0.15                       # headroom under which a session looks for somebody else
DURABLE_S: Final = 20.0                       # a rest longer than this ends a pin
DURABLE_LEVEL: Final = 2
_TERMINAL: Final = frozenset({"auth", "out_of_credits", "suspended"})


def ordered(resolution: Resolution, request: Request, view: View, ttl_s: float) -> Sequence[Leg]:
    """A permutation of the places; the view's ``why`` says what led to it."""
    ask, settings = view.ask, resolution.settings
    legs: Sequence[Leg] = tagged(resolution.legs, ask) if ask.tags else resolution.legs
    ttl_s = ttl_s if settings.sticky_ttl_s is None else settings.sticky_ttl_s
    bound = view.memory.bound(view.scope, ask.session, view.now, ttl_s) if ask.session and ask.answered and ttl_s else None
    pinned = pin(legs, bound, view) if settings.context_pin and bound is not None else None
    if pinned is not None:
        legs = fronted(legs, pinned)
    else:
        legs = STRATEGIES[resolution.strategy](legs, view)
        if bound is not None and resolution.strategy not in NOT_STICKY:
            legs = kept(legs, bound, view)
    if unfit(resolution, request):
        legs = sorted(legs, key=lambda leg: short(leg, request))
    return legs


def tagged(legs: Sequence[Leg], ask: Ask) -> Sequence[Leg]:
    """Places, and accounts of places, with all or any of the request's tags; tags that nobody carries mean nothing."""
    found: list[Leg] = []
    for leg in legs:
        if _carries(leg.tags, ask):
            found.append(leg)
        elif kept := tuple(c for c in leg.candidates if c.account.tags and _carries(leg.tags | c.account.tags, ask)):
            found.append(leg.among(kept))
    return found or legs


def _carries(tags: frozenset[str], ask: Ask) -> bool:
    return ask.tags <= tags if ask.tags_all else bool(ask.tags & tags)


def pin(legs: Sequence[Leg], bound: Bound, view: View) -> Leg | None:
    """The place of the session's last model, unless it is unwell for longer: then the strategy decides."""
    leg = next((leg for leg in legs if leg.combo is None and leg.target.label == bound.label), None)
    if leg is None or not leg.candidates or view.breaker(leg) == "open":
        return None
    if all(_durably_out(candidate, view) for candidate in leg.candidates):
        return None
    view.why[leg.key] = "this session is pinned to it"
    return leg


def _durably_out(candidate: Candidate, view: View) -> bool:
    found = view.health.cooldown(candidate, view.now)
    if found is None:
        return False
    return found.kind in _TERMINAL or found.until - view.now > DURABLE_S or view.health.level(candidate) >= DURABLE_LEVEL


def kept(legs: Sequence[Leg], bound: Bound, view: View) -> Sequence[Leg]:
    """The session's account leads if it may be asked and has quota left; else the session looks anew."""
    for leg in legs:
        if leg.combo is not None:
            continue
        candidate = next((c for c in leg.candidates if c.key == bound.account), None)
        if candidate is None:
            continue
        if not view.free(candidate) or view.breaker(leg) == "open":
            return legs
        if view.health.headroom(candidate, view.now) <= SATURATED:
            break
        first = leg if len(leg.candidates) == 1 else leg.alone(candidate)
        view.why[first.key] = "answered this session last"
        if first is leg:
            return fronted(legs, leg)
        return [first, *(other.without(candidate) if other is leg else other for other in legs)]
    view.memory.sessions.pop((view.scope, view.ask.session), None)
    return legs


def unfit(resolution: Resolution, request: Request) -> bool:
    """Can anybody of them fall short? Told by two numbers, so that most requests look at nobody."""
    return (request.max_tokens or 0) > resolution.least_output or (request.format is not None and not resolution.formats)


def short(leg: Leg, request: Request) -> int:
    """How much of what was asked this model would leave out; unknown abilities count as given."""
    model = leg.target.model
    lacks = int(bool(request.max_tokens and model.max_output and request.max_tokens > model.max_output))
    return lacks + int(request.format is not None and "response_format" in leg.target.provider.drop_params)


def shortcoming(leg: Leg, request: Request) -> str:
    """The same in words."""
    words = []
    if request.max_tokens and leg.target.model.max_output and request.max_tokens > leg.target.model.max_output:
        words.append(f"answers with {leg.target.model.max_output} tokens at most")
    if request.format is not None and "response_format" in leg.target.provider.drop_params:
        words.append("takes no response_format")
    return " and ".join(words)
