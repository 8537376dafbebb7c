"""What is a store on a database? Every port of it, on one writer and two readers: that of requests, and that of the operator."""
from collections.abc import Iterable
from typing import Any, Protocol

from gateway.core.clock import Clock
from gateway.store.answers import SqliteAnswers
from gateway.store.audit import SqliteAudit
from gateway.store.combos import SqliteCombos
from gateway.store.keys import SqliteKeys, SqliteSpent
from gateway.store.ledger import Ledger
from gateway.store.responses import SqliteResponses
from gateway.store.state import SqliteState
from gateway.store.writer import Place, Writer


class Reader(Protocol):
    """A connection that cannot write. Raises GatewayError where nothing can be read; [] as long as there are no tables."""

    async def rows(self, sql: str, values: tuple[Any, ...] = ()) -> Iterable[Any]: ...

    async def close(self) -> None: ...


class DatabaseStore:
    """``core.ports.Store``. Its statements are SQLite's; a place that says them otherwise translates them."""

    def __init__(self, place: Place, reader: Reader, pages: Reader, clock: Clock) -> None:
        self.writer = Writer(place)
        self.reader = reader
        self.pages = pages                           # the operator's: nobody's request waits for what they look at
        self.responses = SqliteResponses(self.writer, reader.rows, clock)
        self.state = SqliteState(self.writer, reader.rows, clock)
        self.audit = SqliteAudit(self.writer, reader.rows)
        self.answers = SqliteAnswers(self.writer, reader.rows)
        self.keys = SqliteKeys(self.writer, reader.rows)
        self.combos = SqliteCombos(self.writer, reader.rows)
        self.spent = SqliteSpent(self.writer, reader.rows)
        self.ledger = Ledger(self.writer, pages.rows)

    @property
    def reachable(self) -> bool:
        return not self.writer.failing

    async def open(self) -> None:
        await self.writer.open()
        await self.responses.open()

    async def close(self) -> None:
        await self.ledger.settle()
        await self.reader.close()
        await self.pages.close()
        await self.writer.close()
