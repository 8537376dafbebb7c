"""An operator says that somebody is well again: what is forgotten of a provider, of one of its models, or of one account?"""
from collections.abc import Mapping
from typing import Any

from gateway.routing.health import Health
from gateway.routing.places import Key


def forgive(health: Health, provider: str, model: str = "", account: str = "") -> int:
    """Cooldowns, levels and counts that touch it, and the whole provider's breaker when the provider is meant. ``account`` is its
    digest. How many cooldowns that ended."""
    def meant(book: Mapping[Key, Any]) -> list[Key]:
        return [key for key in book if key[0] == provider and (not model or key[1] == model) and (not account or key[2] == account)]

    ended = meant(health._cooldowns)
    for key in ended:
        del health._cooldowns[key]
        health.changed.add(("cooldown", key))
    for key in meant(health.levels):
        del health.levels[key]
        health.changed.add(("level", key))
    for book in (health.trials, health._probes, health._failures, health._lockouts, health._streaks, health._gone):
        for key in meant(book):
            del book[key]
    if not model and not account and health.breakers.pop(provider, None) is not None:
        health.changed.add(("breaker", (provider, "", "")))
    return len(ended)
