"""What is under way right now? Every request in flight with the attempts that it has behind it and the one that runs."""
from typing import Annotated, Final

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.core.call import Attempt, Call
from gateway.pipeline.ground import Inflight

MOST: Final = 200


class Shown(Ask, frozen=True):
    """How many."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST, description="The oldest come first.")] = 50


class Hop(Facts, frozen=True):
    """One attempt. Times in milliseconds since the request came."""
    target: str
    key: int
    start_ms: float
    end_ms: float | None                         # null: it runs
    headers_ms: float | None
    first_token_ms: float | None
    status: int
    error: str | None
    message: str | None
    committed: bool
    cost_usd: float | None = None


class Running(Facts, frozen=True):
    """One request in flight."""
    id: str
    surface: str
    operation: str
    model: str
    key: str
    client: str
    stream: bool
    started: float                               # epoch seconds
    age_ms: float
    committed: bool
    routed: str
    attempts: list[Hop]


class Live(Facts, frozen=True):
    """All of them, as far as they are shown."""
    count: int
    requests: list[Running]


async def live(visit: Errand) -> Live:
    inflight, now = visit.ground.inflight, visit.ground.clock.now()
    told = [msgspec.convert(other, Live) for other in await visit.office.others("live", visit.query.limit)]
    own = here(inflight, now, visit.query.limit)
    rows = sorted((row for each in (own, *told) for row in each.requests), key=lambda row: row.started)
    return Live(count=sum(each.count for each in (own, *told)), requests=rows[:visit.query.limit])


def here(inflight: Inflight, now: float, limit: int) -> Live:
    """Those of this process."""
    calls = sorted(inflight.calls.values(), key=lambda call: call.started)[:limit]
    return Live(count=inflight.count, requests=[running(call, now) for call in calls])


def running(call: Call, now: float) -> Running:
    request = call.request
    return Running(id=call.id, surface=call.surface, operation=call.operation,
                   model=request.model[:200] if request else call.path_model, key=call.principal, client=call.client,
                   stream=request.stream if request else call.stream, started=call.wall,
                   age_ms=since(now, call), committed=bool(call.committed_at), routed=call.routed,
                   attempts=[hop(attempt, call) for attempt in call.attempts[:100]])


def hop(attempt: Attempt, call: Call) -> Hop:
    error = attempt.error
    return Hop(target=attempt.label, key=attempt.key, start_ms=since(attempt.started, call),
               end_ms=since(attempt.ended, call) if attempt.ended else None,
               headers_ms=since(attempt.headers_at, call) if attempt.headers_at else None,
               first_token_ms=since(attempt.first_token_at, call) if attempt.first_token_at else None, status=attempt.status,
               error=error.kind if error is not None else None, message=error.message if error is not None else None,
               committed=attempt.committed, cost_usd=attempt.cost_usd)


def since(moment: float, call: Call) -> float:
    return round((moment - call.started) * 1000, 1)
