"""Is so much under way, or a request so heavy, that the order of its targets should be another one? Opt-in ([routing] volume).

    50 requests at once       the cheap targets take turns, the others follow
    10, and a light request   the cheapest first
    a critical request        the most capable first
"""
from typing import Final

import msgspec

from gateway.core.request import Request
from gateway.routing.ask import Ask, level
from gateway.routing.combos import Combo, unit
from gateway.routing.places import Leg
from gateway.routing.resolve import Resolution
from gateway.routing.traits import CHEAP

FLOOD: Final = 50
BUSY: Final = 10
MANY_TOOLS: Final = 8


def overridden(resolution: Resolution, request: Request, n_inflight: int) -> Resolution:
    """The resolution for a request that comes while ``n_inflight`` are under way, itself included; the same where all is quiet."""
    if resolution.fusion or any(leg.combo is not None for leg in resolution.legs):
        return resolution
    if n_inflight >= FLOOD:
        return _economy(resolution)
    asked = Ask(chars=request.chars, tools=len(request.tools), max_tokens=request.max_tokens or 0)
    heaviness = level(asked)
    if heaviness == "light" and n_inflight >= BUSY:
        return _reordered(resolution, "cost-optimized", resolution.legs)
    if heaviness == "critical" or len(request.tools) >= MANY_TOOLS or request.images:
        return _reordered(resolution, "priority", tuple(sorted(resolution.legs, key=_power)))
    return resolution


def _economy(resolution: Resolution) -> Resolution:
    cheap = tuple(leg for leg in resolution.legs if leg.target.traits.tier <= CHEAP)
    rest = sorted((leg for leg in resolution.legs if leg.target.traits.tier > CHEAP), key=lambda leg: leg.target.traits.cost)
    if not cheap:
        return _reordered(resolution, "round-robin", resolution.legs)
    scope = f"{resolution.scope}~economy"
    first = unit(Combo(scope, "round-robin", cheap), scope, 1.0)
    return _reordered(resolution, "priority", (first, *rest))


def _reordered(resolution: Resolution, strategy: str, legs: tuple[Leg, ...]) -> Resolution:
    """As a combo, so that whoever takes targets out of it later finds them in this order."""
    combo = resolution.combo
    combo = Combo(resolution.scope, strategy, legs, resolution.settings) if combo is None \
        else msgspec.structs.replace(combo, strategy=strategy, items=legs)
    return msgspec.structs.replace(resolution, strategy=strategy, legs=legs, combo=combo)


def _power(leg: Leg) -> float:
    return -leg.target.traits.power
