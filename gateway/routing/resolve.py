"""Which targets does a requested name mean? The ladder of contract 3, first match wins; the answer is kept per catalog.

    provider/model · combo · exact model id · alias · virtual (auto …) · successor of a deprecated name · fusion · families · 404
"""
import re
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, Literal, cast

import msgspec

from gateway.core.errors import GatewayError
from gateway.routing import virtual, wildcards
from gateway.routing.catalog import Catalog, Index, Leg, Target
from gateway.routing.combos import DEFAULTS, Combo, Settings
from gateway.routing.families import family, successors
from gateway.routing.strategies import named

Form = Literal["target", "combo", "model", "alias", "virtual", "family"]

_FUSION: Final = re.compile(r"fusion(?::(.*))?", re.I | re.S)
_SHOWN: Final = 200                           # characters of a requested name in a message
_ALIAS_STEPS: Final = 4                       # an alias of an alias …


class Resolution(msgspec.Struct, frozen=True, eq=False):
    """``targets`` in configured order; ``strategy`` puts ``legs`` into the order of one request; ``kind`` is how the name was
    understood. ``scope`` is what strategies keep their state by. ``least_output`` and ``formats`` say at a glance whether
    everybody can give a long or a structured answer."""
    targets: tuple[Target, ...]
    requested: str
    kind: Form
    strategy: str = "priority"
    legs: tuple[Leg, ...] = ()
    settings: Settings = DEFAULTS
    scope: str = ""
    combo: Combo | None = None
    spare: tuple[Target, ...] = ()            # asked when everybody else is out of credits
    least_output: float = inf
    formats: bool = True
    tagged: bool = False                      # some place or account carries tags that a request may ask for
    several: bool = False                     # more than one candidate: a session has something to choose
    fused: bool = False                       # asked for as fusion or fusion:NAME

    @property
    def fusion(self) -> bool:
        """Do several answer at once, and a judge makes one of it?"""
        return self.fused or self.strategy == "fusion"

    def only(self, targets: Sequence[Target]) -> "Resolution":
        """The same with fewer targets (a client key's allow-list)."""
        kept = frozenset(targets)
        if self.combo is not None:
            legs = self.combo.only(kept).items
        else:
            legs = tuple(leg for leg in self.legs if leg.target in kept)
        return msgspec.structs.replace(self, targets=tuple(targets), legs=legs,
                                       spare=tuple(target for target in self.spare if target in kept))


def resolution(targets: Sequence[Target], requested: str, kind: Form, strategy: str = "priority", *, combo: Combo | None = None,
               catalog: Catalog | None = None) -> Resolution:
    """With everything that follows from the targets."""
    legs = combo.items if combo is not None else tuple(target.leg for target in targets)
    outputs = [target.model.max_output for target in targets if target.model.max_output]
    spare: tuple[Target, ...] = ()
    if catalog is not None and catalog.emergency and kind in ("combo", "virtual", "family"):
        spare = next((found.targets for step in _STEPS if (found := step(catalog.emergency, catalog, catalog.kinds["chat"]))), ())
    return Resolution(
        tuple(targets), requested, kind, named(combo.strategy if combo is not None else strategy), legs,
        combo.settings if combo is not None else DEFAULTS, combo.name if combo is not None else requested, combo, spare,
        min(outputs, default=inf), not any("response_format" in target.provider.drop_params for target in targets),
        any(leg.tags or any(candidate.account.tags for candidate in leg.candidates) for leg in legs),
        sum(len(leg.candidates) for leg in legs) > 1)


def resolve(name: str, catalog: Catalog, kind: str = "chat") -> Resolution:
    """Raises GatewayError no_model (404), or no_provider (503) where auto has nobody; never calls an upstream."""
    index = catalog.kinds.get(kind)
    if index is None:
        raise _unknown(name, catalog, kind)
    found = index.resolved.get(name)
    if found is None:
        found = _climb(name, catalog, index, kind)
        index.resolved.put(name, found)
    return cast(Resolution, found)


def _climb(name: str, catalog: Catalog, index: Index, kind: str) -> Resolution:
    steps = _STEPS if kind == "chat" else (_target, _model, _alias)
    for step in steps:
        found = step(name, catalog, index)
        if found is not None:
            return found
    if kind == "chat":
        if not name or name.lower() == "auto":
            return _auto(name, catalog, index)
        if (panel := _FUSION.fullmatch(name)) is not None:
            return _fused(name, panel[1] or "", catalog, index)
        member = family(name)
        if member is not None:
            return _family(name, member, catalog, index)
    raise _unknown(name, catalog, kind)


