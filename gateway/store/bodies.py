"""How are bodies kept? Masked, cut, compressed, off the loop; where there is no room they are dropped first, and counted."""
import asyncio
from collections import deque
from typing import Final

from gateway.store.pressing import PUT_ARTIFACT, Bodies, pressed
from gateway.store.writer import Row, Writer

MAX_WAITING: Final = 256
MAX_BYTES: Final = 32 << 20      # that wait to be compressed


class Press:
    """Compresses what comes, one request after the other, in a thread."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: deque[tuple[int, Bodies]] = deque()
        self._n_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

    def put(self, id_: int, bodies: Bodies) -> None:
        n_bytes = len(bodies.request) + len(bodies.response)
        if len(self._waiting) >= MAX_WAITING or self._n_bytes + n_bytes > MAX_BYTES:
            self.dropped += 1
            return
        self._waiting.append((id_, bodies))
        self._n_bytes += n_bytes
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._waiting:
            id_, bodies = self._waiting[0]
            for values in await asyncio.to_thread(pressed, id_, bodies):
                self._writer.put(Row(PUT_ARTIFACT, values, len(values[-1])))
            self._waiting.popleft()
            self._n_bytes -= len(bodies.request) + len(bodies.response)

    async def close(self) -> None:
        """What waits becomes rows."""
        if self._task is not None:
            await self._task
