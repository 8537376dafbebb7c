"""How good is each candidate, between 0 and 1? The factors of ``auto``, their weights and the packs of weights.

The loop over candidates is the hot path of ``auto``: what does not change from request to request is added up once (``Sheet``), and
an optional factor without weight is not computed.
"""
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from gateway.routing.ask import least_tier, specificity, task
from gateway.routing.places import Key, Leg
from gateway.routing.stats import Stats
from gateway.routing.strategies.view import View, apart
from gateway.routing.traits import Traits

# The nine factors; the optional ones have no weight unless the operator gives them one.
WEIGHTS: Final[dict[str, float]] = {
    "health": .22, "quota": .17, "cost": .17, "latency": .13, "task_fit": .08, "specificity": .08, "stability": .05,
    "tier_priority": .05, "tier_affinity": .05, "context_affinity": 0.0, "reset_window": 0.0, "density": 0.0,
    "cache_affinity": 0.0,
}
PACKS: Final[dict[str, dict[str, float]]] = {
    "ship-fast": {"quota": .14, "health": .28, "cost": .05, "latency": .32, "task_fit": .10, "tier_priority": .05,
                  "context_affinity": .01, "density": .05},
    "cost-saver": {"quota": .14, "health": .19, "cost": .37, "latency": .05, "task_fit": .10, "stability": .05,
                   "tier_priority": .05, "density": .05},
    "quality-first": {"quota": .10, "health": .18, "cost": .05, "latency": .05, "task_fit": .37, "stability": .15,
                      "tier_priority": .05, "density": .05},
    "offline-friendly": {"quota": .37, "health": .28, "cost": .10, "latency": .05, "stability": .10, "tier_priority": .05,
                         "density": .05},
    "reliability-first": {"quota": .14, "health": .37, "cost": .04, "latency": .05, "task_fit": .10, "stability": .20,
                          "tier_priority": .05, "density": .05},
}
FACTORS: Final = tuple(WEIGHTS)
_HEALTH: Final = {"closed": 1.0, "degraded": 0.8, "half-open": 0.5, "open": 0.0}
_APART: Final = (1.0, 0.7, 0.3, 0.0)          # tier affinity by distance
_SOON_S: Final = 604_800.0
MAX_PLACES: Final = 2_000                     # of one order: the rest follows as listed


def clamp(value: float) -> float:
    """0 to 1; what is no number is 0, so that it cannot reorder anything by chance."""
    return 0.0 if value != value or value <= 0.0 else 1.0 if value > 1.0 else value


def normalised(given: Mapping[str, float], pack: str) -> dict[str, float]:
    """Weights that sum to 1: the operator's, else the pack's, else the usual ones. Nonsense is left out, not believed."""
    chosen = {name: value for name, value in given.items() if name in WEIGHTS and math.isfinite(value) and value > 0}
    chosen = chosen or PACKS.get(pack) or WEIGHTS
    total = math.fsum(chosen.values())
    return {name: chosen.get(name, 0.0) / total for name in FACTORS}


@lru_cache(maxsize=256)
def _weights(given: tuple[tuple[str, float], ...], pack: str) -> dict[str, float]:
    return normalised(dict(given), pack)


def weights_of(view: View) -> dict[str, float]:
    return _weights(tuple(view.settings.weights.items()), view.settings.mode_pack)


class Sheet(NamedTuple):
    """What does not change from one order of these places to the next: half of the score, and what the other half is looked up by."""
    legs: Sequence[Leg]
    weights: dict[str, float]
    places: list[Leg]                         # single accounts
    rest: list[Leg]                           # too many to be scored
    every: list[Traits]
    heads: list[Key]
    accounts: list[Key]
    known: list[float]


def sheet(legs: Sequence[Leg], view: View) -> Sheet:
    """Made once for a name, a task and a tier; made anew when the places or the weights are others."""
    w, ask = weights_of(view), view.ask
    on_task = view.settings.task or (task(ask.text, ask.intents) if w["task_fit"] and ask.text else "default")
    tiers = _tiers(view, w)
    name = (view.scope, on_task, tiers)
    held = view.memory.sheets.get(name)
    if isinstance(held, Sheet) and held.legs is legs and held.weights is w:
        return held
    places = apart(legs)
    places, rest = places[:MAX_PLACES], places[MAX_PLACES:]
    every = [leg.traits for leg in places]
    k_cost = w["cost"] / (max((traits.cost for traits in every), default=0.0) or 1.0)
    base = w["cost"] + w["latency"] + w["stability"]
    known = [base - k_cost * traits.cost + w["task_fit"] * traits.fits[on_task] + w["tier_priority"] * traits.tier_worth
             + w["density"] * traits.density + tiers[traits.tier] for traits in every]
    made = Sheet(legs, w, places, rest, every, [leg.head for leg in places], [leg.account for leg in places], known)
    if type(legs) is tuple:                   # a list is of this request alone
        view.memory.sheets.put(name, made)
    return made


