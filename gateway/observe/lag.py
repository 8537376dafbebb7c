"""How late is the event loop? A timer that should fire four times a second tells; some 10 µs each."""
import asyncio
from typing import Final

from gateway.observe.families import SHORT
from gateway.observe.tallies import Spread
from gateway.pipeline.ground import Inflight

PERIOD_S: Final = 0.25
FORGETS: Final = 0.5             # of what it was, a quarter of a second later


class Lag:
    """Tells ``inflight.lag_s``: the last lateness, or a greater one before it that fades."""

    def __init__(self, inflight: Inflight) -> None:
        self.spread = Spread(SHORT)
        self._inflight = inflight
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._next(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + PERIOD_S
        self._timer = loop.call_at(due, self._fired, loop, due)

    def _fired(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.late(max(loop.time() - due, 0.0))
        self._next(loop)

    def late(self, lag_s: float) -> None:
        self.spread.add(lag_s)
        self._inflight.lag_s = max(lag_s, self._inflight.lag_s * FORGETS)
