"""What holds the workers of one machine together? The supervisor's hub: leases of limits, what one tells all, what one asks all.

Workers are its clients on a UNIX socket that only this user may open. Everything is bounded: facts by number, values by bytes,
answers by time. A worker that went away holds nothing any more.
"""
import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gateway.core.bounded import LruMap
from gateway.core.ports import LeaseAsk
from gateway.shared.book import Book
from gateway.shared.frames import Channel

log = logging.getLogger("gateway.workers")

MAX_FACTS: Final = 10_000                     # rows of each topic that a worker who starts is told
MAX_TOPICS: Final = 16
MAX_VALUES: Final = 20_000
MAX_VALUE_BYTES: Final = 64 * 1024 * 1024
ANSWER_S: Final = 0.2                         # for all workers to answer a question


class Values:
    """What workers put down for each other; the oldest go first."""

    def __init__(self, max_bytes: int = MAX_VALUE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._kept: LruMap[tuple[str, str], tuple[bytes, float]] = LruMap(MAX_VALUES)

    def get(self, book: str, key: str, now: float) -> bytes | None:
        found = self._kept.get((book, key))
        return found[0] if found is not None and found[1] > now else None

    def put(self, book: str, key: str, value: bytes, until: float) -> None:
        self.drop(book, key)
        while self._kept and (self._n_bytes + len(value) > self._max_bytes or len(self._kept) >= MAX_VALUES):
            self.drop(*next(iter(self._kept)))
        if len(value) <= self._max_bytes:
            self._kept.put((book, key), (value, until))
            self._n_bytes += len(value)

    def drop(self, book: str, key: str) -> None:
        gone = self._kept.pop((book, key), None)
        self._n_bytes -= len(gone[0]) if gone is not None else 0


class Hub:
    """``ready`` and ``reload`` are what workers may want of the supervisor; both get the worker's number."""

    def __init__(self, ready: Callable[[int, Any], None], reload: Callable[[int], None], clock: Callable[[], float] = time.monotonic,
                 expected: int = 1) -> None:
        self.book = Book()
        self.values = Values()
        self.expected = expected
        self._ready = ready
        self._reload = reload
        self._clock = clock
        self._workers: dict[int, Channel] = {}
        self._facts: dict[str, deque[Any]] = {}
        self._questions: dict[int, tuple[dict[int, Any], asyncio.Event, int]] = {}
        self._gathering: set[asyncio.Task[None]] = set()
        self._asked = 0
        self._server: asyncio.AbstractServer | None = None
        self._past: dict[int, Any] = {}
        # A worker is gone: with its last answer to ``metrics``. What is answered besides, for those that are gone.
        self.left: Callable[[Any], None] = lambda last: None
        self.besides: Callable[[str], list[Any]] = lambda what: []

    async def open(self, path: str) -> None:
        """Raises OSError."""
        self._server = await asyncio.start_unix_server(self._serve, path)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for channel in list(self._workers.values()):
            channel.close()

    # ------------------------------------------------------------------ one worker
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel, number = Channel(reader, writer), -1
        try:
            number = int((await channel.receive())[1])
            self._workers[number] = channel
            channel.send([0, "welcome", self.expected, {topic: list(rows) for topic, rows in self._facts.items()}])
            while True:
                self._take(number, channel, await channel.receive())
        except (EOFError, TypeError, ValueError, IndexError, msgspec.ValidationError):
            pass
        finally:
            channel.close()
            if self._workers.get(number) is channel:
                del self._workers[number]
                self._gone(number)

    def _gone(self, number: int) -> None:
        self.book.left(str(number))
        for answers, done, asker in self._questions.values():
            if len(answers) >= len(self._workers) - (asker in self._workers):
                done.set()
        self.left(self._past.pop(number, None))

    def _take(self, number: int, channel: Channel, frame: list[Any]) -> None:
        about, verb, *given = frame
        if verb == "lease":
            asks = msgspec.convert(given[0], list[LeaseAsk])
            channel.send([about, self.book.lease(str(number), asks, self._clock())])
        elif verb == "tell":
            self._tell(number, *given)
        elif verb == "get":
            channel.send([about, self.values.get(given[0], given[1], self._clock())])
        elif verb == "put":
            book, key, value, ttl_s = given
            self.values.put(book, key, value, self._clock() + ttl_s)
        elif verb == "drop":
            for key in given[1]:
                self.values.drop(given[0], key)
        elif verb == "gather":
            task = asyncio.get_running_loop().create_task(self._gather(about, number, channel, *given))
            self._gathering.add(task)
            task.add_done_callback(self._gathering.discard)
        elif verb == "answer":
            self._answered(number, *given)
        elif verb == "ready":
            self._ready(number, given[0])
        elif verb == "reload":
            self._reload(number)

    def _tell(self, number: int, topic: str, rows: list[Any]) -> None:
        kept = self._facts.get(topic)
        if kept is None:
            if len(self._facts) >= MAX_TOPICS:
                return
            kept = self._facts[topic] = deque(maxlen=MAX_FACTS)
        kept.extend(rows)
        for other, channel in self._workers.items():
            if other != number:
                channel.send([0, "told", topic, rows])

    # ------------------------------------------------------------------ all workers
    async def _gather(self, about: int, number: int, channel: Channel, what: str, mine: Any, given: Any) -> None:
        """What every other worker answers, as far as it answers soon."""
        self._asked += 1
        question, others = self._asked, [(n, other) for n, other in self._workers.items() if n != number]
        answers, done = dict[int, Any](), asyncio.Event()
        self._questions[question] = answers, done, number
        try:
            if [other for _, other in others if other.send([0, "ask", question, what, given])]:
                async with asyncio.timeout(ANSWER_S):
                    await done.wait()
        except TimeoutError:
            log.warning("%d of %d workers did not answer in time: %s", len(others) - len(answers), len(others), what)
        finally:
            del self._questions[question]
        if what == "metrics":
            self._past |= {number: mine, **answers}
        channel.send([about, [*(answers[n] for n in sorted(answers)), *self.besides(what)]])

    def _answered(self, number: int, question: int, answer: Any) -> None:
        found = self._questions.get(question)
        if found is not None:
            answers, done, asker = found
            answers[number] = answer
            if len(answers) >= len(self._workers) - (asker in self._workers):
                done.set()
