"""Who is told of a finished request? Several journals as one: access log, ledger, metrics, whoever else wants to know."""
import asyncio
import logging

from gateway.core.call import Call
from gateway.core.ports import Journal

log = logging.getLogger("gateway.observe")

MAX_TOLD = 20                    # failures of one journal that are logged


class Journals:
    """A Journal of journals. One that fails is said in the log and fails neither the request nor the others."""

    def __init__(self, *journals: Journal) -> None:
        self.journals = list(journals)
        self._failures: dict[int, int] = {}

    def add(self, call: Call) -> None:
        for journal in self.journals:
            try:
                journal.add(call)
            except Exception:
                self._failed(journal)

    def _failed(self, journal: Journal) -> None:
        n = self._failures[id(journal)] = self._failures.get(id(journal), 0) + 1
        if n <= MAX_TOLD:
            log.exception("%s cannot note a request%s", type(journal).__name__,
                          "; it fails again and again, and is not heard of any more" if n == MAX_TOLD else "")

    async def close(self) -> None:
        for outcome in await asyncio.gather(*[journal.close() for journal in self.journals], return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("a journal did not close properly", exc_info=outcome)
