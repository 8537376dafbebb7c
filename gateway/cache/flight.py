"""Who asks upstream when many ask the same at once? The first; the others wait for its answer and ask themselves if it has none.

Those who wait see nothing before the first one's answer is whole: what was cut or aborted is nobody's answer but the asker's.
"""
import asyncio
from typing import Generic, TypeVar

from gateway.cache.exact import Answer

K = TypeVar("K")


class Flight:
    """One request that is under way, and who waits for it."""
    __slots__ = ("request", "landed")

    def __init__(self, request: bytes = b"") -> None:
        self.request = request                      # its digest, where the key does not say it
        self.landed: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()


class Flights(Generic[K]):
    """By key. Bounded by the requests in flight: each holds at most one."""

    def __init__(self) -> None:
        self._flights: dict[K, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def get(self, key: K) -> Flight | None:
        return self._flights.get(key)

    def lead(self, key: K, request: bytes = b"") -> Flight:
        self._flights[key] = flight = Flight(request)
        return flight

    def land(self, key: K, answer: Answer | None) -> None:
        """The first one is back. None: nothing that could be given again."""
        flight = self._flights.pop(key, None)
        if flight is not None and not flight.landed.done():
            flight.landed.set_result(answer)
