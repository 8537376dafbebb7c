"""What does one process know of answers that may be given again? It outlives reloads; the key says which configuration it was."""
from typing import Any, Final, Protocol

from gateway.cache.exact import Answer, Answers
from gateway.cache.flight import Flights
from gateway.core.bounded import LruMap

MAX_TWINS: Final = 4_096


class Shelf(Protocol):
    """What other processes keep."""
    since: float

    async def find(self, key: bytes, wall: float) -> Answer | None: ...

    def put(self, key: bytes, answer: Answer, wall: float) -> None: ...

    def clear(self) -> None: ...


class Replays:
    """``twins`` leads from the bytes of a request to the key of what it means, so that the same bytes need no reading."""

    __slots__ = ("answers", "flights", "shelf", "twins")

    def __init__(self) -> None:
        self.answers = Answers()
        self.flights: Flights[bytes] = Flights()
        self.twins: LruMap[bytes, bytes] = LruMap(MAX_TWINS)
        self.shelf: Shelf | None = None              # where answers are shared

    def put(self, key: bytes, answer: Answer, wall: float) -> None:
        if self.answers.put(key, answer) and self.shelf is not None:
            self.shelf.put(key, answer, wall)

    async def fetch(self, key: bytes, wall: float) -> Answer | None:
        """What another process kept; from now on it is kept here too."""
        answer = await self.shelf.find(key, wall) if self.shelf is not None else None
        if answer is not None:
            self.answers.restore(((key, answer),), wall)
        return answer

    def clear(self) -> int:
        """Forget everything, here and wherever answers are shared."""
        if self.shelf is not None:
            self.shelf.clear()
        return self.forget()

    def forget(self) -> int:
        self.twins.clear()
        return self.answers.clear()

    def status(self) -> dict[str, Any]:
        """For the operator: entries, bytes and what happened since the start."""
        count = self.answers.statistics
        asked = count.hits + count.misses
        return {"entries": len(self.answers), "bytes": self.answers.n_bytes, "max_entries": self.answers.max_entries,
                "max_bytes": self.answers.max_bytes, "under_way": len(self.flights), "hit_rate": count.hits / asked if asked else None,
                **{name: getattr(count, name) for name in count.__struct_fields__}}
