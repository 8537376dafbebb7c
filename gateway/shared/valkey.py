"""How do nodes share their state through Valkey or Redis? ``core.ports.SharedState`` over scripts, streams and plain values.

Everything lies below one prefix and runs out. No secret is there: limits are named by digests, accounts by fingerprints of their keys.
A server that cannot be reached is said once in the log; nobody waits for it until it answers again. One that comes back empty has
another epoch: then everybody tells it anew what was taken lately.
"""
import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.core.ports import Grant, LeaseAsk
from gateway.shared.scripts import BEAT, LEASE

if TYPE_CHECKING:
    from valkey.asyncio import Valkey
    from valkey.commands.core import AsyncScript

log = logging.getLogger("gateway.state")

ASK_S: Final = 0.5                            # a server that is silent for so long is down
CONNECT_S: Final = 1.0
BEAT_S: Final = 1.0
AGAIN_S: Final = 0.25                         # between two tries to come back
GONE_S: Final = 15                            # a node that said nothing for so long holds nothing any more
FOLLOW_MS: Final = 1_000
CONNECTIONS: Final = 32
ENTRIES: Final = 10_000                       # of each topic; one is what a node tells at once
TOPIC_S: Final = 172_800
READ: Final = 500
TOPICS: Final = ("facts", "sessions")
MAX_VALUE_BYTES: Final = 8 * 1024 * 1024

Told = Callable[[str, list[Any]], None]


