"""``bandit``: who answers well most likely, judging by what was seen? Thompson sampling over success, speed and ability.

Each order draws the success rate of every account from its Beta distribution: who is proven leads, who is hardly known now and
then, who fails seldom. No separate exploration is needed.
"""
from math import exp
from typing import Final

from gateway.routing.places import Leg
from gateway.routing.stats import Record
from gateway.routing.strategies.view import Legs, View, apart

# reliability, speed, ability
WEIGHTS: Final[dict[str, tuple[float, float, float]]] = {
    "": (.5, .25, .25), "quality-first": (.35, .1, .55), "ship-fast": (.35, .55, .1), "reliability-first": (.7, .15, .15),
}
UNKNOWN_SPEED: Final = 0.6
_RATE: Final = 60.0                           # tokens a second that are two thirds of the best
_QUICK_MS, _SLOW_MS = 300.0, 5000.0
_PLENTY: Final = 0.2                          # quota left above which it does not matter
_LEAST: Final = 0.1


def bandit(legs: Legs, view: View) -> Legs:
    """Best draw first."""
    places = apart(legs)
    weights = WEIGHTS.get(view.settings.mode_pack, WEIGHTS[""])
    powers = [leg.target.traits.power for leg in places]
    low, high = min(powers, default=0.0), max(powers, default=0.0)
    wide = high - low
    drawn = [_draw(leg, weights, (power - low) / wide if wide else 1.0, view) for leg, power in zip(places, powers, strict=True)]
    order = sorted(range(len(places)), key=drawn.__getitem__, reverse=True)
    if view.telling:
        view.why.update((places[at].key, f"draw {drawn[at]:.3f}") for at in order)
    return [places[at] for at in order]


def _draw(leg: Leg, weights: tuple[float, float, float], able: float, view: View) -> float:
    if not leg.candidates:
        return 0.0
    candidate = leg.candidates[0]
    health = view.health
    record = health.stats.get(candidate.key)
    good, bad = record.counts(view.now) if record is not None else (0.0, 0.0)
    # Beta(1+s, 1) is a root of a uniform draw, which costs a fifth; most accounts have not failed lately.
    reliable = view.dice.betavariate(1 + good, 1 + bad) if bad else view.dice.random() ** (1 / (1 + good))
    score = weights[0] * reliable + weights[1] * speed(record) + weights[2] * able
    left = health.headroom(candidate, view.now)
    room = 1.0 if left >= _PLENTY else _LEAST + (1 - _LEAST) * max(left, 0.0) / _PLENTY
    level = health.level(candidate)
    return score * room * (1 - 0.06 * min(level, 10)) if level else score * room


def speed(record: Record | None) -> float:
    """Throughput and time to the first token, 0 to 1; one of them stands in for the other."""
    through = 1 - exp(-record.rate / _RATE) if record is not None and record.rate else None
    quick = None
    if record is not None and record.n:
        quick = min(max((_SLOW_MS - record.mean_ms) / (_SLOW_MS - _QUICK_MS), 0.0), 1.0)
    if through is None and quick is None:
        return UNKNOWN_SPEED
    if through is None or quick is None:
        return through if quick is None else quick  # type: ignore[return-value]
    return 0.6 * through + 0.4 * quick
