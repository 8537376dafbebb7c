"""How much may a key use, ours or a provider's? Peek all limits, then take all: a refusal charges nothing.

A request reserves its estimate before it runs and settles the difference when it is over; concurrency is given back with it.
One synchronous step each, clock passed in; the map of keys is bounded. Only who wants a place at a full account may wait for it
(``place``): first come, first served, for a bounded time; a place that becomes free is promised to the first who waits, so that
nobody who comes later takes it. Where other processes share the limits, the meters are leases (leases.py), and ``stock`` fills
them before anybody takes.
"""
import asyncio
import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from gateway.core.bounded import LruMap
from gateway.core.errors import GatewayError
from gateway.policy.keys import Principal
from gateway.policy.leases import LEAST_S, Block, Leases, Rate, Slots, named, stocked
from gateway.policy.meters import DAY_S, NEVER, Gcra, Meter, Window
from gateway.providers.registry import Ceiling

MAX_KEYS: Final = 10_000
CONCURRENCY_RETRY_S: Final = 1.0              # nobody knows when a running request ends

_UNLIMITED: Final = Ceiling()
_NO_HEADERS: Final[Mapping[str, str]] = {}
ROUNDS: Final = 4                             # others may take what was just fetched
_Shape = tuple[int, int, int, int, int]      # rpm, tpm, rpd, tpd, concurrency


class Account:
    """The meters of one key."""

    __slots__ = ("concurrency", "lock", "requests", "running", "shape", "slots", "tokens", "waiting")

    def __init__(self, shape: _Shape, before: "Account | None" = None, leases: Leases | None = None, name: Hashable = "") -> None:
        """``before``: the same key under limits that were since changed; what runs, runs on, and equal limits keep their state."""
        rpm, tpm, rpd, tpd, self.concurrency = self.shape = shape
        self.lock: asyncio.Lock = before.lock if before else asyncio.Lock()
        self.requests: tuple[Meter, ...]
        self.tokens: tuple[Meter, ...]
        self.slots: Slots | None = None
        # Shared, since its requests may outlive a change: how many run, and how many places are promised to somebody who waited.
        self.running: list[int] = before.running if before else [0, 0]
        self.waiting: deque[asyncio.Future[None]] = before.waiting if before else deque()
        if leases is not None:
            self.requests, self.tokens = self._leased(leases, name, before)
            return
        self.requests = _meters(rpm, rpd, before.requests if before else ())
        self.tokens = _meters(tpm, tpd, before.tokens if before else ())

    def _leased(self, leases: Leases, name: Hashable, before: "Account | None") -> tuple[tuple[Meter, ...], tuple[Meter, ...]]:
        """The same as parts of what all processes share."""
        kept = {block.key: block for block in before.blocks if block.limit} if before else {}

        def rates(what: str, a_minute: int, a_day: int) -> tuple[Meter, ...]:
            made = []
            for kind, limit in (("minute", a_minute), ("day", a_day)):
                key = named(f"{what}-{kind}", name)
                block = kept.get(key)
                if limit:
                    same = isinstance(block, Rate) and block.limit == limit
                    made.append(block if same and isinstance(block, Rate) else Rate(leases, key, kind, limit, self.lock))
            return tuple(made)

        rpm, tpm, rpd, tpd, places = self.shape
        if places:
            self.slots = Slots(leases, named("places", name), places, self.lock, self)
            self.slots.have = self.slots.taken
        return rates("requests", rpm, rpd), rates("tokens", tpm, tpd)

    @property
    def blocks(self) -> list[Block]:
        return [meter for meter in (*self.requests, *self.tokens) if isinstance(meter, Block)]

    def lacks(self, tokens: int, now: float) -> list[tuple[Block, int]]:
        """What has to be asked for, each with what must be at hand; [] also where it is known that there is not enough."""
        found: list[tuple[Block, int]] = []
        slots = self.slots
        if slots is not None and self.full:
            if now < slots.retry_at or slots.taken >= slots.limit:
                return []
            found.append((slots, slots.taken + 1))
        for meters, cost in ((self.requests, 1), (self.tokens, tokens)):
            for meter in meters:
                if isinstance(meter, Block) and meter.have < cost:
                    if not meter.lacks(cost, now):
                        return []
                    found.append((meter, cost))
        return found

    def missed(self, tokens: int, now: float) -> None:
        for block, least in self.lacks(tokens, now):
            block.missed(least, now)

    def refusal(self, tokens: int, now: float) -> tuple[str, float] | None:
        """(limit, seconds to wait) of the limit that takes longest, None when everything fits."""
        worst: tuple[str, float] | None = None
        if self.full:
            worst = (f"{self.concurrency} requests at once", CONCURRENCY_RETRY_S)
        for meters, cost, unit in ((self.requests, 1, "requests"), (self.tokens, tokens, "tokens")):
            for meter in meters:
                wait_s = meter.wait(cost, now)
                if wait_s and (worst is None or wait_s > worst[1]):
                    worst = (f"{meter.limit} {unit} a {'day' if type(meter) is Window else 'minute'}", wait_s)
        return worst

    @property
    def full(self) -> bool:
        """Is every place taken or promised?"""
        return bool(self.concurrency) and self.running[0] + self.running[1] >= (
            self.concurrency if self.slots is None else self.slots.places)

    def leave(self) -> None:
        """A request is over: its place goes to the first who waits."""
        self.running[0] -= 1
        if self.slots is not None:
            self.slots.moved()
        self.promise()

    def promise(self) -> None:
        while self.waiting and not self.full:
            first = self.waiting.popleft()
            if not first.done():
                self.running[1] += 1
                first.set_result(None)

    def used(self, now: float) -> float:
        """Share used of the fullest meter."""
        most = 0.0
        for meters in (self.requests, self.tokens):
            for meter in meters:
                share = meter.share(now)
                if share > most:
                    most = share
        return most

    def take(self, tokens: int, now: float) -> "Reservation":
        for meter in self.requests:
            meter.take(1, now)
        for meter in self.tokens:
            meter.take(tokens, now)
        self.running[0] += 1
        if self.slots is not None:
            self.slots.moved()
        return Reservation(self, tokens, now)

    def headers(self, now: float) -> dict[str, str]:
        """x-ratelimit-* of the minute's limits, in OpenAI's words."""
        found: dict[str, str] = {}
        for meters, unit in ((self.requests, "requests"), (self.tokens, "tokens")):
            for meter in meters[:1]:
                found[f"x-ratelimit-limit-{unit}"] = str(meter.limit)
                found[f"x-ratelimit-remaining-{unit}"] = str(meter.remaining(now))
                found[f"x-ratelimit-reset-{unit}"] = _duration(meter.reset(now))
        return found


