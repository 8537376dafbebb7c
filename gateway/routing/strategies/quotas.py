"""Orders by what is left of quotas: headroom, soonest reset, and the score that weighs both. Unknown quotas keep their place."""
from collections.abc import Mapping
from math import inf
from typing import Final

from gateway.routing.places import Leg
from gateway.routing.quota import SESSION_S, WEEK_S, Standing, Used
from gateway.routing.strategies.view import Legs, View, apart, best_first

UNKNOWN: Final = 0.5
_UNTOLD: Final = {inf: "never asked: nobody knows its quota", -inf: "reset unknown, or used up"}


def headroom(legs: Legs, view: View) -> Legs:
    """Most left of the fullest window first; unknown means nothing used."""
    places = apart(legs)
    left = view.health.headrooms([leg.account for leg in places], view.now)
    if view.telling:
        view.why.update((leg.key, f"{rest:.0%} of its quota left") for leg, rest in zip(places, left, strict=True))
    return best_first(places, left)


def reset_aware(legs: Legs, view: View) -> Legs:
    """Best score first; accounts within a band of the best take turns."""
    places = apart(legs)
    scores = _reset_scores(places, view)
    if view.telling:
        view.why.update((leg.key, f"reset score {score:.3f}") for leg, score in zip(places, scores, strict=True))
    return _taking_turns(places, scores, view.settings.reset_tie_band, "reset-aware", view)


def reset_window(legs: Legs, view: View) -> Legs:
    """Soonest reset first, so that quota is used before it lapses; unknown or used up is last. Answers tell the quota, so who was
    never asked leads once: else whoever answers first would be the only one known."""
    places, names = apart(legs), view.settings.reset_windows
    if "weekly" in names:
        names = (*names, "daily")             # providers that state days instead of weeks: their day is the long window
    standings = _standings(places, view)
    soonest = [-inf if found is None or found.spent else -_soonest(found.resets, names) for found in standings]
    if None in standings:
        records = view.health.stats.each([leg.head for leg in places])
        soonest = [inf if found is None and record is None and leg.candidates else at
                   for at, found, record, leg in zip(soonest, standings, records, places, strict=True)]
    if view.telling:
        view.why.update((leg.key, _UNTOLD[at] if at in _UNTOLD else f"resets in {-at - view.now:.0f} s")
                        for leg, at in zip(places, soonest, strict=True))
    return _taking_turns(places, soonest, view.settings.reset_tie_s, "reset-window", view)


def _standings(places: list[Leg], view: View) -> list[Standing | None]:
    quotas = view.health.quotas
    return quotas.standings([leg.account for leg in places], view.now) if quotas else [None] * len(places)


def _taking_turns(places: list[Leg], values: list[float], band: float, name: str, view: View) -> list[Leg]:
    """Greatest value first; those within ``band`` of it take turns."""
    ordered = best_first(places, values)
    if len(ordered) < 2:
        return ordered
    best = max(values)
    n = sum(1 for value in values if value >= best - band)
    if n < 2:
        return ordered
    start = view.memory.turn(f"{name}:{view.scope}") % n
    return [*ordered[start:n], *ordered[:start], *ordered[n:]]


def _reset_scores(places: list[Leg], view: View) -> list[float]:
    """Of both windows: what is left, and the pressure on it. Nobody who used one up is asked before the others."""
    settings, now = view.settings, view.now
    total = settings.reset_session_weight + settings.reset_weekly_weight or 1.0
    k_session, k_long, guard = settings.reset_session_weight / total, settings.reset_weekly_weight / total, settings.exhaustion_guard
    scores: list[float] = []
    for found in _standings(places, view):
        if found is None or (found.session is None and found.long is None):
            scores.append(UNKNOWN)
            continue
        session, long = found.session, found.long
        if found.spent and max(used.share for used in (session, long) if used is not None) >= 1:
            scores.append(-inf)
            continue
        score = k_session * (UNKNOWN if session is None else _part(session, SESSION_S, 0.45, now)) \
            + k_long * (UNKNOWN if long is None else _part(long, WEEK_S, 0.25, now))
        if guard and session is not None and (left := 1 - session.share) < guard:
            score *= max(0.05, left / guard)
        scores.append(score)
    return scores


def _part(used: Used, window_s: float, share: float, now: float) -> float:
    """What is left, and the pressure on it: how much is used of what soon begins anew."""
    urgency, spent = 0.5, used.share
    if used.reset_at:
        urgency = 1 - (used.reset_at - now) / window_s
        urgency = 0.0 if urgency < 0.0 else 1.0 if urgency > 1.0 else urgency
    return share * (1 - spent) + (1 - share) * urgency * spent


def _soonest(resets: Mapping[str, float], names: tuple[str, ...]) -> float:
    soonest = inf
    for name in names:
        at = resets.get(name)
        if at is not None and at < soonest:
            soonest = at
    return soonest
