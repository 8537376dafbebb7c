"""How much of each shared limit is left, and who holds what of it? The book of one machine's hub; synchronous, clock passed in.

Minutes and days are metered as everywhere (policy.meters): a block is charged when it is leased, so that all processes together
never pass the limit. Places and money are held: what a process holds counts until it says otherwise, or is gone itself.
"""
from collections.abc import Sequence
from typing import Final

from gateway.core.bounded import LruMap
from gateway.core.ports import Grant, LeaseAsk
from gateway.policy.meters import Gcra, Meter, Window

MAX_KEYS: Final = 50_000
SOON_S: Final = 1.0                           # nobody knows when somebody gives back what he holds


class Held:
    """One limit of which parts are held. ``gone``: spent for good."""

    __slots__ = ("gone", "holds")

    def __init__(self, gone: int) -> None:
        self.gone = gone
        self.holds: dict[str, int] = {}

    def lease(self, holder: str, ask: LeaseAsk) -> Grant:
        if ask.holding:
            self.holds[holder] = ask.holding
        else:
            self.holds.pop(holder, None)
        free = ask.limit - self.gone - sum(self.holds.values())
        given = min(ask.want, free) if free >= ask.least else 0
        if given > 0:
            self.holds[holder] = ask.holding + given
        given = max(given, 0)
        return Grant(given, max(free - given, 0), SOON_S if given < ask.least else 0.0)


class Book:
    """Every shared limit by its key."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._meters: LruMap[tuple[str, int], Meter] = LruMap(max_keys)
        self._held: LruMap[str, Held] = LruMap(max_keys)

    def lease(self, holder: str, asks: Sequence[LeaseAsk], now: float) -> list[Grant]:
        return [self._hold(holder, ask) if ask.kind == "held" else self._take(ask, now) for ask in asks]

    def left(self, holder: str) -> None:
        """This process is gone, and with it whatever it held."""
        for held in self._held.values():
            held.holds.pop(holder, None)

    def _hold(self, holder: str, ask: LeaseAsk) -> Grant:
        held = self._held.get(ask.key)
        if held is None:
            held = Held(ask.base)             # which knows what the asker has spent already
        else:
            held.gone += ask.gone
        self._held.put(ask.key, held)
        return held.lease(holder, ask)

    def _take(self, ask: LeaseAsk, now: float) -> Grant:
        found = self._meters.get((ask.key, ask.limit))
        meter: Meter = found or (Gcra(ask.limit) if ask.kind == "minute" else Window(ask.limit))
        self._meters.put((ask.key, ask.limit), meter)
        if ask.back:
            meter.adjust(-ask.back, now)
        left = meter.remaining(now)
        given = min(ask.want, left) if left >= ask.least else 0
        if given:
            meter.take(given, now)
        return Grant(given, left - given, 0.0 if given >= ask.least else min(meter.wait(ask.least, now), 86_400.0))