class Reservation:
    """What one request holds. ``settle`` (or ``release``) ends it; doing so again does nothing."""

    __slots__ = ("_account", "_also", "_taken_at", "tokens")

    def __init__(self, account: Account | None, tokens: int = 0, taken_at: float = 0.0,
                 also: "Reservation | None" = None) -> None:
        self._account = account
        self._also = also                     # taken together, settled together
        self._taken_at = taken_at
        self.tokens = tokens

    @property
    def headers(self) -> Mapping[str, str]:
        """The key's x-ratelimit headers as they were when the request was admitted."""
        return self._account.headers(self._taken_at) if self._account is not None else _NO_HEADERS

    def settle(self, used: int, now: float) -> None:
        """The request is over and used so many tokens: correct the estimate and give the place back."""
        account, also = self._account, self._also
        if account is None:
            return
        self._account = self._also = None
        for meter in account.tokens:
            meter.adjust(used - self.tokens, now)
        account.leave()
        if also is not None:
            also.settle(used, now)

    def release(self, now: float) -> None:
        """The request is over and what it used is not known: the estimate stands."""
        self.settle(self.tokens, now)


_FREE: Final = Reservation(None)
Wanted = Sequence[tuple[Hashable, Ceiling]]


class Limits:
    """The meters of all keys; lives on when the configuration is reloaded."""

    __slots__ = ("_accounts", "leases")

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._accounts: LruMap[Hashable, Account] = LruMap(max_keys)
        self.leases: Leases | None = None     # set before the first request, where other processes share the limits

    async def stock(self, wanted: Wanted, tokens: int) -> None:
        """Before taking where limits are shared: have enough at hand of each, as far as there is enough. The step after it must be
        the taking."""
        leases = self.leases
        if leases is None:
            return
        accounts = [self._account(key, _shape(ceiling)) for key, ceiling in wanted if ceiling != _UNLIMITED]
        for _ in range(ROUNDS):
            short = [account for account in accounts if leases.up and account.lacks(tokens, leases.now())]
            for account in short:
                await stocked(leases, account.lock, partial(account.lacks, tokens))
            if not short or len(accounts) == 1:
                return

    async def stock_key(self, principal: Principal, tokens: int) -> None:
        """The same for a client key."""
        if principal.limited:
            ceiling = Ceiling(rpm=principal.rpm, tpm=principal.tpm, rpd=principal.rpd, concurrency=principal.concurrency)
            await self.stock(((principal.name, ceiling),), tokens)

    def take(self, principal: Principal, tokens: int, now: float) -> Reservation:
        """Admit a request of a client key. Raises limited (429) with the exact wait."""
        if not principal.limited:
            return _FREE
        account = self._account(principal.name, (principal.rpm, principal.tpm, principal.rpd, 0, principal.concurrency))
        refused = account.refusal(tokens, now)
        if refused is not None:
            raise _limited("This client key is limited to", refused, tokens)
        return account.take(tokens, now)

    def take_account(self, key: Hashable, ceiling: Ceiling, tokens: int, now: float) -> Reservation:
        """Admit an attempt at a provider's account (``Candidate.account_key``). Raises limited: try another candidate."""
        return self.take_accounts(((key, ceiling),), tokens, now)

    def take_accounts(self, wanted: Wanted, tokens: int, now: float) -> Reservation:
        """The same for several keys at once: all of them or nothing."""
        accounts = [self._account(key, _shape(ceiling)) for key, ceiling in wanted if ceiling != _UNLIMITED]
        for account in accounts:
            refused = account.refusal(tokens, now)
            if refused is not None:
                if self.leases is not None:
                    account.missed(tokens, now)
                raise _limited("This provider key is limited to", refused, tokens)
        taken: Reservation | None = None
        for account in accounts:
            reservation = account.take(tokens, now)
            reservation._also = taken
            taken = reservation
        return taken or _FREE

    def full_s(self, wanted: Wanted, tokens: int, now: float) -> float:
        """For how long there is no room in one of them; 0 = there is. Takes nothing."""
        refused = [self._account(key, _shape(ceiling)).refusal(tokens, now) for key, ceiling in wanted if ceiling != _UNLIMITED]
        worst = max((each[1] for each in refused if each is not None), default=0.0)
        return worst if self.leases is None or worst > LEAST_S else 0.0      # below it: nobody has asked yet

    async def place(self, wanted: Wanted, wait_s: float, depth: int) -> bool:
        """Wait for a place where nothing else is missing. True: a place is promised, and ``promised`` must follow at once."""
        found = [account for key, ceiling in wanted
                 if ceiling != _UNLIMITED and (account := self._account(key, _shape(ceiling))).full]
        if len(found) != 1 or len(found[0].waiting) >= depth or wait_s <= 0:
            return False
        account = found[0]
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        account.waiting.append(turn)
        try:
            async with asyncio.timeout(wait_s):
                await turn
        except TimeoutError:
            return _promised(account, turn)
        except BaseException:
            if _promised(account, turn):
                account.running[1] -= 1
                account.promise()
            raise
        return True

    def promised(self, wanted: Wanted, tokens: int, now: float) -> Reservation:
        """Take what ``place`` promised. Raises limited when another limit has no room any more; the place goes on to the next."""
        account = next(account for key, ceiling in wanted
                       if ceiling != _UNLIMITED and (account := self._account(key, _shape(ceiling))).running[1])
        account.running[1] -= 1
        try:
            return self.take_accounts(wanted, tokens, now)
        except GatewayError:
            account.promise()
            raise

    def shares(self, keys: Iterable[Hashable], now: float) -> list[float]:
        """Share used of the fullest limit of each key, 0 where there is none."""
        get = self._accounts.get
        return [0.0 if (account := get(key)) is None else account.used(now) for key in keys]

    def headers(self, principal: Principal, now: float) -> Mapping[str, str]:
        """The key's x-ratelimit headers now (for a refusal)."""
        account = self._accounts.get(principal.name) if principal.limited else None
        return account.headers(now) if account is not None else _NO_HEADERS

    def snapshot(self, now: float) -> list[dict[str, Any]]:
        """Every key with limits and what is left, as data."""
        return [{"key": key if isinstance(key, str) else list(key) if isinstance(key, tuple) else str(key),
                 "running": account.running[0], "waiting": len(account.waiting), **account.headers(now)}
                for key, account in self._accounts.items()]

    def _account(self, key: Hashable, shape: _Shape) -> Account:
        account = self._accounts.get(key)
        if account is None or account.shape != shape:
            account = Account(shape, account, self.leases, key)
            self._accounts.put(key, account)
        return account


