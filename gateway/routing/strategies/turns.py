"""Orders that share the load out: by turns, by weights, by lot, by the fewest requests."""
import math

from gateway.routing.places import Leg
from gateway.routing.strategies.view import Legs, View, apart, fronted


def round_robin(legs: Legs, view: View) -> Legs:
    """Rotate. With batches (``sticky_limit``), one place serves that many successes before the counter moves on."""
    limit, memory = view.settings.sticky_limit, view.memory
    if not legs:
        return legs
    if limit > 1:
        place, _ = memory.batches.get(view.scope, ("", 0))
        at = next((i for i, leg in enumerate(legs) if leg.key == place and view.selectable(leg)), None)
        start = memory.turns.get(view.scope, 0) % len(legs) if at is None else at
    else:
        start = memory.turn(view.scope) % len(legs)
    view.why[legs[start].key] = "its turn"
    return [*legs[start:], *legs[:start]]


def weighted(legs: Legs, view: View) -> Legs:
    """A step is drawn with the chance of its weight among those that may be asked; the rest follow by weight, or by tier."""
    steps: dict[str, list[Leg]] = {}
    for leg in legs:
        steps.setdefault(leg.step, []).append(leg)
    able = [step for step, places in steps.items() if any(map(view.selectable, places))] or list(steps)
    if not able:
        return legs
    drawn = _kept(able, view) or _drawn(able, [steps[step][0].weight for step in able], view)
    view.why[steps[drawn][0].key] = f"drawn with weight {steps[drawn][0].weight:g}"
    rest = [leg for leg in legs if leg.step != drawn]
    if not view.settings.tiered:
        rest.sort(key=lambda leg: -leg.weight)
    return [*steps[drawn], *rest]


def _kept(able: list[str], view: View) -> str | None:
    """The step of a running batch."""
    if view.settings.sticky_limit <= 1:
        return None
    step, _ = view.memory.batches.get(view.scope, ("", 0))
    if step and step not in able:
        view.memory.batches.pop(view.scope, None)
    return step if step in able else None


def _drawn(able: list[str], weights: list[float], view: View) -> str:
    total = math.fsum(weights)
    if total <= 0:
        return able[min(int(view.dice.random() * len(able)), len(able) - 1)]
    point = view.dice.random() * total
    for step, weight in zip(able, weights, strict=True):
        point -= weight
        if point < 0:
            return step
    return next(step for step, weight in zip(reversed(able), reversed(weights), strict=True) if weight > 0)


def random(legs: Legs, view: View) -> Legs:
    """Shuffled (Fisher-Yates, by the source that was handed in)."""
    mixed = list(legs)
    view.dice.shuffle(mixed)
    return mixed


def strict_random(legs: Legs, view: View) -> Legs:
    """A deck: each place leads once before any leads again; the others are shuffled."""
    if not legs:
        return legs
    mixed = list(legs)
    view.dice.shuffle(mixed)
    drawn = view.memory.draw(view.scope, [leg.key for leg in legs], [leg.key for leg in mixed])
    first = next(leg for leg in mixed if leg.key == drawn)
    view.why[first.key] = "drawn from the deck"
    return fronted(mixed, first)


def p2c(legs: Legs, view: View) -> Legs:
    """The better of two drawn by lot leads; the others keep their order."""
    n = len(legs)
    if n < 2:
        return legs
    one = view.dice.randrange(n)
    two = view.dice.randrange(n - 1)
    two += two >= one
    first, second = legs[one], legs[two]
    better = first if _promise(first, view) >= _promise(second, view) else second
    view.why[better.key] = f"the better of two drawn, the other was {(second if better is first else first).target.label}"
    return fronted(legs, better)


def _promise(leg: Leg, view: View) -> float:
    state = view.breaker(leg)
    if state == "open" or not view.selectable(leg):
        return -math.inf
    seen = view.health.stats.of(leg, view.now)
    quick = 0.25 if seen.mean_ms is None else 1 / math.log10(seen.mean_ms + 10)
    return (0.5 if seen.success is None else seen.success) + quick - (0.25 if state == "half-open" else 0.0)


def least_used(legs: Legs, view: View) -> Legs:
    """The account with the fewest requests at this place leads; equals as listed."""
    uses = view.memory.uses
    places = apart(legs)
    if view.telling:
        for leg in places:
            view.why[leg.key] = f"{uses.get(leg.key, 0)} requests so far"
    return sorted(places, key=lambda leg: uses.get(leg.key, 0))
