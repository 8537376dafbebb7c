"""Orders by what is left of quotas: headroom, soonest reset, and the score that weighs both. Unknown quotas keep their place."""
import math
from collections.abc import Callable

from gateway.routing.places import Leg
from gateway.routing.quota import SESSION_S, WEEK_S, Used
from gateway.routing.strategies.view import Legs, View, apart

UNKNOWN = 0.5
# Providers that state days instead of weeks: their day is the long window.
_LONG = ("weekly", "daily")


def headroom(legs: Legs, view: View) -> Legs:
    """Most left of the fullest window first; unknown means nothing used."""
    places = apart(legs)
    left = {leg.key: view.health.headroom(leg.candidates[0], view.now) if leg.candidates else 0.0 for leg in places}
    if view.telling:
        for leg in places:
            view.why[leg.key] = f"{left[leg.key]:.0%} of its quota left"
    return sorted(places, key=lambda leg: -left[leg.key])


def reset_aware(legs: Legs, view: View) -> Legs:
    """Best score first; accounts within a band of the best take turns."""
    places = apart(legs)
    scores = {leg.key: _reset_score(_windows(leg, view), view) for leg in places}
    if view.telling:
        for leg in places:
            view.why[leg.key] = f"reset score {scores[leg.key]:.3f}"
    ordered = sorted(places, key=lambda leg: -scores[leg.key])
    return _taking_turns(ordered, "reset-aware", view, lambda leg, best: scores[best.key] - scores[leg.key]
                         <= view.settings.reset_tie_band)


def reset_window(legs: Legs, view: View) -> Legs:
    """Soonest reset first, so that quota is used before it lapses; unknown or used up is last."""
    places = apart(legs)
    at = {leg.key: _soonest(_windows(leg, view), view.settings.reset_windows) for leg in places}
    if view.telling:
        for leg in places:
            view.why[leg.key] = "reset unknown" if at[leg.key] == math.inf else f"resets in {at[leg.key] - view.now:.0f} s"
    ordered = sorted(places, key=lambda leg: at[leg.key])
    return _taking_turns(ordered, "reset-window", view, lambda leg, best: at[leg.key] - at[best.key] <= view.settings.reset_tie_s
                         if at[best.key] < math.inf else True)


def _windows(leg: Leg, view: View) -> dict[str, Used]:
    return view.health.quotas.get(leg.candidates[0].account_key, view.now) if leg.candidates else {}


def _taking_turns(ordered: list[Leg], name: str, view: View, near: Callable[[Leg, Leg], bool]) -> list[Leg]:
    """The places that are as good as the first (they stand together: the list is ordered) take turns."""
    n = next((at for at, leg in enumerate(ordered) if not near(leg, ordered[0])), len(ordered))
    if n < 2:
        return ordered
    start = view.memory.turn(f"{name}:{view.scope}") % n
    return [*ordered[start:n], *ordered[:start], *ordered[n:]]


def _reset_score(windows: dict[str, Used], view: View) -> float:
    session = windows.get("session")
    weekly = next((windows[name] for name in _LONG if name in windows), None)
    if session is None and weekly is None:
        return UNKNOWN
    if any(used.share >= 1 for used in (session, weekly) if used is not None):
        return -math.inf
    settings = view.settings
    total = settings.reset_session_weight + settings.reset_weekly_weight or 1.0
    score = (settings.reset_session_weight * _part(session, SESSION_S, 0.45, view.now)
             + settings.reset_weekly_weight * _part(weekly, WEEK_S, 0.25, view.now)) / total
    guard = settings.exhaustion_guard
    left = 1 - session.share if session is not None else 1.0
    return score * max(0.05, left / guard) if guard and left < guard else score


def _part(used: Used | None, window_s: float, share: float, now: float) -> float:
    """What is left, and the pressure on it: how much is used of what soon begins anew."""
    if used is None:
        return UNKNOWN
    left = 1 - used.share
    urgency = 0.5 if not used.reset_at else min(max(1 - (used.reset_at - now) / window_s, 0.0), 1.0)
    return share * left + (1 - share) * urgency * (1 - left)


def _soonest(windows: dict[str, Used], names: tuple[str, ...]) -> float:
    if any(used.share >= 1 for used in windows.values()):
        return math.inf
    wanted = {*names, "daily"} if "weekly" in names else set(names)
    return min((used.reset_at for name, used in windows.items() if name in wanted and used.reset_at), default=math.inf)


