"""What does one process know of answers that may be given again? It outlives reloads; the key says which configuration it was."""
from typing import Any, Final

from gateway.cache.exact import Answers
from gateway.cache.flight import Flights
from gateway.core.bounded import LruMap

MAX_TWINS: Final = 4_096


class Replays:
    """``twins`` leads from the bytes of a request to the key of what it means, so that the same bytes need no reading."""

    __slots__ = ("answers", "flights", "twins")

    def __init__(self) -> None:
        self.answers = Answers()
        self.flights: Flights[bytes] = Flights()
        self.twins: LruMap[bytes, bytes] = LruMap(MAX_TWINS)

    def clear(self) -> int:
        self.twins.clear()
        return self.answers.clear()

    def status(self) -> dict[str, Any]:
        """For the operator: entries, bytes and what happened since the start."""
        count = self.answers.statistics
        asked = count.hits + count.misses
        return {"entries": len(self.answers), "bytes": self.answers.n_bytes, "max_entries": self.answers.max_entries,
                "max_bytes": self.answers.max_bytes, "under_way": len(self.flights), "hit_rate": count.hits / asked if asked else None,
                **{name: getattr(count, name) for name in count.__struct_fields__}}
