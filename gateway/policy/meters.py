"""How much of a limit is used? Two meters with one face: GCRA for minutes, a sliding window for days.

GCRA keeps one number and gives the exact time to wait, but lets twice the limit through in the worst window (a full burst and
its refill). Over a minute that is what providers do themselves; over a day it would mean twice the day's quota, so days are
counted in slots. Both are peeked first and taken after, so that a refusal charges nothing.
"""
from collections import deque
from typing import Final, Protocol

MINUTE_S: Final = 60.0
DAY_S: Final = 86_400.0
_SLOTS: Final = 96                            # of a day: what was used is forgiven a quarter of an hour late at most
_EPSILON_S: Final = 1e-6                      # whoever waited exactly as told must not fail by rounding
NEVER: Final = float("inf")


class Meter(Protocol):
    limit: int

    def wait(self, cost: int, now: float) -> float:
        """Seconds until ``cost`` fits, 0 = now, NEVER = it is larger than the limit."""
        ...

    def take(self, cost: int, now: float) -> None: ...

    def adjust(self, change: int, now: float) -> None:
        """Correct an earlier charge by ``change`` (negative gives back); never refuses."""
        ...

    def remaining(self, now: float) -> int: ...

    def share(self, now: float) -> float:
        """What is used of it, 0 to 1."""
        ...

    def reset(self, now: float) -> float:
        """Seconds until all of it is free again."""
        ...


class Gcra:
    """Generic cell rate algorithm: ``_tat`` is when everything taken so far has leaked away."""

    __slots__ = ("_step_s", "_tat", "_window_s", "limit")

    def __init__(self, limit: int, window_s: float = MINUTE_S) -> None:
        self.limit = limit
        self._window_s = window_s
        self._step_s = window_s / limit
        self._tat = 0.0

    def wait(self, cost: int, now: float) -> float:
        if cost > self.limit:
            return NEVER
        tat = self._tat
        late = (tat if tat > now else now) + cost * self._step_s - now - self._window_s
        return late if late > _EPSILON_S else 0.0

    def take(self, cost: int, now: float) -> None:
        tat = self._tat
        self._tat = (tat if tat > now else now) + cost * self._step_s

    def adjust(self, change: int, now: float) -> None:
        self._tat = max(self._tat, now if change > 0 else 0.0) + change * self._step_s

    def remaining(self, now: float) -> int:
        return max(int((now + self._window_s - max(self._tat, now) + _EPSILON_S) / self._step_s), 0)

    def share(self, now: float) -> float:
        left_s = self._tat - now
        return 0.0 if left_s <= 0.0 else left_s / self._window_s if left_s < self._window_s else 1.0

    def reset(self, now: float) -> float:
        return max(self._tat - now, 0.0)


class Window:
    """A sliding sum over slots: never more than ``limit`` in any window."""

    __slots__ = ("_slot_s", "_slots", "_used", "limit")

    def __init__(self, limit: int, window_s: float = DAY_S) -> None:
        self.limit = limit
        self._slot_s = window_s / _SLOTS
        self._slots: deque[list[float]] = deque()      # [slot number, used in it], oldest first
        self._used = 0.0

    def wait(self, cost: int, now: float) -> float:
        if cost > self.limit:
            return NEVER
        self._forget(now)
        excess = self._used + cost - self.limit
        if excess <= 0:
            return 0.0
        for number, used in self._slots:
            excess -= used
            if excess <= 0:
                return (number + 1 + _SLOTS) * self._slot_s - now + _EPSILON_S
        return NEVER

    def take(self, cost: int, now: float) -> None:
        self._forget(now)
        self._add(cost, now)

    def adjust(self, change: int, now: float) -> None:
        self._forget(now)
        if change > 0:
            self._add(change, now)
            return
        for slot in reversed(self._slots):             # what is given back was charged lately
            back = min(slot[1], -change)
            slot[1] -= back
            self._used -= back
            change += int(back)

    def remaining(self, now: float) -> int:
        self._forget(now)
        return max(int(self.limit - self._used), 0)

    def share(self, now: float) -> float:
        self._forget(now)
        return min(self._used / self.limit, 1.0)

    def reset(self, now: float) -> float:
        self._forget(now)
        return (self._slots[-1][0] + 1 + _SLOTS) * self._slot_s - now if self._slots else 0.0

    def _add(self, cost: int, now: float) -> None:
        number = now // self._slot_s
        if self._slots and self._slots[-1][0] == number:
            self._slots[-1][1] += cost
        else:
            self._slots.append([number, cost])
        self._used += cost

    def _forget(self, now: float) -> None:
        oldest = now // self._slot_s - _SLOTS
        while self._slots and self._slots[0][0] < oldest:
            self._used -= self._slots.popleft()[1]
