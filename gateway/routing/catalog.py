"""Which names lead to which models? An immutable index, built once per configuration; requests only look things up.

Health, skip sets and limits share one space of keys: ``(provider, model, account)`` where "" stands for *all*. So one
candidate has four keys, from its own to its provider's, and each can be cooled or skipped by itself. The account is named by
a digest of its key, not by its place: a reload that reorders or replaces keys neither moves nor keeps a cooldown.
"""
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from gateway.core.bounded import LruMap
from gateway.providers.registry import Account, Model, Provider

Key = tuple[str, str, str]

DEMO: Final = "demo"                          # id and flag of the built-in provider: nobody's fallback
_CACHED_NAMES: Final = 4096


class Target:
    """One model of one provider. A plain class: compared and hashed by identity, which costs nothing."""

    __slots__ = ("candidates", "demo", "key", "label", "model", "pacific", "provider", "provider_key", "room")

    def __init__(self, provider: Provider, model: Model) -> None:
        self.provider = provider
        self.model = model
        self.label = f"{provider.id}/{model.id}"
        self.key: Key = (provider.id, model.id, "")
        self.provider_key: Key = (provider.id, "", "")
        self.demo = provider.id == DEMO or DEMO in provider.flags
        self.pacific = _google(provider)
        # No request of more tokens can ever be served: the context is too small, or one account's limits are.
        self.room: float = min([n for n in (model.context, provider.limits.tpm, provider.limits.tpd) if n], default=inf)
        self.candidates = tuple(Candidate(self, account) for account in provider.accounts)

    def __repr__(self) -> str:
        return f"Target({self.label!r})"


class Candidate:
    """One target with one of its accounts: what an attempt is made at."""

    __slots__ = ("account", "account_key", "key", "keys", "target")

    def __init__(self, target: Target, account: Account) -> None:
        name = fingerprint(account)
        self.target = target
        self.account = account
        self.key: Key = (target.provider.id, target.model.id, name)
        self.account_key: Key = (target.provider.id, "", name)
        self.keys = (self.key, self.account_key, target.key, target.provider_key)

    def __repr__(self) -> str:
        return f"Candidate({self.target.label!r}, account={self.account.ordinal})"


class Listed(msgspec.Struct, frozen=True):
    """A name that clients may use, for lists of models. ``targets`` in the order in which they are tried."""
    id: str
    form: Literal["virtual", "model", "target", "alias"]
    owner: str
    targets: tuple[Target, ...]


class Index:
    """The names of one kind of model."""

    __slots__ = ("aliases", "auto", "ids", "labels", "resolved")

    def __init__(self, targets: Sequence[Target]) -> None:
        real = [t for t in targets if not t.demo]
        self.auto = tuple(real or targets)
        self.ids = _grouped((t.model.id, t) for t in real)
        self.aliases = _grouped((alias, t) for t in real for alias in t.model.aliases)
        self.labels = {t.label: (t,) for t in targets}
        for target in targets:
            for alias in target.model.aliases:
                self.labels.setdefault(f"{target.provider.id}/{alias}", (target,))
        self.resolved: LruMap[str, object] = LruMap(_CACHED_NAMES)     # resolve.py's cache: it lives as long as its facts


class Catalog:
    """All targets, by name and by kind. ``strategy`` and ``families`` are the settings that resolving needs."""

    def __init__(self, providers: Sequence[Provider], strategy: str = "priority",
                 families: Mapping[str, str] = MappingProxyType({})) -> None:
        self.providers = {provider.id: provider for provider in sorted(providers, key=lambda p: p.order)}
        self.strategy = strategy
        self.families = families
        self.targets = tuple(Target(p, model) for p in self.providers.values() for model in p.models.values())
        kinds = dict.fromkeys(t.model.kind for t in self.targets)
        self.kinds: dict[str, Index] = {kind: Index([t for t in self.targets if t.model.kind == kind]) for kind in kinds}
        self.kinds.setdefault("chat", Index(()))
        self.listed = tuple(self._list())
        self._by_name = {entry.id: entry for entry in reversed(self.listed)}

    @property
    def by_model(self) -> dict[str, tuple[Target, ...]]:
        """Every model once, by the shortest name that reaches it (demo only by its full name), with who serves it."""
        found = {name: targets for index in self.kinds.values() for name, targets in index.ids.items()}
        return {**found, **{target.label: (target,) for target in self.targets if target.demo}}

    def find(self, name: str) -> Listed | None:
        """The list entry of a name."""
        return self._by_name.get(name)

    def _list(self) -> Iterable[Listed]:
        """auto, every model once, then each target and alias by its full name."""
        if self.kinds["chat"].auto:
            yield Listed("auto", "virtual", "gateway", self.kinds["chat"].auto)
        for index in self.kinds.values():
            for name, targets in index.ids.items():
                yield Listed(name, "model", targets[0].provider.id, targets)
        for target in self.targets:
            yield Listed(target.label, "target", target.provider.id, (target,))
        for index in self.kinds.values():
            for name, targets in index.aliases.items():
                if name not in index.ids:
                    yield Listed(name, "alias", targets[0].provider.id, targets)


def fingerprint(account: Account) -> str:
    """A name for an account that changes when its key does and does not give it away."""
    secret = account.key.reveal()
    if not secret:
        return f"#{account.ordinal}"
    return hashlib.blake2b(secret.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _grouped(pairs: Iterable[tuple[str, Target]]) -> dict[str, tuple[Target, ...]]:
    found: dict[str, dict[Target, None]] = {}
    for name, target in pairs:
        found.setdefault(name, {})[target] = None
    return {name: tuple(targets) for name, targets in found.items()}


def _google(provider: Provider) -> bool:
    host = urlsplit(provider.base_url).hostname or ""
    return provider.wire == "gemini" or host.endswith("googleapis.com")
