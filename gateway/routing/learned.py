"""What did refusals teach about limits? The size that a model takes, and what an account may be asked a minute or a day.

Providers state these numbers when they refuse (``GatewayError.hint``). They are believed for a day: a plan may be upgraded. Where
a refusal for size names no number, its own size is the latch, for an hour.
"""
from math import inf
from typing import Any, Final

import msgspec

from gateway.core.bounded import LruMap
from gateway.core.errors import GatewayError
from gateway.providers.registry import Ceiling
from gateway.routing.places import Candidate, Key, Target

BELIEVED_S: Final = 86_400.0
LATCH_S: Final = 3_600.0
LEAST_TOKENS: Final = 256                     # no model is smaller: a number below it is something else
_METRICS: Final = frozenset({"rpm", "rpd", "tpm", "tpd"})


class Learned:
    """Bounded, like every book of routing."""

    __slots__ = ("_ceilings", "_rooms", "known")

    def __init__(self, limit: int = 5_000) -> None:
        self._rooms: LruMap[Key, tuple[float, float]] = LruMap(limit)        # model -> (tokens, believed until)
        self._ceilings: LruMap[Key, tuple[Ceiling, float]] = LruMap(limit)   # candidate -> …
        self.known = False                    # was anything ever learned?

    def learn(self, candidate: Candidate, error: GatewayError, tokens: int, now: float) -> bool:
        """Take what a refusal says; True when something is new."""
        hint, target = error.hint, candidate.target
        if error.kind == "context_too_large":
            stated = getattr(hint, "context", None) or (hint.limit if hint and hint.metric in ("tpm", "tpd") else None)
            if stated and stated >= LEAST_TOKENS:
                return self._room(target, stated, now + BELIEVED_S, now)
            return bool(tokens > LEAST_TOKENS) and self._room(target, tokens - 1, now + LATCH_S, now)
        if not hint or hint.limit is None or hint.metric not in _METRICS or hint.limit < 1:
            return False
        if hint.metric[0] == "t" and hint.requested and hint.requested > hint.limit:
            self._room(target, hint.limit, now + BELIEVED_S, now)
        before = self._ceilings.get(candidate.key, (Ceiling(), 0.0))[0]
        after = msgspec.structs.replace(before, **{hint.metric: hint.limit})
        self._ceilings.put(candidate.key, (after, now + BELIEVED_S))
        self.known = True
        return after != before

    def room(self, target: Target, now: float) -> float:
        """Most tokens of a request, as far as refusals said."""
        found = self._rooms.get(target.key)
        if found is None:
            return inf
        if found[1] <= now:
            del self._rooms[target.key]
            return inf
        return found[0]

    def ceiling(self, candidate: Candidate, now: float) -> Ceiling | None:
        """Limits of this account for this model, None when none was stated."""
        found = self._ceilings.get(candidate.key)
        if found is None:
            return None
        if found[1] <= now:
            del self._ceilings[candidate.key]
            return None
        return found[0]

    def proved(self, target: Target, tokens: int) -> None:
        """A request of this size was answered: a latch below it was wrong."""
        found = self._rooms.get(target.key)
        if found is not None and tokens > found[0]:
            del self._rooms[target.key]

    def _room(self, target: Target, tokens: int, until: float, now: float) -> bool:
        self._rooms.put(target.key, (min(float(tokens), self.room(target, now)), until))
        self.known = True
        return True

    def data(self) -> dict[Key, tuple[dict[str, Any], float]]:
        """Everything as (plain data, believed until)."""
        rows: dict[Key, tuple[dict[str, Any], float]] = {key: ({"room": room}, until) for key, (room, until) in self._rooms.items()}
        rows |= {key: ({"ceiling": msgspec.to_builtins(found)}, until) for key, (found, until) in self._ceilings.items()}
        return rows

    def restore(self, key: Key, value: dict[str, Any], until: float) -> None:
        self.known = True
        if "room" in value:
            self._rooms.put(key, (float(value["room"]), until))
        if "ceiling" in value:
            self._ceilings.put(key, (msgspec.convert(value["ceiling"], Ceiling), until))
