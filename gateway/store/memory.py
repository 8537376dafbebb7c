"""What is kept without a file? The same ports in memory: for ``memory:``, and for what a disk has not taken yet."""
from collections import OrderedDict, deque
from collections.abc import Sequence

from gateway.core.clock import Clock
from gateway.core.ports import Change, ComboRow, Kept, StateRow
from gateway.store.bounds import IN_MEMORY, MAX_CHANGES, Bounds
from gateway.store.memory_keys import MemoryKeys, MemorySpent
from gateway.store.memory_ledger import MemoryLedger


class MemoryResponses:
    """Responses in the order in which they came; the oldest go first."""

    def __init__(self, clock: Clock, bounds: Bounds = IN_MEMORY) -> None:
        self._clock = clock
        self._bounds = bounds
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._by_item: dict[str, str] = {}
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, kept: Kept) -> None:
        if kept.n_bytes > self._bounds.max_bytes:
            return
        self.forget(kept.id)
        self._kept[kept.id] = kept
        self.n_bytes += kept.n_bytes
        for item in kept.items:
            self._by_item[item] = kept.id
        oldest = self._clock.wall() - self._bounds.ttl_s
        while len(self._kept) > self._bounds.max_count or self.n_bytes > self._bounds.max_bytes \
                or next(iter(self._kept.values())).created < oldest:
            self.forget(next(iter(self._kept)))
            if not self._kept:
                break

    def delete(self, owner: str, id_: str) -> None:
        if self.get(owner, id_) is not None:
            self.forget(id_)

    def forget(self, id_: str) -> None:
        """Whoever's it is."""
        kept = self._kept.pop(id_, None)
        if kept is not None:
            self.n_bytes -= kept.n_bytes
            for item in kept.items:
                if self._by_item.get(item) == id_:
                    del self._by_item[item]

    def get(self, owner: str, id_: str) -> Kept | None:
        kept = self._kept.get(id_)
        if kept is None or kept.owner != owner or kept.created < self._clock.wall() - self._bounds.ttl_s:
            return None
        return kept

    def holds(self, owner: str, item_id: str) -> Kept | None:
        """The newest response with this item."""
        return self.get(owner, self._by_item.get(item_id, ""))

    async def chain(self, owner: str, id_: str, max_depth: int) -> list[Kept]:
        out: list[Kept] = []
        while id_ and len(out) < max_depth and (kept := self.get(owner, id_)) is not None:
            out.append(kept)
            id_ = kept.previous
        return out

    async def holding(self, owner: str, item_ids: list[str]) -> list[Kept]:
        found = {kept.id: kept for item in item_ids if (kept := self.holds(owner, item)) is not None}
        return sorted(found.values(), key=lambda kept: -kept.created)


class MemoryState:
    """What routing learned, for as long as the process lives."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], StateRow] = {}

    async def load(self) -> list[StateRow]:
        return list(self.rows.values())

    async def save(self, rows: Sequence[StateRow]) -> None:
        for row in rows:
            if row.value is None:
                self.rows.pop((row.book, row.key), None)
            else:
                self.rows[row.book, row.key] = row


class NoAnswers:
    """The cache itself is in memory: there is nothing to keep besides."""

    async def load(self, wall: float, max_count: int, max_bytes: int) -> list[tuple[bytes, bytes]]:
        return []

    def put(self, key: bytes, value: bytes, until: float) -> None: ...

    def delete(self, key: bytes) -> None: ...


class MemoryAudit:
    """For as long as the process lives."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque(maxlen=MAX_CHANGES)
        self._n = 0

    def add(self, change: Change) -> None:
        self._n += 1
        change.number = self._n
        self._changes.append(change)

    async def last(self, limit: int, before: int = 0) -> list[Change]:
        found = [change for change in reversed(self._changes) if change.number < (before or self._n + 1)]
        return found[:limit]


class MemoryCombos:
    """For as long as the process lives."""

    def __init__(self) -> None:
        self._rows: dict[str, ComboRow] = {}
        self._revision = 1

    async def revision(self) -> int:
        return self._revision

    async def rows(self) -> list[ComboRow]:
        return sorted(self._rows.values(), key=lambda row: (row.place, row.name))

    async def change(self, put: Sequence[ComboRow], drop: Sequence[str] = ()) -> None:
        for name in drop:
            self._rows.pop(name, None)
        self._rows |= {row.name: row for row in put}
        self._revision += 1


class MemoryStore:
    """``memory:``; gone with the process."""

    reachable = True

    def __init__(self, clock: Clock) -> None:
        self.responses = MemoryResponses(clock)
        self.state = MemoryState()
        self.audit = MemoryAudit()
        self.answers = NoAnswers()
        self.keys = MemoryKeys()
        self.combos = MemoryCombos()
        self.spent = MemorySpent()
        self.ledger = MemoryLedger()

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        await self.ledger.close()
