"""How much may they spend? Reserve before anybody is asked, settle what it really cost: no budget is passed by running requests.

A budget belongs to a scope: a key, its group and the groups above that, everybody together. A request must fit into all of them,
by the day and by the month (UTC), beside what is spent and what other requests have reserved. One synchronous step each, in
nano-dollars. What was spent is counted for scopes without a limit too, so that a limit set today knows of it. Where other processes
spend of the same budget, a part of it must have been leased besides (``stock``), so that all of them together keep to it.
"""
import datetime
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.keys import NANOS, GroupRow, SpentRow
from gateway.policy.leases import Leases, Money, named, stocked

DAY_S: Final = 86_400
SOON_S: Final = 1.0                              # nobody knows when a running request ends and gives back what it reserved
MAX_DEPTH: Final = 10
ROUNDS: Final = 4                                # others may take what was just leased
OVERALL: Final = "all"
_PERIODS: Final = ("day", "month")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Whose money. ``name`` is what spending is kept by, ``title`` what people read; limits in nano-dollars, 0 = none."""
    name: str
    title: str
    day: int = 0
    month: int = 0

    @property
    def limited(self) -> bool:
        return bool(self.day or self.month)


def scope(name: str, title: str, usd_day: float, usd_month: float) -> Scope:
    return Scope(name=name, title=title, day=nanos(usd_day), month=nanos(usd_month))


def nanos(usd: float) -> int:
    """A limit above 0 is never rounded to none."""
    return max(round(usd * NANOS), 1) if usd > 0 else 0


def chain(groups: Mapping[str, GroupRow], name: str) -> tuple[Scope, ...]:
    """A group and those above it. Who is missing has no limit; a circle is gone round once."""
    found: dict[str, Scope] = {}
    while name and name not in found and len(found) < MAX_DEPTH:
        row = groups.get(name) or GroupRow(name=name)
        found[name] = scope(f"group:{name}", f"group {name!r}", row.budget_usd_day, row.budget_usd_month)
        name = row.parent
    return tuple(found.values())


class Purse:
    """The money of one scope in one period."""

    __slots__ = ("held", "kept", "money", "others", "spent")

    def __init__(self) -> None:
        self.money: Money | None = None          # where the limit is shared
        self.spent = 0                           # by this process
        self.others = 0                          # by others, and by this one in earlier lives
        self.held = 0
        self.kept = 0                            # of ``spent``, what the store was told

    @property
    def gone(self) -> int:
        return self.spent + self.others

    def hold(self, nanos: int) -> None:
        self.held += nanos
        if self.money is not None:
            self.money.hold(nanos)

    def spend(self, nanos: int) -> None:
        self.spent += nanos
        if self.money is not None:
            self.money.spend(nanos)


class Hold:
    """What one request has reserved, and what it has spent so far."""

    __slots__ = ("_budgets", "_one", "_purses", "reserved", "scopes", "used")

    def __init__(self, budgets: "Budgets", scopes: tuple[Scope, ...], purses: tuple[tuple[Purse, Purse], ...], reserved: int) -> None:
        self._budgets = budgets
        self._purses = purses
        self.scopes = scopes
        self.reserved = self._one = reserved
        self.used = 0

    def spend(self, nanos: int) -> None:
        """An attempt is over: this is gone, whatever follows. The reservation stands for the next one."""
        self.used += nanos
        for day, month in self._purses:
            day.spend(nanos)
            month.spend(nanos)

    def again(self) -> None:
        """Another attempt after one that cost something. Raises budget where that does not fit any more."""
        if self.used and self.reserved:
            self._budgets.check(self.scopes, self._purses, 0, self.reserved)

    def twice(self) -> None:
        """Two attempts at the same time: as much again is set aside, once. Raises budget where that does not fit."""
        more = 2 * self._one - self.reserved
        if more:
            self._budgets.check(self.scopes, self._purses, more, 2 * self._one)
            for pair in self._purses:
                for purse in pair:
                    purse.hold(more)
            self.reserved += more

    def part(self) -> "Part":
        """For one of several that run at once on this reservation."""
        return Part(self)

    def settle(self, total: int) -> None:
        """The request is over and cost this in all. Doing so again does nothing."""
        purses, self._purses = self._purses, ()
        for pair in purses:
            for purse in pair:
                purse.hold(-self.reserved)
                purse.spend(total - self.used)


class Part:
    """What one member of a panel spends of the reservation of all: its failures are gone, its answer is counted at the end."""

    __slots__ = ("_whole", "used")

    def __init__(self, whole: Hold) -> None:
        self._whole = whole
        self.used = 0

    def spend(self, nanos: int) -> None:
        self.used += nanos
        self._whole.spend(nanos)

    def again(self) -> None:
        if self.used:
            self._whole.again()


class Budgets:
    """All purses; lives on when the configuration is reloaded."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._purses: dict[tuple[str, str], Purse] = {}
        self.leases: Leases | None = None        # set before the first request, where other processes spend as well

    async def stock(self, scopes: tuple[Scope, ...], more: int) -> None:
        """Before reserving where budgets are shared: lease so much of each that has a limit. The step after it must be the
        reserving."""
        leases = self.leases
        if leases is None:
            return
        found = [money for one in scopes for money in self._shared(leases, one)]
        for _ in range(ROUNDS):
            short = [money for money in found if leases.up and money.lacks(more, leases.now())]
            for money in short:
                await stocked(leases, money.lock, partial(money.missing, more))
            if not short or len(found) == 1:
                return

    def _shared(self, leases: Leases, one: Scope) -> Iterable[Money]:
        for limit, period in zip((one.day, one.month), periods(self._wall()), strict=True):
            if limit:
                purse = self._purse(one.name, period)
                if purse.money is None:
                    purse.money = Money(leases, named("money", (one.name, period)), limit, purse)
                    purse.money.held = purse.held
                purse.money.limit = limit
                yield purse.money

    def __bool__(self) -> bool:
        """Has anybody spent anything?"""
        return bool(self._purses)

    def reserve(self, scopes: tuple[Scope, ...], nanos: int) -> Hold:
        """Set this much aside in every scope. Raises budget; a refusal reserves nothing."""
        day, month = periods(self._wall())
        purses = tuple([(self._purse(one.name, day), self._purse(one.name, month)) for one in scopes])
        if nanos:
            self.check(scopes, purses, nanos, nanos)
            for pair in purses:
                for purse in pair:
                    purse.hold(nanos)
        return Hold(self, scopes, purses, nanos)

    def check(self, scopes: tuple[Scope, ...], purses: tuple[tuple[Purse, Purse], ...], more: int, needed: int) -> None:
        """Is there room for so much more in every one? Raises budget, naming the one that takes longest to have it again."""
        worst: tuple[float, GatewayError] | None = None
        for one, pair in zip(scopes, purses, strict=True):
            for limit, purse, period in zip((one.day, one.month), pair, _PERIODS, strict=True):
                if limit and (purse.gone + purse.held + more > limit or not (purse.money is None or purse.money.room(more))):
                    wait_s, error = self._refusal(one, period, limit, purse, needed)
                    if worst is None or wait_s > worst[0]:
                        worst = wait_s, error
        if worst is not None:
            raise worst[1]

    def _refusal(self, one: Scope, period: str, limit: int, purse: Purse, needed: int) -> tuple[float, GatewayError]:
        wall = self._wall()
        reset = resets(wall)[_PERIODS.index(period)]
        budget = f"The budget of the {one.title} is {dollars(limit)} a {period} (UTC)"
        if needed > limit:
            return reset - wall, GatewayError(
                "budget", f"{budget}; this request may cost {dollars(needed)} and never fits: ask for fewer tokens.",
                code="request_over_budget", status=402)
        told = f"{budget}: {dollars(purse.gone)} are spent and this request may cost {dollars(needed)}"
        if purse.gone + needed <= limit:
            return SOON_S, GatewayError("budget", f"{told}; running requests have reserved the rest for now.", retry_after_s=SOON_S)
        at = datetime.datetime.fromtimestamp(reset, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return reset - wall, GatewayError("budget", f"{told}. It starts anew at {at}.", retry_after_s=reset - wall)

    # ------------------------------------------------------------------ what is kept
    def spent(self, name: str) -> tuple[int, int]:
        """What a scope has spent today and this month."""
        day, month = (self._purses.get((name, period)) for period in periods(self._wall()))
        return day.gone if day else 0, month.gone if month else 0

    def changes(self) -> list[SpentRow]:
        """What the store has not been told yet; purses of past periods that nothing holds are let go."""
        current = periods(self._wall())
        rows: list[SpentRow] = []
        for (name, period), purse in list(self._purses.items()):
            if purse.spent != purse.kept:
                purse.kept = purse.spent
                rows.append(SpentRow(name, period, purse.spent))
            elif period not in current and not purse.held:
                del self._purses[name, period]
        return rows

    def others(self, rows: Iterable[SpentRow]) -> None:
        """What everybody but this process has spent."""
        for row in rows:
            self._purse(row.scope, row.period).others = row.nanos

    def _purse(self, name: str, period: str) -> Purse:
        purse = self._purses.get((name, period))
        if purse is None:
            purse = self._purses[name, period] = Purse()
        return purse


def periods(wall: float) -> tuple[str, str]:
    """The day and the month of this moment, as they are written."""
    return _periods(int(wall // DAY_S))


@lru_cache(maxsize=4)
def _periods(day: int) -> tuple[str, str]:
    date = datetime.datetime.fromtimestamp(day * DAY_S, datetime.UTC).strftime("%Y-%m-%d")
    return date, date[:7]


def resets(wall: float) -> tuple[float, float]:
    """When the next day and the next month begin (UTC)."""
    now = datetime.datetime.fromtimestamp(wall, datetime.UTC)
    month = datetime.datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=datetime.UTC)
    return (wall // DAY_S + 1) * DAY_S, month.timestamp()


def dollars(nanos: int) -> str:
    """As people write it; small sums keep two digits that say something."""
    usd = nanos / NANOS
    return f"${usd:,.2f}" if usd >= 1 or not nanos else f"${usd:.2g}" if usd >= 0.0001 else f"${usd:.9f}".rstrip("0")