class ValkeyState:
    """One process. Raises nothing but cancellation."""

    def __init__(self, url: str, prefix: str) -> None:
        self.up = False
        self.nodes = 1
        self.outages = 0
        self._url = url
        self._prefix = prefix
        self._me = secrets.token_hex(8)
        self._epoch = b""
        self._seen = dict.fromkeys((f"{prefix}{topic}" for topic in TOPICS), "0")
        self._told: Told | None = None
        self._lost: Callable[[], None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Valkey
        self._reader: Valkey
        self._lease: AsyncScript
        self._beat: AsyncScript

    def hear(self, told: Told, lost: Callable[[], None]) -> None:
        self._told, self._lost = told, lost

    async def open(self) -> None:
        from valkey.asyncio import Valkey

        self._client = Valkey.from_url(self._url, socket_timeout=ASK_S, socket_connect_timeout=CONNECT_S, max_connections=CONNECTIONS)
        self._reader = Valkey.from_url(self._url, socket_timeout=FOLLOW_MS / 1_000 + CONNECT_S, socket_connect_timeout=CONNECT_S)
        self._lease, self._beat = self._client.register_script(LEASE), self._client.register_script(BEAT)
        self.up = True
        if (found := await self._do(self._said)) is not None:
            self._live(found)
            await self._read(block_ms=None)
        self._tasks = [asyncio.create_task(self._living()), asyncio.create_task(self._following())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.up:
            await self._do(lambda: self._client.zrem(f"{self._prefix}nodes", self._me))
        self.up = False
        await self._client.aclose()
        await self._reader.aclose()

    # ------------------------------------------------------------------ SharedState
    async def lease(self, asks: Sequence[LeaseAsk]) -> list[Grant] | None:
        keys = [f"{self._prefix}nodes", *(f"{self._prefix}limit:{ask.key}" for ask in asks)]
        words: list[Any] = [self._me]
        for ask in asks:
            words += (ask.kind, ask.limit, ask.want, ask.least, ask.back, ask.holding, ask.gone, ask.base)
        found = await self._do(lambda: self._lease(keys=keys, args=words))
        if found is None:
            return None
        return [Grant(int(found[i]), int(found[i + 1]), float(found[i + 2])) for i in range(0, len(found), 3)]

    async def tell(self, topic: str, rows: Sequence[Any]) -> bool:
        name = f"{self._prefix}{topic}"
        entry: dict[str | bytes, str | bytes] = {"by": self._me, "rows": msgspec.msgpack.encode(rows)}

        async def add() -> bool:
            async with self._client.pipeline(transaction=False) as line:
                line.xadd(name, entry, maxlen=ENTRIES, approximate=True)  # type: ignore[type-var]
                line.expire(name, TOPIC_S)
                await line.execute()
            return True

        return bool(await self._do(add))

    async def get(self, book: str, key: str) -> bytes | None:
        found: bytes | None = await self._do(lambda: self._client.get(self._name(book, key)))
        return found

    async def put(self, book: str, key: str, value: bytes, ttl_s: float) -> None:
        if len(value) <= MAX_VALUE_BYTES and ttl_s > 0:
            await self._do(lambda: self._client.set(self._name(book, key), value, px=max(int(ttl_s * 1_000), 1)))

    async def drop(self, book: str, keys: Sequence[str]) -> None:
        if keys:
            await self._do(lambda: self._client.delete(*(self._name(book, key) for key in keys)))

    def _name(self, book: str, key: str) -> str:
        return f"{self._prefix}{book}:{key}"

    # ------------------------------------------------------------------ up and down
    async def _do(self, work: Callable[[], Any]) -> Any:
        """None where the server does not answer; from then on nobody asks until it is back."""
        from valkey.exceptions import ValkeyError

        if not self.up:
            return None
        try:
            async with asyncio.timeout(ASK_S):
                return await work()
        except (ValkeyError, OSError, TimeoutError) as error:
            self._down(error)
            return None

    def _down(self, error: Exception) -> None:
        if self.up:
            self.up = False
            self.outages += 1
            log.error("the shared state cannot be reached (%s): this node goes on with what it has leased, then with 1/%d of every "
                      "limit, until it is back", str(error) or type(error).__name__, self.nodes)

    async def _said(self) -> Any:
        names = [f"{self._prefix}nodes", f"{self._prefix}epoch"]
        return await self._beat(keys=names, args=[self._me, secrets.token_hex(8), GONE_S])

    def _live(self, found: Any) -> None:
        """The server answered: how many nodes there are, and whether everything was lost."""
        self.nodes, epoch = max(int(found[0]), 1), bytes(found[1])
        before, self._epoch = self._epoch, epoch
        if before and before != epoch:
            log.warning("the shared state has lost everything; it is told anew what was taken lately")
            if self._lost is not None:
                self._lost()

    async def _living(self) -> None:
        """Say that this node lives, and come back."""
        from valkey.exceptions import ValkeyError

        while True:
            await asyncio.sleep(BEAT_S if self.up else AGAIN_S)
            if self.up:
                if (found := await self._do(self._said)) is not None:
                    self._live(found)
                continue
            try:
                async with asyncio.timeout(CONNECT_S):
                    found = await self._said()
            except (ValkeyError, OSError, TimeoutError):
                continue
            self._live(found)
            self.up = True
            log.warning("the shared state is back")

    # ------------------------------------------------------------------ what others tell
    async def _following(self) -> None:
        from valkey.exceptions import ValkeyError

        while True:
            try:
                await self._read(FOLLOW_MS)
            except (ValkeyError, OSError, TimeoutError):
                await asyncio.sleep(AGAIN_S)
            except Exception:
                log.exception("what another node told cannot be read")
                await asyncio.sleep(AGAIN_S)

    async def _read(self, block_ms: int | None) -> None:
        """What was told since the last time; without ``block_ms`` all that there is."""
        from valkey.exceptions import ValkeyError

        more = True
        while more:
            try:
                found = await self._reader.xread(self._seen, count=READ, block=block_ms)
            except (ValkeyError, OSError, TimeoutError):
                if block_ms is None:
                    return
                raise
            for name, entries in found:
                for number, entry in entries:
                    self._seen[name.decode()] = number
                    if entry.get(b"by") != self._me.encode() and self._told is not None:
                        self._told(name.decode().removeprefix(self._prefix), msgspec.msgpack.decode(entry[b"rows"]))
            more = block_ms is None and bool(found)
