"""How much was it, and how much may it be? Cost by time, what this process did so far, budgets and what is left of them."""
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from gateway.admin import keys, overview
from gateway.admin.errand import Ask, Done, Errand, Facts
from gateway.admin.keys import Dollars, KeyEdit, KeyView
from gateway.core.keys import GroupRow
from gateway.store import totals
from gateway.store.totals import UsageRow

HOUR_S: Final = 3_600.0
DAYS: Final = {"day": 1, "week": 7, "month": 30}
MOST: Final = 200
MINUTES: Final = 360


class Period(Ask, frozen=True):
    """Which time, and by what."""
    period: Annotated[Literal["session", "day", "week", "month"], Meta(description="session: since this process began.")] = "day"
    by: Annotated[Literal["model", "provider", "key", "client"], Meta(description="What sums are told apart by.")] = "model"
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 50


class Costs(Facts, frozen=True):
    """US dollars. ``unpriced``: requests whose cost nobody knows, so that they count as nothing."""
    period: str
    since: float
    total_usd: float
    requests: int
    unpriced: int
    rows: list[UsageRow]


class Session(Facts, frozen=True):
    """This process: what it did in the last hours, and who has spent what of which budget."""
    uptime_s: int
    total_requests: int
    minutes: int
    requests: int
    success: float | None
    cost_usd: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    failovers: int
    outcomes: dict[str, int]
    errors: dict[str, int]
    top: list[overview.ModelRow]
    in_flight: int


class Minutes(Ask, frozen=True):
    """How far back."""
    minutes: Annotated[int, Meta(ge=5, le=MINUTES)] = MINUTES


class Budget(Facts, frozen=True):
    """Of a key or a group; a limit of 0 is none, and what is left is null then."""
    of: str                                      # key or group
    name: str
    usd_day: float
    usd_month: float
    spent_usd_day: float
    spent_usd_month: float
    left_usd_day: float | None
    left_usd_month: float | None


class Budgets(Facts, frozen=True):
    """Those of the configuration and of the store."""
    total: int
    budgets: list[Budget]


class KeyBudget(Ask, frozen=True):
    """What a key of the store may spend; what is left out stays."""
    key: Annotated[str, Meta(min_length=1, max_length=200, description="Its name or id.")]
    usd_day: Dollars | UnsetType = UNSET
    usd_month: Dollars | UnsetType = UNSET
    allow_unknown_price: bool | UnsetType = UNSET


class GroupBudget(Ask, frozen=True):
    """What a group may spend together; made where there is none of that name."""
    group: Annotated[str, Meta(min_length=1, max_length=100)]
    usd_day: Dollars | UnsetType = UNSET
    usd_month: Dollars | UnsetType = UNSET


async def report(errand: Errand, asked: Period) -> Costs:
    ground = errand.ground
    age_s = ground.clock.now() - errand.office.place.started if asked.period == "session" else DAYS[asked.period] * 24 * HOUR_S
    since = max(ground.clock.wall() - age_s, 0.0) // HOUR_S * HOUR_S
    total = await totals.totals(ground.store.ledger.read, since)
    rows = await totals.usage(ground.store.ledger.read, (asked.by,), since)
    rows.sort(key=lambda row: -row.cost_usd)
    return Costs(period=asked.period, since=since, total_usd=total.cost_usd, requests=total.requests, unpriced=total.unpriced,
                 rows=rows[:asked.limit])


async def session(errand: Errand, asked: Minutes) -> Session:
    errand.query = overview.Span(minutes=asked.minutes)
    told = await overview.overview(errand)
    return Session(minutes=asked.minutes, **{name: getattr(told, name) for name in Session.__struct_fields__ if name != "minutes"})


async def budgets(errand: Errand, asked: Ask) -> Budgets:
    told = await keys.listed(errand)
    rows = [_budget("key", key) for key in told.keys if key.state == "active"] + [_budget("group", group) for group in told.groups]
    return Budgets(total=len(rows), budgets=rows[:1_000])


def _budget(of: str, row: keys.KeyView | keys.GroupView) -> Budget:
    def left(limit: float, spent: float) -> float | None:
        return max(limit - spent, 0.0) if limit else None

    return Budget(of=of, name=row.name, usd_day=row.budget_usd_day, usd_month=row.budget_usd_month,
                  spent_usd_day=row.spent_usd_day, spent_usd_month=row.spent_usd_month,
                  left_usd_day=left(row.budget_usd_day, row.spent_usd_day),
                  left_usd_month=left(row.budget_usd_month, row.spent_usd_month))


async def set_key(errand: Errand, asked: KeyBudget) -> KeyView:
    errand.params = {"id": asked.key}
    errand.body = KeyEdit(budget_usd_day=asked.usd_day, budget_usd_month=asked.usd_month,
                          allow_unknown_price=asked.allow_unknown_price)
    return await keys.change(errand)


async def set_group(errand: Errand, asked: GroupBudget) -> Done:
    known = errand.ground.keys.groups.get(asked.group) or GroupRow(name=asked.group)
    errand.params = {"name": asked.group}
    errand.body = keys.GroupEdit(
        parent=known.parent, budget_usd_day=known.budget_usd_day if asked.usd_day is UNSET else asked.usd_day,
        budget_usd_month=known.budget_usd_month if asked.usd_month is UNSET else asked.usd_month)
    return await keys.put_group(errand)
