"""Orders that follow the list: as written, by what answered last, by what a model costs or holds. No chance in them."""
from math import inf

from gateway.routing.places import Leg
from gateway.routing.strategies.view import Legs, View, apart, fronted


def priority(legs: Legs, view: View) -> Legs:
    """As configured: the first that can, serves. ``fill-first`` and ``context-relay`` order alike: quotas make the first fill
    up, and the relay differs in what is told to the next model."""
    return legs


def lkgp(legs: Legs, view: View) -> Legs:
    """Last known good: the account that answered last, else the first place of its provider, leads."""
    good = view.memory.good.get(view.scope)
    if good is None:
        return legs
    places = apart(legs)
    first = next((leg for leg in places if leg.candidates and leg.candidates[0].key == good), None) \
        or next((leg for leg in places if leg.target.provider.id == good[0]), None)
    if first is None:
        return legs
    view.why[first.key] = "answered last"
    return fronted(places, first)


def cost_optimized(legs: Legs, view: View) -> Legs:
    """Cheapest input first; an unknown price is the last, zero the first, equals as listed."""
    if view.telling:
        for leg in legs:
            price = leg.target.traits.price
            view.why[leg.key] = "price unknown" if price is None else f"${price:g} per million input tokens"
    return sorted(legs, key=_price)


def _price(leg: Leg) -> float:
    price = leg.target.traits.price
    return inf if price is None else price


def context_optimized(legs: Legs, view: View) -> Legs:
    """Largest known context first; unknown last."""
    if view.telling:
        for leg in legs:
            view.why[leg.key] = f"context {leg.target.model.context}" if leg.target.model.context else "context unknown"
    return sorted(legs, key=lambda leg: -(leg.target.model.context or 0))


def cache_optimized(legs: Legs, view: View) -> Legs:
    """The account that saw this beginning of a prompt last has it in its cache; a healthy one leads."""
    held = view.memory.bound("*cache", view.ask.prefix, view.now, CACHE_S) if view.ask.prefix else None
    if held is None:
        return legs
    places = apart(legs)
    first = next((leg for leg in places if leg.candidates and leg.candidates[0].key == held.account), None)
    if first is None or not view.selectable(first):
        return legs
    view.why[first.key] = "holds the beginning of this prompt in its cache"
    return fronted(places, first)


CACHE_S = 300.0                               # how long providers keep a prompt that is not asked again
