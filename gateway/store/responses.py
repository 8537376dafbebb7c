"""How are responses kept in SQLite? What is not on the disk yet is read from memory, so a response can be gone on from at once."""
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from gateway.core.bounded import LruMap
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.ports import Kept
from gateway.store.bounds import ON_DISK, UNWRITTEN, Bounds
from gateway.store.memory import MemoryResponses
from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

EXPIRE_EVERY: Final = 1_000                      # responses
TRIMMED: Final = 0.9                             # of the limits, so that the next trim is not the next response's
MAX_DELETED: Final = 10_000                      # deletions that wait for the disk
MAX_ASKED: Final = 200                           # items looked up at once

PUT: Final = """INSERT OR REPLACE INTO responses (id, owner, created, previous, target, body, input, n_bytes, items)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
DELETE: Final = "DELETE FROM responses WHERE id = ? AND owner = ?"
EXPIRE: Final = "DELETE FROM responses WHERE created < ?"
MEASURE: Final = "SELECT count(*), total(n_bytes) FROM responses"
TRIM: Final = """DELETE FROM responses WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER newest AS place, sum(n_bytes) OVER newest AS upto FROM responses
        WINDOW newest AS (ORDER BY created DESC, id ROWS UNBOUNDED PRECEDING)
    ) AS aged WHERE place > ? OR upto > ?)"""
_COLUMNS: Final = "r.id, r.owner, r.created, r.previous, r.target, r.body, r.input"
CHAIN: Final = f"""WITH RECURSIVE back (id, depth) AS (
    SELECT CAST(? AS TEXT), 1
    UNION ALL
    SELECT r.previous, depth + 1 FROM back JOIN responses r ON r.id = back.id
    WHERE r.owner = ? AND r.previous <> '' AND depth < ?
) SELECT {_COLUMNS} FROM back JOIN responses r ON r.id = back.id WHERE r.owner = ? AND r.created >= ? ORDER BY depth"""
HOLDING: Final = f"""SELECT DISTINCT {_COLUMNS} FROM json_each(?) asked
JOIN response_items i ON i.item_id = asked.value JOIN responses r ON r.id = i.response_id
WHERE r.owner = ? AND r.created >= ? ORDER BY r.created DESC LIMIT ?"""


class SqliteResponses:
    """``core.ports.Responses``. ``read`` runs a query on a connection that cannot write."""

    def __init__(self, writer: Writer, read: Read, clock: Clock, bounds: Bounds = ON_DISK,
                 unwritten: Bounds = UNWRITTEN) -> None:
        self._writer = writer
        self._read = read
        self._clock = clock
        self._bounds = bounds
        self._unwritten = MemoryResponses(clock, msgspec.structs.replace(unwritten, ttl_s=bounds.ttl_s))
        self._deleted: LruMap[tuple[str, str], int] = LruMap(MAX_DELETED)
        self._n_deleted = self._n_put = 0
        self._count = self._n_bytes = 0          # on the disk, at most; reading all of it takes 5 µs a response

    def put(self, kept: Kept) -> None:
        self._deleted.pop((kept.owner, kept.id), None)
        self._unwritten.put(kept)

        def written() -> None:
            if self._unwritten.get(kept.owner, kept.id) is kept:
                self._unwritten.forget(kept.id)

        # A response that the writer has no room for lives on in memory, as long as there is some.
        values = (kept.id, kept.owner, kept.created, kept.previous, kept.target, kept.body, kept.input, kept.n_bytes,
                  listed(kept.items))
        self._writer.put(Row(PUT, values, kept.n_bytes, done=written))
        self._n_put += 1
        self._count += 1
        self._n_bytes += kept.n_bytes
        if self._n_put % EXPIRE_EVERY == 0:
            self._writer.put(Row(EXPIRE, (self._clock.wall() - self._bounds.ttl_s,)))
        if self._count > self._bounds.max_count or self._n_bytes > self._bounds.max_bytes:
            self.trim(TRIMMED)

    def delete(self, owner: str, id_: str) -> None:
        self._unwritten.delete(owner, id_)
        self._n_deleted += 1
        mine = self._n_deleted
        self._deleted.put((owner, id_), mine)

        def written() -> None:
            if self._deleted.get((owner, id_)) == mine:
                del self._deleted[owner, id_]

        self._writer.put(Row(DELETE, (id_, owner), droppable=False, done=written))

    async def open(self) -> None:
        """Begin with what the file holds."""
        try:
            for count, n_bytes in await self._read(MEASURE, ()):
                self._count, self._n_bytes = count, int(n_bytes)
        except GatewayError:
            pass                                     # the reader has said so
        self.trim()

    def trim(self, share: float = 1.0) -> None:
        """Let go of what is over this share of the limits, with the next batch."""
        self._writer.put(Row(EXPIRE, (self._clock.wall() - self._bounds.ttl_s,)))
        if self._count > self._bounds.max_count * share or self._n_bytes > self._bounds.max_bytes * share:
            count, n_bytes = int(self._bounds.max_count * share), int(self._bounds.max_bytes * share)
            self._writer.put(Row(TRIM, (count, n_bytes)))
            self._count, self._n_bytes = min(self._count, count), min(self._n_bytes, n_bytes)

    async def chain(self, owner: str, id_: str, max_depth: int) -> list[Kept]:
        out: list[Kept] = []
        while id_ and len(out) < max_depth:
            # Memory first: what is not there any more is on the disk by now.
            found = await self._unwritten.chain(owner, id_, max_depth - len(out)) \
                or await self._written(owner, id_, max_depth - len(out))
            if not found:
                break
            out += found
            id_ = found[-1].previous
        return out

    async def _written(self, owner: str, id_: str, max_depth: int) -> list[Kept]:
        oldest = self._clock.wall() - self._bounds.ttl_s
        out: list[Kept] = []
        for row in await self._read(CHAIN, (id_, owner, max_depth, owner, oldest)):
            kept = kept_of(row)
            if (owner, kept.id) in self._deleted or kept.id != (out[-1].previous if out else id_):
                break                                # what lies before one that is gone cannot be reached
            out.append(kept)
        return out

    async def holding(self, owner: str, item_ids: list[str]) -> list[Kept]:
        item_ids = item_ids[:MAX_ASKED]
        found = {kept.id: kept for kept in await self._unwritten.holding(owner, item_ids)}
        oldest = self._clock.wall() - self._bounds.ttl_s
        for row in await self._read(HOLDING, (listed(item_ids), owner, oldest, MAX_ASKED)):
            if (owner, row[0]) not in self._deleted:
                found.setdefault(row[0], kept_of(row))
        return sorted(found.values(), key=lambda kept: -kept.created)


def listed(ids: Sequence[str]) -> str:
    """As SQLite takes a list: one JSON array."""
    return msgspec.json.encode(ids).decode()


def kept_of(row: Any) -> Kept:
    id_, owner, created, previous, target, body, input_ = row
    return Kept(id=id_, owner=owner, created=created, previous=previous, target=target, body=body, input=input_)
