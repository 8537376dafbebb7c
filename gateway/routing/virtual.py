"""What do ``auto/coding``, ``auto:fast`` and their like mean? Combos that nobody wrote, routed by the axis that they name.

Both grammars of the contract are one here: ``auto:AXIS`` and ``auto/NAME[:TIER]``. An axis is a promise, so nothing is explored
under one: the best by that axis comes first. A filter that nobody passes gives nobody, never everybody.
"""
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from gateway.routing.combos import Combo, Settings
from gateway.routing.places import Target
from gateway.routing.traits import FREE, STANDARD

Fits = Callable[[Target], bool]


class Spec(msgspec.Struct, frozen=True):
    """A virtual name, understood."""
    name: str
    pack: str = ""
    task: str = ""
    fits: tuple[Fits, ...] = ()
    router: str = "rules"
    local: bool = False


def _sees(target: Target) -> bool:
    return target.model.vision is True


def _thinks(target: Target) -> bool:
    return target.model.reasoning is True


def _free(target: Target) -> bool:
    return target.traits.tier == FREE or target.model.id.endswith((":free", "-free"))


def _pro(target: Target) -> bool:
    return target.traits.tier >= STANDARD or target.traits.power >= 60


def _line(word: str) -> Fits:
    return lambda target: word in target.model.id.lower()


# name -> (mode pack, task, filters)
_PLAIN: Final[dict[str, tuple[str, str, tuple[Fits, ...]]]] = {
    "coding": ("quality-first", "coding", ()), "fast": ("ship-fast", "", ()), "cheap": ("cost-saver", "", ()),
    "smart": ("quality-first", "", ()), "offline": ("offline-friendly", "", ()), "lkgp": ("", "", ()),
    "reliable": ("reliability-first", "", ()), "balanced": ("", "", ()),
    "best-coding": ("quality-first", "coding", ()), "best-reasoning": ("quality-first", "analysis", (_thinks,)),
    "best-fast": ("ship-fast", "", ()), "best-vision": ("quality-first", "", (_sees,)), "best-chat": ("quality-first", "", ()),
    "best-coding-fast": ("ship-fast", "coding", ()), "best-free": ("", "", (_free,)),
    "pro-coding": ("quality-first", "coding", (_pro,)), "pro-reasoning": ("quality-first", "analysis", (_pro, _thinks)),
    "pro-vision": ("quality-first", "", (_pro, _sees)), "pro-chat": ("quality-first", "", (_pro,)),
    "pro-fast": ("ship-fast", "", (_pro,)), "claude-opus": ("quality-first", "", (_line("opus"),)),
    "claude-sonnet": ("quality-first", "", (_line("sonnet"),)),
}
_CATEGORIES: Final[dict[str, tuple[str, str, tuple[Fits, ...]]]] = {
    "coding": ("quality-first", "coding", ()), "reasoning": ("quality-first", "analysis", (_thinks,)),
    "vision": ("quality-first", "", (_sees,)), "multimodal": ("quality-first", "", (_sees,)), "chat": ("", "", ()),
}
_TIERS: Final[dict[str, tuple[str, tuple[Fits, ...]]]] = {
    "fast": ("ship-fast", ()), "cheap": ("cost-saver", ()), "floor": ("cost-saver", ()), "free": ("", (_free,)),
    "reliable": ("reliability-first", ()), "pro": ("", (_pro,)),
}
_AXES: Final[dict[str, str]] = {word: axis for axis, words in (
    ("smart", "smart smartest intelligence"), ("fast", "fast fastest speed"), ("cheap", "cheap cheapest price budget"),
    ("balanced", "balanced"), ("reliable", "reliable reliability")) for word in words.split()}


def spec(name: str) -> Spec | None:
    """What a name that begins with ``auto:`` or ``auto/`` asks for; None for any other and for one that means nothing."""
    low = name.strip().lower()
    if low in ("auto", "auto/"):
        return Spec(name)
    if low.startswith("auto:"):
        axis = _AXES.get(low[5:])
        return _spec(name, *_PLAIN[axis]) if axis is not None else None
    if not low.startswith("auto/"):
        return None
    category, colon, tier = low[5:].partition(":")
    if not colon:
        found = _PLAIN.get(category) or _CATEGORIES.get(category)
        return None if found is None else _spec(name, *found, plain=category)
    if category not in _CATEGORIES or tier not in _TIERS:
        return None
    pack, task, fits = _CATEGORIES[category]
    over, more = _TIERS[tier]
    return _spec(name, over or pack, task, fits + more)


def _spec(name: str, pack: str, task: str, fits: tuple[Fits, ...], plain: str = "") -> Spec:
    return Spec(name, pack, task, fits, "lkgp" if plain == "lkgp" else "rules", plain == "offline")


def combo(found: Spec, targets: Sequence[Target]) -> Combo:
    """The combo behind a virtual name; without items when no target passes its filters."""
    legs = tuple(target.leg for target in targets if all(fits(target) for fits in found.fits))
    settings = Settings(mode_pack=found.pack, router=found.router, exploration=0.0, prefer_local=found.local, task=found.task)
    return Combo(found.name.lower(), "auto", legs, settings)


NAMES: Final = ("auto", *(f"auto:{axis}" for axis in ("balanced", "cheap", "fast", "reliable", "smart")),
                *(f"auto/{name}" for name in _PLAIN))
