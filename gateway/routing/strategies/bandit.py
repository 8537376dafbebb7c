"""``bandit``: who answers well most likely, judging by what was seen? Thompson sampling over success, speed and ability.

Each order draws the success rate of every account from its Beta distribution: who is proven leads, who is hardly known now and
then, who fails seldom. No separate exploration is needed.
"""
from typing import Final

from gateway.routing.stats import UNKNOWN_PACE
from gateway.routing.strategies.view import Legs, View, apart, best_first

# reliability, speed, ability
WEIGHTS: Final[dict[str, tuple[float, float, float]]] = {
    "": (.5, .25, .25), "quality-first": (.35, .1, .55), "ship-fast": (.35, .55, .1), "reliability-first": (.7, .15, .15),
}
_PLENTY: Final = 0.2                          # quota left above which it does not matter
_LEAST: Final = 0.1


def bandit(legs: Legs, view: View) -> Legs:
    """Best draw first."""
    places, health = apart(legs), view.health
    k_reliable, k_pace, k_able = WEIGHTS.get(view.settings.mode_pack, WEIGHTS[""])
    powers = [leg.traits.power for leg in places]
    low, high = min(powers, default=0.0), max(powers, default=0.0)
    k_able, able = (k_able / (high - low), 0.0) if high > low else (0.0, k_able)
    rooms = health.headrooms([leg.account for leg in places], view.now)
    levels = health.levels
    drawn: list[float] = []
    for leg, record, power, left in zip(places, health.stats.each([leg.head for leg in places]), powers, rooms, strict=True):
        good, bad, pace = (*record.counts(view.now), record.pace()) if record is not None else (0.0, 0.0, UNKNOWN_PACE)
        # Beta(1+s, 1) is a root of a uniform draw, which costs a fifth; most accounts have not failed lately.
        reliable = view.dice.betavariate(1 + good, 1 + bad) if bad else view.dice.random() ** (1 / (1 + good))
        score = k_reliable * reliable + k_pace * pace + k_able * (power - low) + able
        if left < _PLENTY:
            score *= _LEAST + (1 - _LEAST) * max(left, 0.0) / _PLENTY
        if levels and (level := levels.get(leg.head)) is not None:
            score *= 1 - 0.06 * min(level[0], 10)
        drawn.append(score if leg.candidates else 0.0)
    if view.telling:
        view.why.update((leg.key, f"draw {score:.3f}") for leg, score in zip(places, drawn, strict=True))
    return best_first(places, drawn)
