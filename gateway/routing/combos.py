"""What is a combo? A named list of places with a strategy: a plan as the configuration wrote it, a combo bound to targets."""
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from gateway.routing.places import NOTHING_OWN, Leg, Target

MAX_DEPTH: Final = 10
# Outer strategies that can order whole combos; the others compare targets, so they get them.
EXECUTABLE: Final = frozenset({"priority", "round-robin", "random", "strict-random", "weighted", "fill-first"})


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What tunes a strategy. Defaults here are the first layer of the cascade: defaults, [routing.combo_defaults], the combo."""
    max_depth: int = 3
    nested: Literal["flatten", "execute"] = "flatten"
    sticky_limit: int = 1                    # successes in a row on one place (round-robin, weighted)
    sticky_ttl_s: float | None = None        # None = [routing].sticky_ttl_s
    context_pin: bool = False
    handoff: Literal["off", "on-switch"] | None = None      # None = [routing].handoff
    max_retries: int = 0
    max_set_retries: int | None = None       # None = [routing]'s, as the next
    set_retry_delay_s: float | None = None
    target_timeout_s: float = 0.0
    concurrency: int = 0
    queue_timeout_s: float = 30.0
    queue_depth: int = 20
    weights: Mapping[str, float] = {}
    mode_pack: str = ""
    router: str = "rules"
    exploration: float = 0.05
    budget_cap_usd: float = 0.0
    sla_p95_ms: float = 2000.0
    sla_error_rate: float = 0.05
    sla_cost_usd: float = 0.0
    sla_hard: bool = False
    reset_session_weight: float = 0.35
    reset_weekly_weight: float = 0.65
    reset_tie_band: float = 0.05
    reset_tie_s: float = 60.0
    reset_windows: tuple[str, ...] = ("weekly",)
    exhaustion_guard: float = 0.10
    tiered: bool = False                     # the list is in the order of tiers
    quorum: int | None = None                # fusion; None = [fusion]'s, as the next two
    grace_s: float | None = None
    panel_timeout_s: float | None = None
    judge: str = ""                          # "" = [fusion]'s
    prefer_local: bool = False
    task: str = ""                           # "" = found in the words of the request


DEFAULTS: Final = Settings()


class Shape(msgspec.Struct, frozen=True):
    """What a combo makes of the requests to it. ``keeps`` matches the names of tools that stay."""
    system_message: str = ""
    keeps: re.Pattern[str] | None = None
    guards_off: frozenset[str] = frozenset()


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a combo's list. Exactly one of ``target`` (label, model id or pattern) and ``combo`` (name, or auto…)."""
    target: str = ""
    combo: str = ""
    weight: float = 1.0
    label: str = ""
    accounts: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    own: Mapping[str, Any] = NOTHING_OWN     # settings that count at this place alone


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A combo by names."""
    name: str
    strategy: str = "priority"
    steps: tuple[StepPlan, ...] = ()
    settings: Settings = DEFAULTS
    overrides: Mapping[str, Settings] = {}   # provider -> settings at its targets
    providers: frozenset[str] = frozenset()  # only their targets count; none = everybody's
    shape: Shape | None = None


class Combo(msgspec.Struct, frozen=True, eq=False):
    """A combo bound to targets. ``items`` are its places; one with ``Leg.combo`` is a whole combo."""
    name: str
    strategy: str
    items: tuple[Leg, ...]
    settings: Settings = DEFAULTS
    overrides: Mapping[str, Settings] = {}
    shape: Shape | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(dict.fromkeys(leg.target for leg in self.legs()))

    def legs(self) -> Iterator[Leg]:
        """Every place, inner combos opened."""
        for leg in self.items:
            if leg.combo is not None:
                yield from leg.combo.legs()
            else:
                yield leg

    def only(self, allowed: frozenset[Target]) -> "Combo":
        """The same without targets that a client key may not use."""
        kept: list[Leg] = []
        for leg in self.items:
            if leg.combo is None:
                if leg.target in allowed:
                    kept.append(leg)
            elif (inner := leg.combo.only(allowed)).items:
                kept.append(unit(inner, leg.key, leg.weight))
        return msgspec.structs.replace(self, items=tuple(kept))


def unit(combo: Combo, key: str, weight: float) -> Leg:
    """A whole combo as one place. What is asked of its target is asked of its first one."""
    legs = list(combo.legs())
    return Leg(legs[0].target, key, candidates=tuple(c for leg in legs for c in leg.candidates), weight=weight, combo=combo)