def scores(given: Sheet, view: View) -> list[float]:
    """One score a place, in their order."""
    w, health, places = given.weights, view.health, given.places
    latency, spread = latencies(given.heads, given.every, health.stats)
    k_ms, k_spread = (w[name] / most if (most := max(each, default=0.0)) else 0.0
                      for name, each in (("latency", latency), ("stability", spread)))
    healthy, left = _healthy(places, view), health.headrooms(given.accounts, view.now)
    k_health, k_quota = w["health"], w["quota"]
    found = [known - k_ms * ms - k_spread * deviation + k_health * well + k_quota * rest
             for known, ms, deviation, well, rest in zip(given.known, latency, spread, healthy, left, strict=True)]
    if w["context_affinity"] or w["cache_affinity"] or w["reset_window"]:
        found = [score + _varying(leg, well, view, w) for score, leg, well in zip(found, places, healthy, strict=True)]
    return [score if 0.0 < score < 1.0 else clamp(score) for score in found]


def _healthy(places: Sequence[Leg], view: View) -> Sequence[float]:
    """1 closed to 0 open; who rests is 0. When nothing is wrong in the house, that is known once."""
    resting = view.resting
    if not resting and not view.health.breakers:
        return [1.0] * len(places)
    if not view.health.breakers:
        return [1.0 if leg.candidates and resting.isdisjoint(leg.candidates[0].keys) else 0.0 for leg in places]
    state: dict[str, float] = {leg.target.provider.id: _HEALTH[view.breaker(leg)] for leg in places}
    return [state.get(leg.target.provider.id, 1.0) if leg.candidates and resting.isdisjoint(leg.candidates[0].keys) else 0.0
            for leg in places]


def latencies(heads: Sequence[Key], every: Sequence[Traits], stats: Stats) -> tuple[list[float], list[float]]:
    """(p95, standard deviation) to the first token in milliseconds; the usual values until enough was measured."""
    p95s, spreads = list[float](), list[float]()
    for record, traits in zip(stats.each(heads), every, strict=True):
        told = record.latency() if record is not None else None
        if told is None:
            ms = traits.first_ms
            p95s.append(ms)
            spreads.append(0.1 * ms if ms > 100.0 else 10.0)
        else:
            p95s.append(told[0])
            spreads.append(told[1])
    return p95s, spreads


def _tiers(view: View, w: dict[str, float]) -> tuple[float, ...]:
    """What specificity and affinity give to each tier, for this request."""
    ask = view.ask
    wants = specificity(ask) if ask.text and (w["specificity"] or w["tier_affinity"]) else -1.0
    if wants < 0:
        return (0.5 * (w["specificity"] + w["tier_affinity"]),) * 4
    least = least_tier(wants, ask.tools)
    match = (0.9 if wants <= 15 else 0.2, 0.9 if 15 < wants <= 50 else 0.4, *(2 * (0.9 if wants > 50 else 0.3,)))
    return tuple([w["specificity"] * match[tier] + w["tier_affinity"] * _APART[abs(tier - least)] for tier in range(4)])


def _varying(leg: Leg, healthy: float, view: View, w: dict[str, float]) -> float:
    """Session, prompt cache and reset. Affinity yields to health: it is worth nothing at somebody who rests."""
    if not leg.candidates:
        return 0.0
    key = leg.candidates[0].key
    bound = view.memory.sessions.get((view.scope, view.ask.session)) if view.ask.session else None
    held = view.memory.sessions.get(("*cache", view.ask.prefix)) if view.ask.prefix else None
    session = 0.5 if bound is None else 1.0 if bound.account == key else 0.1
    cache = 1.0 if held is not None and held.account == key else 0.0
    reset = min((used.reset_at for used in view.health.quotas.get(leg.candidates[0].account_key, view.now).values()
                 if used.reset_at), default=0.0)
    soon = clamp(1 - (reset - view.now) / _SOON_S) if reset else 0.5
    return (w["context_affinity"] * session + w["cache_affinity"] * cache) * healthy + w["reset_window"] * soon
