"""What is one place in an order of targets? Target, its accounts as candidates, and legs: targets as an order sees them.

Health, skip sets and limits share one space of keys: ``(provider, model, account)`` where "" stands for *all*. So one
candidate has four keys, from its own to its provider's, and each can be cooled or skipped by itself. The account is named by
a digest of its key, not by its place: a reload that reorders or replaces keys neither moves nor keeps a cooldown.
"""
import hashlib
from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from gateway.providers.registry import Account, Model, Provider
from gateway.routing.traits import Traits, traits

if TYPE_CHECKING:
    from gateway.routing.combos import Combo

Key = tuple[str, str, str]
NONE: Final[Key] = ("", "", "")               # the key of nobody

NOTHING_OWN: Final[Mapping[str, Any]] = MappingProxyType({})
DEMO: Final = "demo"                          # id and flag of the built-in provider: nobody's fallback


class Target:
    """One model of one provider. A plain class: compared and hashed by identity, which costs nothing."""

    __slots__ = ("_traits", "candidates", "demo", "key", "label", "leg", "model", "neighbours", "pacific", "provider",
                 "provider_key", "ranked", "room")

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
        self.candidates = tuple(Candidate(self, account) for account in provider.accounts if account.serves(model.id))
        self.ranked = len({account.priority for account in provider.accounts}) > 1
        self._traits: Traits | None = None
        self.neighbours: tuple[Leg, ...] = ()         # models of its line at the same provider (catalog.py)
        self.leg = Leg(self, self.label)

    @property
    def traits(self) -> Traits:
        """What it is good at and what it costs, for the orders that ask."""
        if self._traits is None:
            self._traits = traits(self.provider, self.model)
        return self._traits

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


class Leg:
    """One place in an order: a target with those of its accounts that may be used there, which take turns.

    ``key`` is the execution key: the way through the combos to this place. State is kept by it, never by the model's name, so
    the same model at two places is two things; ``place`` is the key without an account. ``step`` is the top-level step that it
    came from, ``weight`` that step's.
    """

    __slots__ = ("account", "candidates", "combo", "head", "key", "own", "place", "singles", "step", "tags", "target", "traits",
                 "weight")

    traits: Traits                            # its target's, at legs that ``each`` gave: orders read them fifty at a time

    def __init__(self, target: Target, key: str, *, candidates: "tuple[Candidate, ...] | None" = None, step: str = "",
                 weight: float = 1.0, tags: frozenset[str] = frozenset(), combo: "Combo | None" = None, place: str = "",
                 own: Mapping[str, Any] = NOTHING_OWN) -> None:
        self.target = target
        self.key = key
        self.place = place or key
        self.candidates = target.candidates if candidates is None else candidates
        self.step = step or key
        self.weight = weight
        self.tags = tags
        self.own = own                        # settings that count here alone (combos.Settings, by name)
        self.combo = combo                    # a whole combo as one place, ordered when its turn comes
        self.singles: tuple[Leg, ...] = ()    # ``each``, once somebody asked
        # Keys of the first candidate and of its account, for orders that look at single accounts.
        self.head, self.account = (self.candidates[0].key, self.candidates[0].account_key) if self.candidates else (NONE, NONE)

    @property
    def each(self) -> "tuple[Leg, ...]":
        """One leg an account, for orders that tell accounts apart."""
        if not self.singles:
            singles = (self,) if self.combo is not None else tuple(self.alone(c) for c in self.candidates) or (self,)
            for leg in singles:
                leg.traits = self.target.traits
            self.singles = singles
        return self.singles

    def alone(self, candidate: Candidate) -> "Leg":
        return Leg(self.target, f"{self.place}@{candidate.key[2]}", candidates=(candidate,), step=self.step, weight=self.weight,
                   tags=self.tags, place=self.place, own=self.own)

    def without(self, candidate: Candidate) -> "Leg":
        """The same place with one account less."""
        return self.among(tuple(c for c in self.candidates if c is not candidate))

    def among(self, candidates: tuple[Candidate, ...]) -> "Leg":
        """The same place with some of its accounts."""
        return Leg(self.target, self.key, candidates=candidates, step=self.step, weight=self.weight, tags=self.tags,
                   combo=self.combo, place=self.place, own=self.own)

    def __repr__(self) -> str:
        return f"Leg({self.key!r})"


def fingerprint(account: Account) -> str:
    """A name for an account that changes when its key does and does not give it away."""
    secret = account.key.reveal()
    if not secret:
        return f"#{account.ordinal}"
    return hashlib.blake2b(secret.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _google(provider: Provider) -> bool:
    host = urlsplit(provider.base_url).hostname or ""
    return provider.wire == "gemini" or host.endswith("googleapis.com")
