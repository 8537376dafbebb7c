"""Which cooldowns run now? A book that drops what has ended by itself: nobody who looks pays for those who still rest."""
from collections.abc import KeysView
from heapq import heapify, heappop, heappush

from gateway.core.bounded import LruMap
from gateway.routing.cooldown import Cooldown
from gateway.routing.places import Key

SLACK = 64                                    # ends that are told no more (lengthened, taken back) and may wait to be forgotten


class Cooldowns(LruMap[Key, Cooldown]):
    """By key. Entries are begun with ``begin`` and may be deleted like any other; the ends lie in a heap beside them."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._ends: list[tuple[float, Key]] = []

    def begin(self, key: Key, cooldown: Cooldown) -> None:
        self.put(key, cooldown)
        heappush(self._ends, (cooldown.until, key))
        if len(self._ends) > 2 * len(self) + SLACK:
            self._ends = [(found.until, each) for each, found in self.items()]
            heapify(self._ends)

    def running(self, now: float) -> KeysView[Key]:
        """Who rests: a view, which goes along with what changes."""
        ends = self._ends
        while ends and ends[0][0] <= now:
            key = heappop(ends)[1]
            found = self.get(key)
            if found is not None and found.until <= now:
                del self[key]
        return self.keys()
