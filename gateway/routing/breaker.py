"""When is a whole provider left alone? Failures of all its accounts and models are counted together, per kind of provider.

closed -> degraded -> open -> (its time is over) half-open, which lets one request try -> closed, or open for longer. Only failures
that speak against the provider count, one for each account in five seconds: fifty requests in flight during one hiccup are one.
"""
from typing import Any, Final, Literal

import msgspec

from gateway.core.bounded import LruMap
from gateway.providers.registry import Provider

State = Literal["closed", "degraded", "open", "half-open"]

DEDUP_S: Final = 5.0
WINDOW_S: Final = 900.0                       # counts older than this are forgotten
_ACCOUNTS: Final = 64


class Profile(msgspec.Struct, frozen=True):
    """How many failures degrade and open, for how long it opens, and how that grows: doubled with every cycle above ``patience``,
    ``factor`` times at most."""
    degraded: int
    opens: int
    reset_s: float
    factor: float
    patience: int


# A machine of our own is back when it is started again: contract 2 gives it five seconds, whatever happened.
PROFILES: Final[dict[str, Profile]] = {
    "key": Profile(7, 12, 30.0, 4.0, 3),
    "oauth": Profile(5, 8, 60.0, 8.0, 2),
    "local": Profile(7, 12, 5.0, 1.0, 3),
}
_SIGNED: Final = frozenset({"oauth", "gcp"})


def profile(provider: Provider) -> Profile:
    return PROFILES["local" if provider.loopback else "oauth" if provider.auth in _SIGNED else "key"]


class Breaker:
    """One provider's. The caller says what time it is and who may try (health.py keeps the trial)."""

    __slots__ = ("_seen", "count", "cycles", "last_at", "until")

    def __init__(self) -> None:
        self.count = 0
        self.cycles = 0                       # times that it opened without closing in between
        self.until = 0.0                      # end of the open time; 0 = never opened since it closed
        self.last_at = 0.0
        self._seen: LruMap[str, float] = LruMap(_ACCOUNTS)

    def state(self, rules: Profile, now: float) -> State:
        if self.until:
            return "open" if now < self.until else "half-open"
        return "degraded" if self.count >= rules.degraded and now - self.last_at <= WINDOW_S else "closed"

    def failed(self, account: str, rules: Profile, now: float) -> float | None:
        """Book a failure; the end of the open time when it opens now."""
        if self.until:
            if now < self.until:
                return None
            return self._open(rules, now)     # the trial failed
        if now - self._seen.get(account, -DEDUP_S) < DEDUP_S:
            return None
        self._seen.put(account, now)
        self.count = self.count + 1 if now - self.last_at <= WINDOW_S else 1
        self.last_at = now
        return self._open(rules, now) if self.count >= rules.opens else None

    def succeeded(self) -> bool:
        """Book a success; True when it closed an open breaker."""
        closed = bool(self.until)
        if closed:
            self.count = self.cycles = 0
            self.until = 0.0
        elif self.count:
            self.count -= 1
        return closed

    def _open(self, rules: Profile, now: float) -> float:
        self.cycles += 1
        growth = min(2.0 ** max(self.cycles - rules.patience, 0), rules.factor)
        self.until = now + rules.reset_s * growth
        self.count = rules.opens
        self.last_at = now
        return self.until

    def data(self, now: float, wall: float) -> dict[str, Any]:
        """For a store: times as epoch seconds."""
        return {"count": self.count, "cycles": self.cycles, "until": self.until and self.until - now + wall,
                "last_at": self.last_at - now + wall}

    @classmethod
    def of(cls, value: dict[str, Any], now: float, wall: float) -> "Breaker":
        made = cls()
        made.count, made.cycles = int(value["count"]), int(value["cycles"])
        made.until = value["until"] and value["until"] - wall + now
        made.last_at = value["last_at"] - wall + now
        return made