def _shape(ceiling: Ceiling) -> _Shape:
    return ceiling.rpm, ceiling.tpm, ceiling.rpd, ceiling.tpd, ceiling.concurrency


def _promised(account: Account, turn: "asyncio.Future[None]") -> bool:
    """The wait is over: was the place promised in this very moment?"""
    if turn in account.waiting:
        account.waiting.remove(turn)
    return turn.done() and not turn.cancelled()


def _meters(per_minute: int, per_day: int, before: tuple[Meter, ...]) -> tuple[Meter, ...]:
    kept = {(type(meter), meter.limit): meter for meter in before}
    wanted: list[Meter] = []
    for limit, kind in ((per_minute, Gcra), (per_day, Window)):
        if limit:
            wanted.append(kept.get((kind, limit)) or kind(limit))
    return tuple(wanted)


def _limited(whose: str, refused: tuple[str, float], tokens: int) -> GatewayError:
    limit, wait_s = refused
    if wait_s == NEVER:
        return GatewayError("limited", f"{whose} {limit}; this request needs about {tokens} and never fits.")
    return GatewayError("limited", f"{whose} {limit}; the next fits in {_duration(wait_s)}.", retry_after_s=min(wait_s, DAY_S))


def _duration(left_s: float) -> str:
    """OpenAI's way to write a wait: 120ms, 8.64s, 6m0s, 1h30m0s; rounded up, since a client takes it at its word."""
    ms = math.ceil(left_s * 1000 - 1e-6)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    whole_s = ms / 1000
    minutes, rest_s = divmod(whole_s, 60)
    hours, minutes = divmod(int(minutes), 60)
    head = (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "")
    return f"{head}{rest_s:.3f}".rstrip("0").rstrip(".") + "s"
