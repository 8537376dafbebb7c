"""Which part of a limit that processes share may this one use without asking? Blocks that it has on lease.

A decision itself never waits: it takes of the block at hand. Who finds too little there asks for more first (``fetch``), one at a
time for each account, and decides in the same step in which the answer came. What is not used goes back (``tick``). While the
shared state cannot be reached, every process goes on with what it has, then with the limit divided by the processes there are.
"""
import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from gateway.core.ports import Grant, LeaseAsk, SharedState
from gateway.policy.meters import DAY_S, MINUTE_S, NEVER

if TYPE_CHECKING:
    from gateway.policy.budget import Purse
    from gateway.policy.limits import Account

PARTS: Final = 8                              # a block is this part of a process's share
LOOK_AGAIN_S: Final = 0.1                     # who was refused may be lucky now: others give back what they do not use
IDLE_S: Final = 1.0                           # a block that nobody took of for so long goes back
PLACE_IDLE_S: Final = 0.1                     # a place is wanted by somebody else at once
LEAST_S: Final = 0.01
MOST: Final = 500                             # limits that one question is about
SMALL: Final = 4                              # blocks below it are not fetched ahead: others would miss them
SPANS: Final = {"minute": MINUTE_S, "day": DAY_S}


def named(kind: str, name: object) -> str:
    """How a limit is called where all see it: nobody's name can be read from it."""
    return f"{kind}:{hashlib.blake2b(repr(name).encode('utf-8', 'surrogateescape'), digest_size=16).hexdigest()}"


