"""How does one worker reach the others? A connection to the supervisor's hub; ``core.ports.SharedState`` on one machine.

The hub lives as long as the supervisor does: when it is gone, so is whoever restarts and drains this worker, and it leaves too
(``orphaned``).
"""
import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from gateway.core.ports import Grant, LeaseAsk
from gateway.shared.frames import Channel

log = logging.getLogger("gateway.workers")

ASK_S: Final = 1.0                            # a hub that is silent for so long is taken for dead
GATHER_S: Final = 0.5

Told = Callable[[str, list[Any]], None]
Answer = Callable[[Any], Awaitable[Any]]


class LocalHub:
    """One worker's side. ``answers``: what is answered when another worker asks all."""

    def __init__(self, path: str, number: int) -> None:
        self.up = False
        self.nodes = 1
        self.number = number
        self.answers: dict[str, Answer] = {}
        self.orphaned: Callable[[], None] | None = None
        self._path = path
        self._channel: Channel | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._told: Told | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self, told: Told, lost: Callable[[], None]) -> None:
        """A hub forgets nothing while its workers live."""
        self._told = told

    async def open(self) -> None:
        """Raises OSError where the hub is not there."""
        self._channel = Channel(*await asyncio.open_unix_connection(self._path))
        self._channel.send([0, self.number])
        try:
            _, _, self.nodes, facts = await self._channel.receive()
        except (EOFError, TypeError, ValueError) as end:
            raise ConnectionError("the hub does not answer") from end
        self.up = True
        for topic, rows in facts.items():
            self._hear(topic, rows)
        self._start(self._listen(self._channel))

    async def close(self) -> None:
        self.up, self.orphaned = False, None
        if self._channel is not None:
            self._channel.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------ SharedState
    async def lease(self, asks: Sequence[LeaseAsk]) -> list[Grant] | None:
        found = await self._ask("lease", asks)
        return None if found is None else msgspec.convert(found, list[Grant])

    async def tell(self, topic: str, rows: Sequence[Any]) -> bool:
        return self._say("tell", topic, rows)

    async def get(self, book: str, key: str) -> bytes | None:
        found: bytes | None = await self._ask("get", book, key)
        return found

    async def put(self, book: str, key: str, value: bytes, ttl_s: float) -> None:
        self._say("put", book, key, value, ttl_s)

    async def drop(self, book: str, keys: Sequence[str]) -> None:
        self._say("drop", book, keys)

    # ------------------------------------------------------------------ the other workers
    async def gather(self, what: str, mine: Any = None, given: Any = None) -> list[Any]:
        """What every other worker answers to this; those that are late are left out."""
        found = await self._ask("gather", what, mine, given, wait_s=GATHER_S)
        return found or []

    def ready(self, where: Any) -> None:
        self._say("ready", where)

    def reload(self) -> None:
        """The others should read the configuration too."""
        self._say("reload")

    # ------------------------------------------------------------------ inside
    def _say(self, verb: str, *given: Any) -> bool:
        return self._channel is not None and self.up and self._channel.send([0, verb, *given])

    async def _ask(self, verb: str, *given: Any, wait_s: float = ASK_S) -> Any:
        if self._channel is None or not self.up:
            return None
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if not self._channel.send([number, verb, *given]):
                return None
            async with asyncio.timeout(wait_s):
                return await answer
        except TimeoutError:
            log.warning("the supervisor does not answer: %s", verb)
            return None
        finally:
            del self._waiting[number]

    async def _listen(self, channel: Channel) -> None:
        try:
            while True:
                self._take(await channel.receive())
        except (EOFError, TypeError, ValueError):
            self.up = False
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result(None)
            if self.orphaned is not None:
                log.error("the supervisor is gone: this worker stops")
                self.orphaned()

    def _take(self, frame: list[Any]) -> None:
        number, *rest = frame
        if number:
            answer = self._waiting.get(number)
            if answer is not None and not answer.done():
                answer.set_result(rest[0])
        elif rest[0] == "told":
            self._hear(rest[1], rest[2])
        elif rest[0] == "ask":
            self._start(self._answer(*rest[1:]))

    def _hear(self, topic: str, rows: list[Any]) -> None:
        if self._told is not None:
            self._told(topic, rows)

    async def _answer(self, question: int, what: str, given: Any) -> None:
        known = self.answers.get(what)
        self._say("answer", question, await known(given) if known is not None else None)

    def _start(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
