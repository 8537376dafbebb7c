"""How do notices reach the operator's addresses? A bounded queue and a task for each, signed, tried again, left alone when dead.

Nothing of it is ever in the way of a request: telling is an append. Ten failures in a row, and an address rests for ten minutes.
"""
import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from gateway.config.schema import Webhook
from gateway.core.call import Call
from gateway.core.clock import iso
from gateway.core.errors import GatewayError
from gateway.core.ids import token
from gateway.core.signing import signed as signed
from gateway.observe.notices import FAILED, Notices
from gateway.pipeline.ground import Ground
from gateway.policy.budget import Budgets
from gateway.upstream.poster import Poster

log = logging.getLogger("gateway.webhooks")

MAX_WAITING: Final = 1_000
TIMEOUT_S: Final = 10.0
PAUSES_S: Final = (1.0, 5.0, 30.0, 120.0)        # before the second try, the third …
MAX_FAILURES: Final = 10
REST_S: Final = 600.0
WATCH_S: Final = 2.0
CLOSE_S: Final = 2.0
AGAIN: Final = frozenset({408, 425, 429})        # of 4xx those that may pass
PROVIDERS: Final = frozenset({"provider.down", "provider.recovered"})

Pause = Callable[[float], Awaitable[None]]


def written(event: str, data: dict[str, Any], wall: float) -> tuple[str, bytes]:
    """(a name for it, what is posted)."""
    name = "evt_" + token()
    return name, msgspec.json.encode({"id": name, "event": event, "timestamp": iso(wall), "data": data})


async def deliver(hook: Webhook, event: str, name: str, body: bytes, poster: Poster, wall: float) -> int:
    """One try; the status of the answer. Raises GatewayError."""
    headers = {"Content-Type": "application/json", "X-Gateway-Event": event, "X-Gateway-Delivery": name,
               "X-Gateway-Timestamp": str(int(wall))}
    if secret := hook.secret.reveal():
        headers["X-Gateway-Signature"] = signed(secret, int(wall), body)
    return await poster.post(hook.url.reveal(), body, headers, private=hook.allow_private, timeout_s=TIMEOUT_S)


class Line:
    """What waits for one address."""

    def __init__(self, hook: Webhook, poster: Poster, counts: dict[str, int], place: int, pause: Pause = asyncio.sleep) -> None:
        self.hook = hook
        self.failures = 0                        # in a row
        self._poster = poster
        self._counts = counts
        self._name = f"webhooks[{place}]"        # an address may hold secrets
        self._pause = pause
        self._waiting: deque[tuple[str, str, bytes]] = deque()
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def put(self, event: str, name: str, body: bytes) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._counts["dropped"] += 1
            return
        self._waiting.append((event, name, body))
        self._empty.clear()
        self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Send what waits if that is quickly done; the rest is counted as dropped."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._empty.wait()
        except TimeoutError:
            self._counts["dropped"] += len(self._waiting)
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            while self._waiting:
                done = await self._sent(*self._waiting[0])
                self._waiting.popleft()
                self._counts["sent" if done else "failed"] += 1
            self._news.clear()
            self._empty.set()

    async def _sent(self, event: str, name: str, body: bytes) -> bool:
        said = ""
        for pause_s in (*PAUSES_S, 0.0):
            said, final = await self._tried(event, name, body)
            if not said:
                self.failures = 0
                return True
            self.failures += 1
            rests, last = self.failures % MAX_FAILURES == 0, final or not pause_s
            if rests:
                log.warning("%s failed %d times in a row and rests for %d minutes", self._name, self.failures, REST_S // 60)
            if rests or not last:
                await self._pause(REST_S if rests else pause_s)
            if last:
                break
        log.warning("%s did not take %s: %s", self._name, event, said)
        return False

    async def _tried(self, event: str, name: str, body: bytes) -> tuple[str, bool]:
        """(why it was not taken, "" = it was; is it no use to ask again?)."""
        try:
            status = await deliver(self.hook, event, name, body, self._poster, time.time())
        except GatewayError as error:
            return error.message, error.kind == "bad_request"
        except Exception:
            log.exception("%s cannot be told of %s", self._name, event)
            return "it failed inside the gateway", True
        if 200 <= status < 300:
            return "", True
        return f"it answered {status}", 300 <= status < 500 and status not in AGAIN


class Webhooks:
    """A Journal that tells addresses. Without any it does nothing; ``use`` is told of every configuration."""

    def __init__(self, budgets: Budgets, wall: Callable[[], float], poster: Poster | None = None) -> None:
        self.counts = {"sent": 0, "failed": 0, "dropped": 0}
        self.notices = Notices(self.tell, budgets, wall)
        self.ground: Callable[[], Ground] | None = None
        self._wall = wall
        self._poster = poster or Poster()
        self._lines: list[Line] = []
        self._wanted: frozenset[str] = frozenset()
        self._leaving: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.leads = True                        # of several workers one watches what all see

    def use(self, hooks: tuple[Webhook, ...], secrets: tuple[str, ...]) -> None:
        """Go by these from now on; what waits for an address that stays goes on waiting."""
        self.notices.secrets = secrets
        before = {line.hook: line for line in self._lines}
        self._lines = [before.pop(hook) if hook in before else Line(hook, self._poster, self.counts, place)
                       for place, hook in enumerate(dict.fromkeys(hooks))]
        for line in before.values():
            leaving = asyncio.create_task(line.close())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        self._wanted = frozenset(event for event in ("request.failed", "budget.reached", *PROVIDERS)
                                 if any(not hook.events or event in hook.events for hook in hooks))
        if self._wanted & PROVIDERS and self.leads and self._watch is None:
            self._watch = asyncio.create_task(self._look())
        elif self._watch is not None and not self._wanted & PROVIDERS:
            self._watch.cancel()
            self._watch = None

    def tell(self, event: str, data: dict[str, Any]) -> None:
        name, body = written(event, data, self._wall())
        for line in self._lines:
            if not line.hook.events or event in line.hook.events:
                line.put(event, name, body)

    def add(self, call: Call) -> None:
        wanted = self._wanted
        if not wanted or call.role:
            return
        if call.outcome in FAILED and "request.failed" in wanted:
            self.notices.failed(call)
        if "budget.reached" in wanted:
            if call.hold is not None:
                self.notices.spent(call)
            if call.error is not None and call.error.kind == "budget":
                self.notices.refused(call)

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.gather(*(line.close() for line in self._lines), *self._leaving)
        await self._poster.close()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            try:
                if self.ground is not None:
                    self.notices.look(self.ground())
            except Exception:
                log.exception("looking after providers failed")