class Block:
    """What this process has of one limit. ``lock``: one question at a time."""

    __slots__ = ("__weakref__", "have", "key", "kind", "leases", "left", "limit", "lock", "needed", "retry_at", "told_at", "touched",
                 "until")

    def __init__(self, leases: "Leases", key: str, kind: str, limit: int, lock: asyncio.Lock) -> None:
        self.leases = leases
        self.key = key
        self.kind = kind
        self.limit = limit
        self.lock = lock
        self.have = 0
        self.left = limit                     # of everybody, as was told last
        self.needed = 0                       # somebody who could not ask was refused for want of it
        self.told_at = self.until = self.retry_at = self.touched = 0.0
        leases.known.add(self)

    @property
    def size(self) -> int:
        return max(self.limit // (PARTS * self.leases.nodes), 1)

    def lacks(self, cost: int, now: float) -> bool:
        """Is it worth asking for more?"""
        return self.have < cost <= self.limit and now >= self.retry_at

    def missed(self, cost: int, now: float) -> None:
        """Somebody was refused who could not ask: the next ones find something."""
        self.needed, self.touched = max(self.needed, cost), now
        self.leases.active.add(self)

    def ask(self, least: int) -> LeaseAsk:
        """``least``: what must be at hand afterwards."""
        missing = max(least - self.have, 0)
        return LeaseAsk(self.key, self.kind, self.limit, max(missing, self.size - self.have, 0) if least else 0, missing)

    def granted(self, ask: LeaseAsk, grant: Grant, now: float) -> None:
        self.have += grant.given
        self.left, self.told_at, self.needed = grant.left, now, 0
        self.until = now + grant.wait_s
        self.retry_at = now + min(grant.wait_s, LOOK_AGAIN_S) if grant.wait_s else 0.0
        self.leases.active.add(self)

    def failed(self, ask: LeaseAsk) -> None:
        """Nobody answered."""

    def due(self, now: float) -> int | None:
        """What a background question should bring it up to; 0 = only give back; None = nothing to ask."""
        return None

    def lost(self, now: float) -> None:
        """What everybody had leased was forgotten."""


class Rate(Block):
    """So many a minute or a day: ``meters.Meter`` over a lease. ``_tat`` is what this process took itself, against its own share."""

    __slots__ = ("_span_s", "_tat", "back")

    def __init__(self, leases: "Leases", key: str, kind: str, limit: int, lock: asyncio.Lock) -> None:
        super().__init__(leases, key, kind, limit, lock)
        self._span_s = SPANS[kind]
        self._tat = 0.0
        self.back = 0

    def wait(self, cost: int, now: float) -> float:
        if cost > self.limit:
            return NEVER
        if self.have >= cost:
            return 0.0
        if self.leases.up:
            return max(self.until - now, LEAST_S)
        late_s = max(self._tat, now) + self._share_s(cost) - now - self._span_s
        return late_s if late_s > 1e-6 else 0.0

    def take(self, cost: int, now: float) -> None:
        self._tat = min(max(self._tat, now) + self._share_s(cost), now + self._span_s)
        if self.have >= cost:
            self.have -= cost
        else:
            self.back -= cost                 # told when there is somebody to tell
        self.touched = now
        self.leases.active.add(self)

    def adjust(self, change: int, now: float) -> None:
        self.have -= change
        if self.have < 0:
            self.back, self.have = self.back + self.have, 0
        self.touched = now
        self.leases.active.add(self)

    def remaining(self, now: float) -> int:
        return max(min(int(self.have + self.left + (now - self.told_at) * self.limit / self._span_s), self.limit), 0)

    def share(self, now: float) -> float:
        return 1.0 - self.remaining(now) / self.limit

    def reset(self, now: float) -> float:
        return self.share(now) * self._span_s

    def ask(self, least: int) -> LeaseAsk:
        back, self.back = self.back, 0
        if not least:                         # nobody wants it any more, or not so much
            kept = 0 if self.leases.now() - self.touched >= IDLE_S else min(self.size, self.have)
            back, self.have = back + self.have - kept, kept
        made = super().ask(least)
        return LeaseAsk(made.key, made.kind, made.limit, made.want, made.least, back)

    def failed(self, ask: LeaseAsk) -> None:
        self.back += ask.back

    def due(self, now: float) -> int | None:
        if now - self.touched >= IDLE_S:
            return 0 if self.have or self.back else None
        if self.needed:
            return self.needed if now >= self.retry_at else None
        size = self.size
        if self.have > SMALL * size:
            return 0
        if size >= SMALL and self.have * 2 < size and self.left and now >= self.retry_at:
            return min(self.have + 1, self.limit)
        return None

    def lost(self, now: float) -> None:
        used_s = max(self._tat - now, 0.0)
        self.back, self.have = -int(used_s / self._span_s * self.limit / self.leases.nodes), 0
        if self.back:
            self.touched = 0.0                # told with the next tick
            self.leases.active.add(self)

    def _share_s(self, cost: int) -> float:
        return min(cost * self.leases.nodes, self.limit) / self.limit * self._span_s


class Slots(Block):
    """Places of an account's requests that run at once: ``have`` of them are this process's, taken or not."""

    __slots__ = ("account",)

    def __init__(self, leases: "Leases", key: str, limit: int, lock: asyncio.Lock, account: "Account") -> None:
        super().__init__(leases, key, "held", limit, lock)
        self.account = account

    @property
    def places(self) -> int:
        return self.have if self.leases.up else max(self.have, self.limit // self.leases.nodes, 1)

    @property
    def taken(self) -> int:
        running = self.account.running
        return running[0] + running[1]

    def moved(self) -> None:
        """A place was taken or given back."""
        self.touched = self.leases.now()
        self.leases.active.add(self)

    def ask(self, least: int) -> LeaseAsk:
        taken = self.taken
        if taken > self.have or not least:
            self.have = taken
        missing = max(least - self.have, 0)
        return LeaseAsk(self.key, self.kind, self.limit, missing, missing, 0, self.have)

    def granted(self, ask: LeaseAsk, grant: Grant, now: float) -> None:
        super().granted(ask, grant, now)
        self.account.promise()

    def due(self, now: float) -> int | None:
        if now < self.retry_at:
            return None
        if self.needed or self.account.waiting:
            return self.taken + 1
        return 0 if self.have > self.taken and now - self.touched >= PLACE_IDLE_S else None

    def lost(self, now: float) -> None:
        self.have = self.taken
        if self.have:
            self.needed = 1                   # told with the next tick
            self.leases.active.add(self)


class Money(Block):
    """Of a budget: ``have`` may be set aside, ``held`` is. ``gone`` of it is spent and not told yet."""

    __slots__ = ("gone", "held", "purse")

    def __init__(self, leases: "Leases", key: str, limit: int, purse: "Purse") -> None:
        super().__init__(leases, key, "held", limit, asyncio.Lock())
        self.purse = purse
        self.gone = self.held = 0

    def room(self, more: int) -> bool:
        if self.have < more and not self.leases.up:
            self.have, self.left = self.have + max(self.left, 0) // self.leases.nodes, 0
        return self.have >= more

    def missing(self, more: int, now: float) -> list[tuple[Block, int]]:
        return [(self, more)] if self.lacks(more, now) else []

    def hold(self, nanos: int) -> None:
        """Set aside; what is negative is free again."""
        self.have -= nanos
        self.held += nanos
        self._moved()

    def spend(self, nanos: int) -> None:
        self.have -= nanos
        self.gone += nanos
        self._moved()

    def ask(self, least: int) -> LeaseAsk:
        gone, self.gone = self.gone, 0
        missing = max(least - self.have, 0)
        want = max(missing, self.size // PARTS - self.have) if missing else 0
        if not least and self.leases.now() - self.touched >= IDLE_S:
            self.have = min(self.have, 0)
        return LeaseAsk(self.key, self.kind, self.limit, want, missing, 0, self.have + self.held, gone, self.purse.gone)

    def failed(self, ask: LeaseAsk) -> None:
        self.gone += ask.gone                 # perhaps it was heard: then it counts twice, and less is spent rather than more

    def due(self, now: float) -> int | None:
        if self.needed and now >= self.retry_at:
            return self.needed
        return 0 if self.gone or (self.have > 0 and now - self.touched >= IDLE_S) else None

    def lost(self, now: float) -> None:
        self.have = self.gone = 0             # what was spent is known to whoever asks first
        if self.held:
            self._moved()
            self.needed = 1

    def _moved(self) -> None:
        self.touched = self.leases.now()
        self.leases.active.add(self)


class Leases:
    """All blocks of this process. ``active`` are those of which something may have to be told."""

    def __init__(self, state: SharedState, now: Callable[[], float]) -> None:
        self.state = state
        self.now = now
        self.active: set[Block] = set()
        self.known: WeakSet[Block] = WeakSet()

    @property
    def up(self) -> bool:
        return self.state.up

    @property
    def nodes(self) -> int:
        return max(self.state.nodes, 1)

    async def fetch(self, wanted: Iterable[tuple[Block, int]]) -> None:
        """Ask for so much at hand of each; whoever asks holds their locks."""
        pairs = [(block, block.ask(least)) for block, least in wanted]
        try:
            grants = await self.state.lease([ask for _, ask in pairs])
        except BaseException:                 # whoever wanted it went away
            for block, ask in pairs:
                block.failed(ask)
            raise
        now = self.now()
        for index, (block, ask) in enumerate(pairs):
            if grants is None:
                block.failed(ask)
            else:
                block.granted(ask, grants[index], now)

    async def tick(self) -> None:
        """Give back what is idle, fetch ahead what will be wanted."""
        if not self.up:
            return
        now, wanted, locks = self.now(), list[tuple[Block, int]](), dict[int, asyncio.Lock]()
        for block in list(self.active):
            if block.lock.locked():
                continue
            least = block.due(now)
            if least is not None:
                wanted.append((block, least))
                locks[id(block.lock)] = block.lock
            elif now - block.touched > 2 * IDLE_S:
                self.active.discard(block)
        async with AsyncExitStack() as held:
            for lock in locks.values():              # all are free: none of this waits
                await held.enter_async_context(lock)
            for at in range(0, len(wanted), MOST):
                await self.fetch(wanted[at:at + MOST])

    def lost(self) -> None:
        """The shared state has forgotten everything: tell it anew what this process took lately."""
        now = self.now()
        for block in list(self.known):
            block.lost(now)


async def stocked(leases: Leases, lock: asyncio.Lock, wanted: Callable[[float], Sequence[tuple[Block, int]]]) -> None:
    """Have at hand what is wanted, as far as there is enough; one at a time for each lock, and only what is still missing."""
    async with lock:
        if leases.up and (missing := wanted(leases.now())):
            await leases.fetch(missing)
