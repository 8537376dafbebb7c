"""What goes upstream that no client waits for, and how much of it? Hedges by a budget, shadows by number; both outlive a reload."""
import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from gateway.upstream.poster import Poster

BURST: Final = 10.0                              # hedges that may be saved up


class Budget:
    """A bucket of tokens. It begins with one, so that the first slow request is helped."""

    __slots__ = ("_level", "spent")

    def __init__(self) -> None:
        self._level = 1.0
        self.spent = 0                           # since the start, for those who count

    def earn(self, share: float) -> None:
        self._level = min(self._level + share, BURST)

    @property
    def left(self) -> bool:
        return self._level >= 1.0

    def spend(self) -> None:
        self._level -= 1.0
        self.spent += 1


class Extras:
    """The extra work of one process."""

    __slots__ = ("hedges", "poster", "shadows")

    def __init__(self) -> None:
        self.hedges = Budget()
        self.poster = Poster()                   # asks the operator's judge
        self.shadows: dict[asyncio.Task[None], str] = {}     # -> where it goes

    def running(self, target: str) -> int:
        return sum(1 for where in self.shadows.values() if where == target)

    def start(self, target: str, shadow: Coroutine[Any, Any, None]) -> None:
        """Run it in the background; the caller has looked at how many there are."""
        task = asyncio.create_task(shadow)
        self.shadows[task] = target
        task.add_done_callback(self.shadows.pop)

    async def close(self) -> None:
        """Leave them all now."""
        running = list(self.shadows)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self.poster.close()
