"""What do strategies remember from one request to the next? Counters, decks, batches, last good places: by execution key.

Values are immutable, so a fork (for explain, which must change nothing) is a copy of a few maps. Every map is bounded; what falls
out is forgotten, never wrong.
"""
from collections.abc import Sequence

import msgspec

from gateway.core.bounded import LruMap

SCOPES = 500
PLACES = 20_000
SESSIONS = 5_000
TOLD_S = 60.0                                 # a session that stays where it is needs no telling for so long


class Bound(msgspec.Struct, frozen=True, gc=False):
    """Where a session was answered last: the candidate's key and its target's label."""
    account: tuple[str, str, str]
    label: str
    at: float


class Memory:
    """``scope`` is a combo's name or the requested name."""

    __slots__ = ("batches", "decks", "exclusions", "good", "news", "served", "sessions", "sheets", "turns",
                 "uses")

    def __init__(self) -> None:
        self.turns: LruMap[str, int] = LruMap(SCOPES * 4)
        self.batches: LruMap[str, tuple[str, int]] = LruMap(SCOPES)          # scope -> (place, successes in a row)
        self.decks: LruMap[str, tuple[str, ...]] = LruMap(SCOPES)            # scope -> places not drawn yet
        self.uses: LruMap[str, int] = LruMap(PLACES)                         # place@account -> requests
        self.good: LruMap[str, tuple[str, str, str]] = LruMap(PLACES)        # scope -> candidate that answered last
        self.sessions: LruMap[tuple[str, str], Bound] = LruMap(SESSIONS)     # (scope, session) -> where
        self.served: LruMap[tuple[str, str], Bound] = LruMap(SESSIONS)       # (scope, session) -> whose model spoke last
        self.sheets: LruMap[object, object] = LruMap(SCOPES)                 # what ``auto`` need not reckon again (scoring.py)
        # (scope, provider) -> (until, span, good probes)
        self.exclusions: LruMap[tuple[str, str], tuple[float, float, int]] = LruMap(SCOPES * 4)
        self.news: LruMap[tuple[str, str], Bound] | None = None              # sessions that other processes should know of

    def fork(self) -> "Memory":
        """An independent copy."""
        made = Memory()
        for name in self.__slots__:
            if name == "news":
                continue
            getattr(made, name).update(getattr(self, name))
        return made

    def turn(self, name: str) -> int:
        """The next number of a counter."""
        number = self.turns.get(name, 0)
        self.turns.put(name, number + 1)
        return number

    def used(self, place: str, times: int = 1) -> None:
        self.uses.put(place, max(self.uses.get(place, 0) + times, 0))

    def draw(self, scope: str, places: Sequence[str], shuffled: Sequence[str]) -> str:
        """The next card of the scope's deck; ``shuffled`` is the new deck when none of the old one is left."""
        known = set(places)
        deck = tuple(place for place in self.decks.get(scope, ()) if place in known) or tuple(shuffled)
        self.decks.put(scope, deck[1:])
        return deck[0]

    def counted(self, scope: str, place: str, index: int, limit: int) -> None:
        """A success on a place of a scope with batches of ``limit``: it continues or begins the batch, and a full batch moves the
        counter behind it."""
        before, count = self.batches.get(scope, ("", 0))
        count = count + 1 if before == place else 1
        if count < limit:
            self.batches.put(scope, (place, count))
        else:
            self.batches.pop(scope, None)
            self.turns.put(scope, index + 1)

    def last_model(self, scope: str, session: str, now: float, ttl_s: float) -> Bound | None:
        found = self.served.get((scope, session))
        return found if found is not None and now - found.at <= ttl_s else None

    def bind(self, scope: str, session: str, bound: Bound) -> None:
        if self.news is not None:
            before = self.sessions.get((scope, session))
            if before is None or before.account != bound.account or bound.at - before.at >= TOLD_S:
                self.news.put((scope, session), bound)
        self.sessions.put((scope, session), bound)

    def bound(self, scope: str, session: str, now: float, ttl_s: float) -> Bound | None:
        found = self.sessions.get((scope, session))
        if found is None:
            return None
        if now - found.at > ttl_s:
            del self.sessions[scope, session]
            return None
        return found
