"""How do the providers fare, as a tool tells it? Rows without curves, percentiles by model, and what is left of quotas."""
from typing import Annotated, Any, Final

from msgspec import Meta, structs

from gateway.admin import upstreams
from gateway.admin.errand import Ask, Errand, Facts
from gateway.routing.places import fingerprint
from gateway.store import totals
from gateway.store.totals import FaringRow, Timing

HOUR_S: Final = 3_600.0
MOST: Final = 300

Id = Annotated[str, Meta(min_length=1, max_length=200, description="The provider's id.")]


class Some(Ask, frozen=True):
    """Which ones."""
    state: Annotated[str, Meta(max_length=40, description="Only those in this state: ok, resting, partly resting, open, half-open, "
                               "degraded. Empty = all.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 50
    offset: Annotated[int, Meta(ge=0, le=100_000)] = 0


class One(Ask, frozen=True):
    """A provider."""
    provider: Id


class Maybe(Ask, frozen=True):
    """A provider, or all of them."""
    provider: Annotated[str, Meta(max_length=200, description="Its id; empty = all.")] = ""


class Lately(Ask, frozen=True):
    """A provider and a time."""
    provider: Id
    hours: Annotated[int, Meta(ge=1, le=24 * 90, description="How far back.")] = 24


class Listed(Facts, frozen=True):
    """As many as were asked for, in the order in which they are tried."""
    total: int
    providers: list[upstreams.ProviderRow]


class Cooldowns(Facts, frozen=True):
    """Soonest end first."""
    total: int
    cooldowns: list[upstreams.Cooldown]


class Metrics(Facts, frozen=True):
    """How a provider did: now, and in the hours that were asked for."""
    provider: upstreams.ProviderRow
    cooldowns: list[upstreams.Cooldown]
    latencies: list[Timing]
    attempts: list[FaringRow]


class Quota(Facts, frozen=True):
    """One account. ``headroom``: what is left of its tightest limit, 1 where none is known; ``windows``: what the provider said of
    each, as share used and seconds to its reset."""
    provider: str
    account: str
    headroom: float
    resting_s: float
    windows: dict[str, dict[str, float]]


class Quotas(Facts, frozen=True):
    """By account."""
    total: int
    accounts: list[Quota]


async def listed(errand: Errand, asked: Some) -> Listed:
    found = [structs.replace(row, strip=[]) for row in (await upstreams.providers(errand)).providers
             if asked.state in ("", row.state)]
    return Listed(total=len(found), providers=found[asked.offset:asked.offset + asked.limit])


async def one(errand: Errand, asked: One) -> upstreams.OneProvider:
    errand.params = {"id": asked.provider}
    found = await upstreams.one(errand)
    return structs.replace(found, provider=structs.replace(found.provider, strip=[]))


async def cooldowns(errand: Errand, asked: Maybe) -> Cooldowns:
    if asked.provider:
        upstreams.named(errand, asked.provider)
    found = [row for row in upstreams.cooldowns(errand, errand.ground.clock.now()) if asked.provider in ("", row.provider)]
    return Cooldowns(total=len(found), cooldowns=found[:MOST])


async def metrics(errand: Errand, asked: Lately) -> Metrics:
    errand.params = {"id": asked.provider}
    found = await upstreams.one(errand)
    read, since = errand.ground.store.ledger.read, errand.ground.clock.wall() - asked.hours * HOUR_S
    return Metrics(provider=structs.replace(found.provider, strip=[]), cooldowns=found.cooldowns,
                   latencies=(await totals.timings(read, since, by=("provider", "model"), only={"provider": asked.provider}))[:MOST],
                   attempts=[row for row in await totals.fared(read, since) if row.provider == asked.provider][:MOST])


async def quota(errand: Errand, asked: Maybe) -> Quotas:
    providers = [upstreams.named(errand, asked.provider)] if asked.provider else list(errand.ground.catalog.providers.values())
    now, quotas = errand.ground.clock.now(), errand.ground.health.quotas
    rests = upstreams.cooldowns(errand, now)
    found = []
    for provider in providers:
        mine = [row for row in rests if row.provider == provider.id]
        for account in provider.accounts:
            told = upstreams.account_row(provider, account, errand, mine, now)
            windows: dict[str, Any] = {name: {"used": round(used.share, 3), "resets_in_s": round(max(used.reset_at - now, 0.0), 1)}
                                       for name, used in quotas.get((provider.id, "", fingerprint(account)), now).items()}
            found.append(Quota(provider=provider.id, account=told.label, headroom=told.headroom, resting_s=told.resting_s,
                               windows=windows))
    return Quotas(total=len(found), accounts=found[:MOST])
