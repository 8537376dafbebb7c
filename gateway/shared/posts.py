"""What is sent to the shared state without anybody waiting for it? Bounded: above that it is left out, and who asks for it later
finds nothing."""
import asyncio
from collections.abc import Coroutine
from typing import Any, Final

MAX_WAITING: Final = 512


class Posts:
    """One for a process."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, work: Coroutine[Any, Any, None]) -> None:
        if len(self._tasks) >= MAX_WAITING:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Let what is under way arrive."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=1.0)
        for task in list(self._tasks):
            task.cancel()
