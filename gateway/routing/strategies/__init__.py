"""In which order are the places of a name tried? STRATEGIES: one pure function each, over legs and one view of the house.

What a strategy returns is a permutation of the accounts that it was given: places that name several may be taken apart, nobody
is added, left out or doubled. Who rests is not left out either: the walk asks only who may be asked, at the moment of asking.
"""
from collections.abc import Callable
from typing import Final

from gateway.routing.strategies import auto, bandit, listed, quotas, turns
from gateway.routing.strategies.view import Legs, View

Strategy = Callable[[Legs, View], Legs]

STRATEGIES: Final[dict[str, Strategy]] = {
    "priority": listed.priority,
    "weighted": turns.weighted,
    "round-robin": turns.round_robin,
    "context-relay": listed.priority,
    "fill-first": listed.priority,
    "p2c": turns.p2c,
    "random": turns.random,
    "least-used": turns.least_used,
    "cost-optimized": listed.cost_optimized,
    "reset-aware": quotas.reset_aware,
    "reset-window": quotas.reset_window,
    "headroom": quotas.headroom,
    "strict-random": turns.strict_random,
    "auto": auto.auto,
    "lkgp": listed.lkgp,
    "context-optimized": listed.context_optimized,
    "fusion": listed.priority,                # the panel, as listed; its run is not this table's business
    "cache-optimized": listed.cache_optimized,
    "bandit": bandit.bandit,
}

# Other names for them; anything unknown means priority.
ALIASES: Final[dict[str, str]] = {
    "usage": "least-used", "context": "context-optimized", "weekly-reset": "reset-window", "reset-window-order": "reset-window",
}

# Lists that these give as they are: no view is made for them (the hot path of most requests).
AS_LISTED: Final = frozenset({"priority", "fill-first", "context-relay"})
# A session does not keep its place where the order itself shares the load out, or where everybody answers.
NOT_STICKY: Final = frozenset({"round-robin", "fusion"})


def named(name: str) -> str:
    """The name in the table."""
    name = ALIASES.get(name, name)
    return name if name in STRATEGIES else "priority"
