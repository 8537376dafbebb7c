"""Which names lead to which models? An immutable index, built once per configuration; requests only look things up."""
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from gateway.core.bounded import LruMap
from gateway.providers.registry import Provider
from gateway.routing import wildcards
from gateway.routing.binding import bind
from gateway.routing.combos import Combo, Plan
from gateway.routing.families import plain, siblings
from gateway.routing.places import DEMO as DEMO
from gateway.routing.places import Candidate as Candidate
from gateway.routing.places import Key as Key
from gateway.routing.places import Leg as Leg
from gateway.routing.places import Target as Target
from gateway.routing.places import fingerprint as fingerprint

_CACHED_NAMES: Final = 4096


class Listed(msgspec.Struct, frozen=True):
    """A name that clients may use, for lists of models. ``targets`` in the order in which they are tried."""
    id: str
    form: Literal["virtual", "combo", "model", "target", "alias"]
    owner: str
    targets: tuple[Target, ...]


class Index:
    """The names of one kind of model."""

    __slots__ = ("aliases", "auto", "ids", "labels", "plain", "resolved", "wild")

    def __init__(self, targets: Sequence[Target]) -> None:
        real = [t for t in targets if not t.demo]
        self.auto = tuple(real or targets)
        self.ids = _grouped((t.model.id, t) for t in real)
        self.plain = _grouped((plain(t.model.id), t) for t in real)
        aliases = _grouped((alias, t) for t in real for alias in t.model.aliases)
        self.aliases = {name: found for name, found in aliases.items() if not wildcards.is_pattern(name)}
        self.wild: wildcards.Ranked[tuple[Target, ...]] = wildcards.ranked(
            (name, found) for name, found in aliases.items() if wildcards.is_pattern(name))
        self.labels: dict[str, tuple[Target, ...]] = {t.label: (t,) for t in targets}
        for target in targets:
            for alias in target.model.aliases:
                self.labels.setdefault(f"{target.provider.id}/{alias}", (target,))
        self.resolved: LruMap[str, object] = LruMap(_CACHED_NAMES)     # resolve.py's cache: it lives as long as its facts


class Catalog:
    """All targets, by name and by kind. The other arguments are the settings that resolving needs (``[routing]``), and the
    combos as the configuration compiled them."""

    def __init__(self, providers: Sequence[Provider], strategy: str = "priority",
                 families: Mapping[str, str] = MappingProxyType({}), *, aliases: Mapping[str, str] = MappingProxyType({}),
                 combos: Sequence[Plan] = (), emergency: str = "") -> None:
        self.providers = {provider.id: provider for provider in sorted(providers, key=lambda p: p.order)}
        self.strategy = strategy
        self.families = families
        self.aliases = {name: to for name, to in aliases.items() if not wildcards.is_pattern(name)}
        self.wild = wildcards.ranked((name, to) for name, to in aliases.items() if wildcards.is_pattern(name))
        self.emergency = emergency
        self.targets = tuple(Target(p, model) for p in self.providers.values() for model in p.models.values())
        for target in self.targets:
            names = {plain(name) for name in siblings(target.model.id)}
            if names:
                target.neighbours = tuple(other.leg for other in self.targets if other.provider is target.provider
                                          and plain(other.model.id) in names)
        kinds = dict.fromkeys(t.model.kind for t in self.targets)
        self.kinds: dict[str, Index] = {kind: Index([t for t in self.targets if t.model.kind == kind]) for kind in kinds}
        self.kinds.setdefault("chat", Index(()))
        self.combos: dict[str, Combo] = bind(combos, self.kinds["chat"]) if combos else {}
        self.listed = tuple(self._list())
        self._by_name = {entry.id: entry for entry in reversed(self.listed)}

    @property
    def by_model(self) -> dict[str, tuple[Target, ...]]:
        """Combos, then every model once by the shortest name that reaches it (demo only by its full name), with who serves it."""
        combos = {combo.name: combo.targets for combo in self.combos.values()}
        found = {name: targets for index in self.kinds.values() for name, targets in index.ids.items() if name not in combos}
        return {**combos, **found, **{target.label: (target,) for target in self.targets if target.demo}}

    def find(self, name: str) -> Listed | None:
        """The list entry of a name."""
        return self._by_name.get(name)

    def canonical(self, name: str) -> str:
        """The id of the one model that a name means; "" for combos, virtual names, and what nobody knows."""
        entry = self._by_name.get(name)
        return entry.targets[0].model.id if entry is not None and entry.form not in ("combo", "virtual") else ""

    def _list(self) -> Iterable[Listed]:
        """auto, every model once, then each target and alias by its full name."""
        if self.kinds["chat"].auto:
            yield Listed("auto", "virtual", "gateway", self.kinds["chat"].auto)
        for combo in self.combos.values():
            yield Listed(combo.name, "combo", "gateway", combo.targets)
        for index in self.kinds.values():
            for name, targets in index.ids.items():
                yield Listed(name, "model", targets[0].provider.id, targets)
        for target in self.targets:
            yield Listed(target.label, "target", target.provider.id, (target,))
        for index in self.kinds.values():
            for name, targets in index.aliases.items():
                if name not in index.ids:
                    yield Listed(name, "alias", targets[0].provider.id, targets)


def _grouped(pairs: Iterable[tuple[str, Target]]) -> dict[str, tuple[Target, ...]]:
    found: dict[str, dict[Target, None]] = {}
    for name, target in pairs:
        found.setdefault(name, {})[target] = None
    return {name: tuple(targets) for name, targets in found.items()}
