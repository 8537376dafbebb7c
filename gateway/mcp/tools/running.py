"""How does the gateway itself do? Health in one look, sessions, the log, the configuration, what compression would send."""
from typing import Annotated, Any, Final

from msgspec import Meta

from gateway.admin import logs, overview, savings, settings, upstreams
from gateway.admin.errand import Ask, Errand, Facts

MINUTES: Final = 60
MOST_SESSIONS: Final = 500
SHOWN_CHARS: Final = 12                          # of a session's name, which is a digest


class Breaker(Facts, frozen=True):
    """A provider that does not do well."""
    provider: str
    state: str
    breaker: str
    breaker_s: float
    failures: int
    cooldowns: int


class Health(Facts, frozen=True):
    """The last hour of this process. ``store``: can it be written, and how much waits for it or was lost."""
    version: str
    status: str                                  # ok, degraded (somebody is unwell), draining, or store-down
    uptime_s: int
    in_flight: int
    loop_lag_ms: float
    requests: int
    success: float | None
    requests_per_minute: float
    latency: overview.Latency
    ttft: overview.Latency
    providers: int
    unwell: list[Breaker]
    cooldowns: int
    store: dict[str, Any]
    cache: savings.CacheStatus


class Sessions(Ask, frozen=True):
    """Which ones."""
    target: Annotated[str, Meta(max_length=400, description="Only those bound to this provider/model; empty = all.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_SESSIONS)] = 50


class Session(Facts, frozen=True):
    """Where a session was answered last. ``session``: the beginning of its digest; nothing of it can be read from that."""
    session: str
    scope: str
    target: str
    idle_s: float


class Bound(Facts, frozen=True):
    """Most recent first."""
    total: int
    sessions: list[Session]


class Lines(Ask, frozen=True):
    """Which lines."""
    contains: Annotated[str, Meta(max_length=200, description="Only lines with these words; case does not matter.")] = ""
    after: Annotated[int, Meta(ge=0, description="Only lines with a larger number.")] = 0
    limit: Annotated[int, Meta(ge=1, le=logs.MOST, description="The newest so many.")] = 100


class Shown(Ask, frozen=True):
    """How much."""
    text: Annotated[bool, Meta(description="Also the file's text, with its secrets hidden.")] = False
    under: Annotated[str, Meta(max_length=200, description='Only settings whose path begins so, such as "routing".')] = ""


async def health(errand: Errand, asked: Ask) -> Health:
    ground = errand.ground
    errand.query = overview.Span(minutes=MINUTES)
    told = await overview.overview(errand)
    rows = await upstreams.providers(errand)
    unwell = [Breaker(provider=row.id, state=row.state, breaker=row.breaker, breaker_s=row.breaker_s, failures=row.failures,
                      cooldowns=row.cooldowns) for row in rows.providers if row.state != "ok"][:50]
    ledger = ground.store.ledger
    status = "draining" if told.draining else "store-down" if not told.store_reachable else "degraded" if unwell else "ok"
    return Health(version=told.version, status=status, uptime_s=told.uptime_s, in_flight=told.in_flight,
                  loop_lag_ms=round(ground.inflight.lag_s * 1000, 2), requests=told.requests, success=told.success,
                  requests_per_minute=told.requests_per_minute, latency=told.latency, ttft=told.ttft, providers=told.providers,
                  unwell=unwell, cooldowns=len(rows.cooldowns),
                  store={"reachable": told.store_reachable, "waiting": ledger.waiting, "dropped": ledger.dropped, "lost": ledger.lost},
                  cache=(await savings.savings(errand)).cache)


async def sessions(errand: Errand, asked: Sessions) -> Bound:
    now = errand.ground.clock.now()
    found = [Session(session=session[:SHOWN_CHARS], scope=scope, target=bound.label, idle_s=round(now - bound.at, 1))
             for (scope, session), bound in errand.ground.health.memory.sessions.items() if asked.target in ("", bound.label)]
    found.sort(key=lambda row: row.idle_s)
    return Bound(total=len(found), sessions=found[:asked.limit])


async def lines(errand: Errand, asked: Lines) -> logs.Lines:
    errand.query = logs.Wanted(after=asked.after, limit=logs.MOST if asked.contains else asked.limit)
    told = await logs.lines(errand)
    words = asked.contains.lower()
    return logs.Lines(last=told.last, lines=[line for line in told.lines if words in line.text.lower()][-asked.limit:])


async def configuration(errand: Errand, asked: Shown) -> settings.View:
    told = await settings.view(errand)
    kept = [one for one in told.settings if one.path.startswith(asked.under)]
    return settings.View(source=told.source, loaded_at=told.loaded_at, can_reload=told.can_reload, settings=kept,
                         warnings=told.warnings, text=told.text if asked.text else None)


async def cache(errand: Errand, asked: Ask) -> savings.CacheStatus:
    return (await savings.savings(errand)).cache


async def compression(errand: Errand, asked: Ask) -> savings.CompressionStatus:
    return (await savings.savings(errand)).compression
