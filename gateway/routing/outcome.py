"""What do strategies and sessions learn from the end of an attempt? By the places that the walk went through."""
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.routing.families import plain, siblings
from gateway.routing.memory import Bound
from gateway.routing.places import Candidate, Leg, Target
from gateway.routing.strategies import auto
from gateway.routing.strategies.view import View

if TYPE_CHECKING:
    from gateway.routing.walk import Walk

COUNTING = frozenset({"least-used"})
BATCHING = frozenset({"round-robin", "weighted"})


def succeeded(walk: "Walk", candidate: Candidate, now: float) -> None:
    """Remember who answered: for the combo, for every combo inside that led here, for the session and the prompt's beginning."""
    view, leg = walk.view, walk.current
    assert view is not None
    if leg is None:
        return
    for scope_view, strategy, items, place in trail(walk, leg):
        memory, scope = scope_view.memory, scope_view.scope
        memory.good.put(scope, candidate.key)
        limit = scope_view.settings.sticky_limit
        if limit > 1 and strategy in BATCHING:
            name = place.step if strategy == "weighted" else place.place
            index = next((i for i, item in enumerate(items) if item.place == place.place), 0)
            memory.counted(scope, name, index, limit)
        if strategy in COUNTING:
            memory.used(f"{place.place}@{candidate.key[2]}")
        if strategy == "auto":
            auto.proved(candidate.target.provider.id, True, scope_view)
    ask = view.ask
    if ask.session and ask.relay:
        view.memory.served.put((view.scope, ask.session), Bound(candidate.key, candidate.target.label, now))
    if ask.session:
        view.memory.bind(view.scope, ask.session, Bound(candidate.key, candidate.target.label, now))
    if ask.prefix:
        view.memory.bind("*cache", ask.prefix, Bound(candidate.key, candidate.target.label, now))


def failed(walk: "Walk", candidate: Candidate) -> None:
    """A request is a request, whatever came of it; an excluded provider that fails again stays out for longer."""
    leg = walk.current
    if leg is None:
        return
    for view, strategy, _, place in trail(walk, leg):
        if strategy in COUNTING:
            view.memory.used(f"{place.place}@{candidate.key[2]}")
        if strategy == "auto":
            auto.proved(candidate.target.provider.id, False, view)


def trail(walk: "Walk", leg: Leg) -> list[tuple[View, str, Sequence[Leg], Leg]]:
    """(view, strategy, places, place) of every combo on the way to a place, the innermost first."""
    found: list[tuple[View, str, Sequence[Leg], Leg]] = []
    place = leg
    while (inside := walk.opened.get(place.place)) is not None:
        view, unit = inside
        assert unit.combo is not None
        found.append((view, unit.combo.strategy, unit.combo.items, place))
        place = unit
    assert walk.view is not None
    found.append((walk.view, walk.resolution.strategy, walk.resolution.legs, place))
    return found


def with_siblings(legs: Sequence[Leg], gone: Target) -> Sequence[Leg]:
    """The same, with the nearest sibling that the provider has behind the model that it does not know; each once."""
    have = {leg.target for leg in legs}
    for name in siblings(gone.model.id):
        for leg in gone.neighbours:
            if plain(leg.target.model.id) == plain(name) and leg.target not in have:
                at = max(i for i, each in enumerate(legs) if each.target is gone) + 1
                return [*legs[:at], leg, *legs[at:]]
    return legs
