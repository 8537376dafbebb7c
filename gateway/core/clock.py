"""Time, injected: monotonic seconds for durations, wall seconds for what people read."""
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)
