"""How much was it, by whom and when? Sums by model, provider, key or client, curves of the largest, and what failed."""
from typing import Annotated, Final, Literal

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.store import totals
from gateway.store.totals import FaringRow, Timing, UsageRow

LARGEST: Final = 6
MOST: Final = 500
HOUR_S: Final = 3_600.0
BY_DAYS: Final = 96                              # hours above which a step is a day
Step = Literal["hour", "day"]


class Span(Ask, frozen=True):
    """Which time, and by what."""
    by: Annotated[Literal["model", "provider", "key", "client"], msgspec.Meta(description="What sums are told apart by.")] = "model"
    hours: Annotated[int, msgspec.Meta(ge=1, le=24 * 366, description="How far back.")] = 24
    step: Annotated[Literal["hour", "day", ""], msgspec.Meta(description="Of the curves; empty = what fits.")] = ""


class Usage(Facts, frozen=True):
    """Sums of that time. ``over_time``: one row a step; ``largest``: the same for the largest groups, by name."""
    since: float
    step: Step
    total: UsageRow
    rows: list[UsageRow]
    over_time: list[UsageRow]
    largest: dict[str, list[UsageRow]]
    timings: list[Timing]
    fared: list[FaringRow]


async def usage(visit: Errand) -> Usage:
    asked: Span = visit.query
    read = visit.ground.store.ledger.read
    step: Step = asked.step or ("hour" if asked.hours <= BY_DAYS else "day")
    span = HOUR_S if step == "hour" else 24 * HOUR_S
    wall = visit.ground.clock.wall()
    since = max(wall // span * span - (-(-asked.hours * HOUR_S // span) - 1) * span, 0.0)
    rows = await totals.usage(read, (asked.by,), since)
    largest = {}
    for row in rows[:LARGEST]:
        name = getattr(row, asked.by)
        largest[name] = (await totals.usage(read, (), since, step=step, only={asked.by: name}))[:MOST * 2]
    return Usage(since=since, step=step, total=await totals.totals(read, since), rows=rows[:MOST],
                 over_time=(await totals.usage(read, (), since, step=step))[:MOST * 2], largest=largest,
                 timings=(await totals.timings(read, since, step=step))[:MOST * 4],
                 fared=(await totals.fared(read, since, by_model=False))[:MOST])
