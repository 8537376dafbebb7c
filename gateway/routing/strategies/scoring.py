"""How good is each candidate, between 0 and 1? The factors of ``auto``, their weights and the packs of weights.

The loop over candidates is the hot path of ``auto``: what does not change is taken from ``Target.traits``, and a factor without
weight is not computed.
"""
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from gateway.routing.ask import least_tier, specificity, task
from gateway.routing.places import Leg
from gateway.routing.stats import ENOUGH
from gateway.routing.strategies.view import View
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
_RESTING: Final = 0.0
_APART: Final = (1.0, 0.7, 0.3, 0.0)          # tier affinity by distance
_UNPRICED_USD: Final = 1.0
_SOON_S: Final = 604_800.0


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


def scores(places: Sequence[Leg], view: View) -> list[float]:
    """One score a place, in their order. Places are single accounts (``apart``)."""
    w = weights_of(view)
    latency, spread = latencies(places, view)
    costs = [_cost(leg) for leg in places]
    max_cost, max_ms, max_spread = max(costs, default=0.0), max(latency, default=0.0), max(spread, default=0.0)
    fixed = _Fixed(view, w)
    w_cost = w["cost"] / max_cost if max_cost else 0.0
    w_ms = w["latency"] / max_ms if max_ms else 0.0
    w_spread = w["stability"] / max_spread if max_spread else 0.0
    best = w["cost"] + w["latency"] + w["stability"]
    healthy, vary = _Health(view), fixed.varies
    w_health, w_quota = w["health"], w["quota"]
    found: list[float] = []
    for leg, cost, ms, deviation in zip(places, costs, latency, spread, strict=True):
        score = best - w_cost * cost - w_ms * ms - w_spread * deviation + fixed.of(leg.target.traits)
        score += w_health * healthy.of(leg) + w_quota * healthy.quota(leg)
        if vary:
            score += fixed.varying(leg, healthy.of(leg))
        found.append(clamp(score))
    return found


def latencies(places: Sequence[Leg], view: View) -> tuple[list[float], list[float]]:
    """(p95, standard deviation) to the first token in milliseconds; the usual values until enough was measured."""
    p95s: list[float] = []
    spreads: list[float] = []
    get = view.health.stats.get
    for leg in places:
        record = get(leg.candidates[0].key) if leg.candidates else None
        if record is None or not record.n:
            ms = leg.target.traits.first_ms
            p95s.append(ms)
            spreads.append(max(10.0, 0.1 * ms))
        elif record.n >= ENOUGH:
            p95s.append(record.p95_ms)
            spreads.append(record.spread_ms)
        else:
            p95s.append(record.mean_ms)
            spreads.append(record.spread_ms)
    return p95s, spreads


def _cost(leg: Leg) -> float:
    mix = leg.target.traits.mix
    return _UNPRICED_USD if mix is None else mix


class _Health:
    """Health and quota of accounts; when nothing is wrong in the house, that is known once."""

    __slots__ = ("_quiet", "_unmetered", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        health = view.health
        self._quiet = not health.resting and not health.breakers
        self._unmetered = not health.quotas and health.usage is None

    def of(self, leg: Leg) -> float:
        if self._quiet:
            return 1.0
        view = self.view
        state = _HEALTH[view.breaker(leg)]
        if state and leg.candidates and not view.free(leg.candidates[0]):
            return _RESTING
        return state

    def quota(self, leg: Leg) -> float:
        if self._unmetered or not leg.candidates:
            return 1.0
        return clamp(self.view.health.headroom(leg.candidates[0], self.view.now))


class _Fixed:
    """The factors that only the model and this request decide, kept a model; and those of the session, where they have weight."""

    __slots__ = ("_kept", "_session", "_tier", "_view", "_w", "_wants", "task", "varies")

    def __init__(self, view: View, w: dict[str, float]) -> None:
        ask = view.ask
        self._view, self._w = view, w
        self._kept: dict[int, float] = {}
        self.task = view.settings.task or (task(ask.text) if w["task_fit"] else "default")
        self._wants = specificity(ask) if ask.text and (w["specificity"] or w["tier_affinity"]) else -1.0
        self._tier = least_tier(self._wants, ask.tools) if self._wants >= 0 else -1
        self.varies = bool(w["context_affinity"] or w["cache_affinity"] or w["reset_window"])

    def of(self, traits: Traits) -> float:
        found = self._kept.get(id(traits))
        if found is None:
            w = self._w
            found = w["task_fit"] * traits.fit(self.task) + w["tier_priority"] * traits.tier_worth + w["density"] * traits.density
            found += w["specificity"] * self._match(traits.tier)
            found += w["tier_affinity"] * (0.5 if self._tier < 0 else _APART[abs(traits.tier - self._tier)])
            self._kept[id(traits)] = found
        return found

    def _match(self, tier: int) -> float:
        score = self._wants
        if score < 0:
            return 0.5
        if tier == 0:
            return 0.9 if score <= 15 else 0.2
        if tier == 1:
            return 0.9 if 15 < score <= 50 else 0.4
        return 0.9 if score > 50 else 0.3

    def varying(self, leg: Leg, healthy: float) -> float:
        """Session, prompt cache and reset. Affinity yields to health: it is worth nothing at somebody who rests."""
        view, w = self._view, self._w
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
