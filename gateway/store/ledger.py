"""Who keeps the records of requests? A Journal that hands finished calls to the one writer, some hundred at a time.

A request pays for an append. Rows are made when a batch is written: one a request, one an attempt, and the sums that outlive
them in the same transaction, so that they never disagree. Above the writer's bounds attempts and bodies are dropped before
requests and sums, all of them counted; nothing of it ever fails a request.
"""
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from gateway.core.call import Call
from gateway.store.batch import MAX_PENDING, Ids, records
from gateway.store.bodies import Press
from gateway.store.records import PUT_ATTEMPT, PUT_REQUEST
from gateway.store.retention import expire
from gateway.store.rollups import statements
from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

ROW_BYTES: Final = 400           # about what one takes


class Ledger:
    """``core.ports.Ledger`` on a database. ``read`` runs a query on a connection of its own that cannot write."""

    def __init__(self, writer: Writer, read: Read, ids: Ids | None = None) -> None:
        self.read = read
        self.committed = 0                       # requests whose rows are on the disk
        self._writer = writer
        self._ids = ids or Ids()
        self._pending: list[Call] = []
        self._press = Press(writer)
        writer.gather = self.gather

    def add(self, call: Call) -> None:
        pending = self._pending
        pending.append(call)
        if len(pending) == 1:
            self._writer.wake()
        elif len(pending) >= MAX_PENDING:
            self.gather()

    def gather(self) -> None:
        """Make rows of what is pending."""
        calls, self._pending = self._pending, []
        if not calls:
            return
        made = records(calls, self._ids)
        put = self._writer.put
        kept: list[Call] = []
        for call, values in zip(made.calls, made.requests, strict=True):
            row = Row(PUT_REQUEST, values, ROW_BYTES, droppable=False, done=self._done, ledger=True, joined=bool(kept))
            if put(row):
                kept.append(call)
        for sql, key, sums in made.sums if len(kept) == len(made.calls) else statements(kept):
            put(Row(sql, (*key, *sums), ROW_BYTES, droppable=False, joined=True))
        for values in made.attempts:
            put(Row(PUT_ATTEMPT, values, ROW_BYTES, joined=True))
        for call, values in zip(made.calls, made.requests, strict=True):
            if call.bodies is not None:
                self._press.put(values[0], call.bodies)

    def _done(self) -> None:
        self.committed += 1

    @property
    def waiting(self) -> int:
        """Requests and rows that are not on the disk yet."""
        return len(self._pending) + self._writer.waiting

    @property
    def dropped(self) -> int:
        """Rows of attempts and bodies for which there was no room."""
        return self._writer.dropped + self._press.dropped

    @property
    def lost(self) -> int:
        """Requests for which there was no room."""
        return self._writer.lost

    async def expire(self, wall: float, days: int) -> int:
        return await expire(self._writer, self.read, wall, days)

    async def settle(self) -> None:
        """Everything that is pending becomes rows, for the store's last batch."""
        self.gather()
        await self._press.close()

    async def close(self) -> None:
        """The store's last batch takes everything along."""