def _target(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    found = index.labels.get(name)
    return resolution(found, name, "target") if found is not None else None


def _combo(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    found = catalog.combos.get(name) or catalog.combos.get(name.removeprefix("combo/"))
    if found is None:
        return None
    if not found.items:
        raise GatewayError("no_provider", f"The combo {found.name!r} has no target left.")
    return resolution(found.targets, name, "combo", combo=found, catalog=catalog)


def _model(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    found = index.ids.get(name)
    return resolution(found, name, "model", catalog.strategy) if found is not None else None


def _alias(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    """The operator's own names first, then those of the models; exact ones before patterns."""
    meant, seen = catalog.aliases.get(name), 0
    while meant is not None and seen < _ALIAS_STEPS:
        found = _named(meant, name, catalog, index)
        if found is not None:
            return found
        meant, seen = catalog.aliases.get(meant), seen + 1
    targets = index.aliases.get(name)
    if targets is None and catalog.wild and (wild := wildcards.first(name, catalog.wild)) is not None:
        found = _named(wild, name, catalog, index)
        if found is not None:
            return found
    if targets is None and index.wild and name:
        targets = wildcards.first(name, index.wild)
    return resolution(targets, name, "alias", catalog.strategy) if targets is not None else None


def _named(meant: str, name: str, catalog: Catalog, index: Index) -> Resolution | None:
    """What an alias stands for, under the name that was asked for."""
    if meant.lower() == "auto" and index is catalog.kinds["chat"]:
        return _auto(name, catalog, index, "alias")
    for step in (_target, _combo, _model, _virtual) if index is catalog.kinds["chat"] else (_target, _model):
        found = step(meant, catalog, index)
        if found is not None:
            return msgspec.structs.replace(found, requested=name, kind="alias")
    return None


def _virtual(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    """auto/NAME and auto:AXIS. Only ``auto`` itself goes by [routing].strategy."""
    if name.lower() in ("", "auto") or (found := virtual.spec(name)) is None:
        return None
    if not index.auto:
        raise GatewayError("no_provider", "No provider with a chat model is configured.")
    if not found.pack and not found.fits and found.router == "rules" and name.lower() == "auto/":
        return _auto(name, catalog, index)
    combo = virtual.combo(found, index.auto)
    if not combo.items:
        raise GatewayError("no_model", f"No model that is configured fits {name[:_SHOWN]!r}.", param="model")
    return resolution(combo.targets, name, "virtual", combo=combo, catalog=catalog)


def _fused(name: str, inner: str, catalog: Catalog, index: Index) -> Resolution:
    """Those among whom a panel is chosen: everybody, or who stands behind a name (``fusion:best``, ``fusion:fast``)."""
    if not inner or inner.lower() == "auto":
        found: Resolution | None = _auto(name, catalog, index)
    else:
        meant = (inner, f"auto/{inner}", f"auto:{inner}")
        found = next((one for each in meant for step in _STEPS if (one := step(each, catalog, index)) is not None), None)
    if found is None:
        raise GatewayError("no_model", f"There is no panel {inner[:_SHOWN]!r} here: fusion:NAME takes the name of a combo, of a model "
                           "or an axis of auto.", param="model")
    return msgspec.structs.replace(found, requested=name, kind="virtual", scope=name, fused=True, spare=())


def _successor(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    """A deprecated name means its successor, where that is served; a family's member that nobody serves means its nearest
    sibling."""
    for after in successors(name):
        found = index.plain.get(after)
        if found is not None:
            return resolution(found, name, "family", catalog.strategy, catalog=catalog)
    return None


_STEPS: Final[tuple[Callable[[str, Catalog, Index], Resolution | None], ...]] = (
    _target, _combo, _model, _alias, _virtual, _successor)


def _auto(name: str, catalog: Catalog, index: Index, form: Form = "virtual") -> Resolution:
    if not index.auto:
        raise GatewayError("no_provider", "No provider with a chat model is configured.")
    return resolution(index.auto, name or "auto", form, catalog.strategy, catalog=catalog)


def _family(name: str, member: tuple[str, str], catalog: Catalog, index: Index) -> Resolution:
    """What the operator mapped the family, its vendor or everything (``default``) to; a mapped name that is gone means auto."""
    mapped = next((catalog.families[key] for key in (*member, "default") if key in catalog.families), "auto")
    for step in _STEPS:
        found = step(mapped, catalog, index)
        if found is not None:
            return msgspec.structs.replace(found, requested=name, kind="family")
    return _auto(name, catalog, index, "family")


def _unknown(name: str, catalog: Catalog, kind: str) -> GatewayError:
    """Says what is wrong with the name as far as we know: the kind of model, the provider, or nothing at all."""
    shown = name[:_SHOWN]
    other = next((k for k, index in catalog.kinds.items() if k != kind and _known(name, index)), None)
    provider, slash, rest = name.partition("/")
    if other is not None:
        text = f"The model {shown!r} is of kind {other}; this operation needs one of kind {kind}."
    elif provider.lower() == "combo" and slash:
        text = f"There is no combo {rest[:_SHOWN]!r} here."
    elif slash and provider in catalog.providers:
        text = f"The model {shown!r} does not exist: provider {provider!r} does not list {rest[:_SHOWN]!r}."
    else:
        text = f"The model {shown!r} does not exist; GET /v1/models lists what is served here."
    if not catalog.providers:
        text += " No provider is configured."
    return GatewayError("no_model", text, param="model")


def _known(name: str, index: Any) -> bool:
    return name in index.labels or name in index.ids or name in index.aliases
