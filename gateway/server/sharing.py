"""What does this process tell the others of its gateway, and what does it do with what they tell? One look twenty times a second.

    limits, budgets        leased in blocks (policy.leases)
    facts                  cooldowns, breakers, levels, learned limits; who is signed in; what was deleted or cleared
    sessions               where a session was answered last
    responses, answers     put down for all when they are kept, asked for where they are not found (shared.responses, shared.answers)

Nothing waits for it, except a request whose limit has to be leased. While the state cannot be reached, what should be told is kept,
newest first, and told when it is back.
"""
import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from gateway.admin.sessions import Session, Sessions
from gateway.core.bounded import LruMap
from gateway.core.clock import Clock
from gateway.core.ports import SharedState, StateRow
from gateway.policy.leases import Leases
from gateway.routing.keep import BOOKS, follow
from gateway.routing.memory import Bound
from gateway.shared.answers import Shelf
from gateway.shared.posts import Posts
from gateway.shared.responses import KEPT_S, SharedResponses

if TYPE_CHECKING:
    from gateway.server.compose import Parts

log = logging.getLogger("gateway.state")

LOOK_S: Final = 0.05
MAX_UNTOLD: Final = 10_000
FACTS: Final = "facts"
SESSIONS: Final = "sessions"
DAY_S: Final = 86_400.0


class Sharing:
    """One process's part in a shared state."""

    def __init__(self, state: SharedState, parts: "Parts", clock: Clock) -> None:
        self.state = state
        self.admin: Sessions | None = None
        self._parts = parts
        self._clock = clock
        self._posts = Posts()
        self._untold: LruMap[tuple[str, str], StateRow] = LruMap(MAX_UNTOLD)
        self._task: asyncio.Task[None] | None = None
        self._leases = Leases(state, clock.now)
        self._shelf = Shelf(state, self._posts, self._cleared)
        self.responses = SharedResponses(parts.store.responses, state, self._posts, self._deleted)

    async def open(self) -> None:
        parts, state = self._parts, self.state
        parts.limits.leases = parts.budgets.leases = self._leases
        parts.health.memory.news = LruMap(MAX_UNTOLD)
        parts.keeper.told = self._changed
        parts.replays.shelf = self._shelf
        state.hear(self._heard, self._leases.lost)
        await state.open()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self.look()
        await self._posts.close()
        await self.state.close()

    def watch(self, sessions: Sessions) -> None:
        """Who is signed in here is signed in everywhere."""
        sessions.news = {}
        self.admin = sessions

    def _cleared(self) -> None:
        """Answers that could be given again are forgotten, everywhere."""
        wall = self._shelf.since = self._clock.wall()
        self._fact("cache", "cleared", {"at": wall}, DAY_S)

    # ------------------------------------------------------------------ telling
    async def look(self) -> None:
        """Tell what changed, give back and fetch what is leased."""
        if self._parts.health.changed:
            self._parts.keeper.collect()
        if self.admin is not None and self.admin.news:
            self._signed_in(self.admin)
        if self._untold and self.state.up:
            batch = list(self._untold.values())
            self._untold.clear()
            if not await self.state.tell(FACTS, [[row.book, row.key, row.value, row.until] for row in batch]):
                for row in batch:
                    self._untold.setdefault((row.book, row.key), row)
        news = self._parts.health.memory.news
        if news and self.state.up:
            now, wall = self._clock.now(), self._clock.wall()
            rows = [[scope, session, list(bound.account), bound.label, bound.at - now + wall]
                    for (scope, session), bound in news.items()]
            news.clear()
            await self.state.tell(SESSIONS, rows)
        await self._leases.tick()

    def _changed(self, rows: list[StateRow]) -> None:
        for row in rows:
            self._untold.put((row.book, row.key), row)

    def _fact(self, book: str, key: str, value: dict[str, Any] | None, ttl_s: float) -> None:
        self._changed([StateRow(book, key, value, self._clock.wall() + ttl_s)])

    def _deleted(self, id_: str, owner: str) -> None:
        self._fact("deleted", id_, {"owner": owner}, KEPT_S)

    def _signed_in(self, sessions: Sessions) -> None:
        news, sessions.news = sessions.news or {}, {}
        since = self._clock.wall() - self._clock.now()
        for key, one in news.items():
            value = None if one is None else {"stamp": one.stamp, "began": one.began + since, "seen": one.seen + since}
            self._fact("admin", key.hex(), value, DAY_S)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except Exception:
                log.exception("the shared state could not be looked after")

    # ------------------------------------------------------------------ hearing
    def _heard(self, topic: str, rows: list[Any]) -> None:
        now, wall = self._clock.now(), self._clock.wall()
        try:
            if topic == SESSIONS:
                put = self._parts.health.memory.sessions.put
                for scope, session, account, label, at in rows:
                    provider, model, name = account
                    put((scope, session), Bound((provider, model, name), label, at - wall + now))
                return
            facts = [StateRow(*row) for row in rows]
            follow(self._parts.health, [row for row in facts if row.book in BOOKS], now, wall)
            for row in facts:
                if row.book not in BOOKS and row.until > wall:
                    self._take(row, now - wall)
        except (TypeError, ValueError, KeyError):
            log.warning("what another process told is not understood; is it of another version?")

    def _take(self, row: StateRow, shift: float) -> None:
        value = row.value
        if row.book == "admin" and self.admin is not None:
            session = None if value is None else Session(value["stamp"], value["began"] + shift, value["seen"] + shift)
            self.admin.follow(bytes.fromhex(row.key), session)
        elif row.book == "deleted" and value is not None:
            self.responses.forget(row.key, value["owner"])
        elif row.book == "cache" and value is not None and value["at"] > self._shelf.since:
            self._shelf.since = value["at"]
            self._parts.replays.forget()
