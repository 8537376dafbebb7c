"""How well are the providers? State, breakers, cooldowns, what was measured; and what an operator may clear or test."""
import asyncio
from collections.abc import Iterable
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.core.errors import GatewayError
from gateway.jobs.validate import Verdict, validate
from gateway.providers.registry import Account, Provider
from gateway.routing.breaker import profile
from gateway.routing.forgive import forgive
from gateway.routing.places import Key, fingerprint
from gateway.routing.stats import Record

STRIP: Final = 60                                # minutes
SLICE: Final = 20                                # providers that are looked at in one go
SHOWN: Final = 300                               # cooldowns
MAX_MODELS: Final = 500


class Cooldown(Facts, frozen=True):
    """Somebody rests. "" means all of them."""
    provider: str
    model: str
    account: str                                 # the key's label
    kind: str
    source: str
    remaining_s: float


class AccountRow(Facts, frozen=True):
    """One key."""
    number: int
    label: str
    priority: int
    headroom: float                              # what is left of its tightest quota, 1 where nothing is known
    resting_s: float


class Measured(Facts, frozen=True):
    """What was seen of the answers lately."""
    success: float | None
    ttft_ms: float | None
    ttft_p95_ms: float | None
    tokens_per_s: float | None


class ProviderRow(Facts, frozen=True):
    """One upstream."""
    id: str
    name: str
    wire: str
    address: str
    auth: str
    preset: str
    state: str                                   # ok, resting, degraded, half-open, open, unused
    breaker: str
    breaker_s: float
    failures: int                                # that the breaker counts
    models: int
    accounts: list[AccountRow]
    cooldowns: int
    measured: Measured
    strip: list[tuple[int, int]]                 # (answers, failures) a minute, the last hour; [] = nothing


class ModelRow(Facts, frozen=True):
    """One model of a provider."""
    id: str
    kind: str
    context: int | None
    max_output: int | None
    tools: bool | None
    vision: bool | None
    reasoning: bool | None
    input_usd: float | None
    output_usd: float | None
    measured: Measured


class Providers(Facts, frozen=True):
    """All of them, in the order in which they are asked."""
    strip_from: int                              # epoch seconds of the first minute
    providers: list[ProviderRow]
    cooldowns: list[Cooldown]


class OneProvider(Facts, frozen=True):
    """A provider with its models."""
    provider: ProviderRow
    cooldowns: list[Cooldown]
    models: list[ModelRow]
    more_models: int


class Clear(Ask, frozen=True):
    """Who is well again."""
    provider: str
    model: Annotated[str, msgspec.Meta(description="Only this model.")] = ""
    account: Annotated[str, msgspec.Meta(description="Only the key with this label.")] = ""


class Cleared(Facts, frozen=True):
    """How many cooldowns ended."""
    ended: int


class Tested(Facts, frozen=True):
    """What came of each key."""
    verdicts: list[Verdict]


async def providers(visit: Errand) -> Providers:
    ground = visit.ground
    now, wall = ground.clock.now(), ground.clock.wall()
    rows = cooldowns(visit, now)
    strips = _strips(visit, wall)
    records = _by_provider(ground.health.stats.known())
    by_provider: dict[str, list[Cooldown]] = {}
    for row in rows:
        by_provider.setdefault(row.provider, []).append(row)
    told = []
    for n, provider in enumerate(ground.catalog.providers.values(), 1):
        name = provider.id
        told.append(_row(provider, visit, by_provider.get(name, []), strips.get(name), records.get(name, ()), now))
        if n % SLICE == 0:
            await asyncio.sleep(0)                   # requests go between
    return Providers(strip_from=(int(wall // 60) - STRIP + 1) * 60, cooldowns=rows[:SHOWN], providers=told)


async def one(visit: Errand) -> OneProvider:
    ground = visit.ground
    provider = named(visit, visit.params["id"])
    now = ground.clock.now()
    rows = [row for row in cooldowns(visit, now) if row.provider == provider.id]
    records = [(key, record) for key, record in ground.health.stats.known() if key[0] == provider.id]
    models = list(provider.models.values())
    shown = []
    for model in models[:MAX_MODELS]:
        price = model.price
        shown.append(ModelRow(
            id=model.id, kind=model.kind, context=model.context, max_output=model.max_output, tools=model.tools, vision=model.vision,
            reasoning=model.reasoning, input_usd=price.input if price else None, output_usd=price.output if price else None,
            measured=measured(record for key, record in records if key[1] == model.id)))
    strip = _strips(visit, ground.clock.wall()).get(provider.id)
    return OneProvider(provider=_row(provider, visit, rows, strip, [record for _, record in records], now), cooldowns=rows,
                       models=shown, more_models=max(len(models) - MAX_MODELS, 0))


async def clear(visit: Errand) -> Cleared:
    asked: Clear = visit.body
    provider = named(visit, asked.provider)
    account = ""
    if asked.account:
        found = next((each for each in provider.accounts if label_of(each) == asked.account), None)
        if found is None:
            raise GatewayError("not_found", "This provider has no key with that label.", param="account")
        account = fingerprint(found)
    ended = forgive(visit.ground.health, provider.id, asked.model, account)
    visit.note("cooldown.clear", "/".join(filter(None, (provider.id, asked.model, asked.account))), f"{ended} ended")
    return Cleared(ended=ended)


async def test(visit: Errand) -> Tested:
    """Asks for the list of models with each key, which costs nothing."""
    provider, means = named(visit, visit.params["id"]), visit.office.means
    if means is None:
        raise GatewayError("shed", "Providers cannot be tested now.")
    verdicts = await validate([provider], means)
    visit.note("provider.test", provider.id, ", ".join(f"{v.account} {v.state}" for v in verdicts))
    return Tested(verdicts=verdicts)


def named(visit: Errand, name: str) -> Provider:
    found = visit.ground.catalog.providers.get(name)
    if found is None:
        raise GatewayError("not_found", "There is no such provider.", param="provider")
    return found


def cooldowns(visit: Errand, now: float) -> list[Cooldown]:
    """What rests, soonest end first, with labels for digests."""
    ground = visit.ground
    told: list[dict[str, Any]] = ground.health.snapshot(now)
    resting = {row["provider"] for row in told}
    labels = {(provider.id, fingerprint(account)): label_of(account) for provider in ground.catalog.providers.values()
              if provider.id in resting for account in provider.accounts}
    return [Cooldown(provider=row["provider"], model=row["model"], kind=row["kind"], source=row["source"],
                     account=labels.get((row["provider"], row["account"]), "a former key") if row["account"] else "",
                     remaining_s=row["remaining_s"]) for row in told]


def label_of(account: Account) -> str:
    return account.label or f"key{account.ordinal}"


def measured(records: Iterable[Record]) -> Measured:
    """Of several candidates together; latency weighed by samples."""
    good = total = weighed = rate = 0.0
    n = rated = 0
    p95 = 0.0
    for record in records:
        share = record.success
        if share is not None:
            good += share
            total += 1
        if record.n:
            weighed += record.mean_ms * record.n
            n += record.n
            p95 = max(p95, record.p95_ms)
        if record.rate:
            rate += record.rate
            rated += 1
    return Measured(success=good / total if total else None, ttft_ms=round(weighed / n, 1) if n else None,
                    ttft_p95_ms=round(p95, 1) if n else None, tokens_per_s=round(rate / rated, 1) if rated else None)


def address_of(provider: Provider) -> str:
    """Where it is, without what may be a secret."""
    parts = urlsplit(provider.base_url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{parts.port}' if parts.port else ''}{parts.path}" if host else ""


def _row(provider: Provider, visit: Errand, mine: list[Cooldown], strip: list[tuple[int, int]] | None, records: Iterable[Record],
         now: float) -> ProviderRow:
    health = visit.ground.health
    found = health.breakers.get(provider.id)
    breaker = found.state(profile(provider), now) if found is not None else "closed"
    accounts = [account_row(provider, account, visit, mine, now) for account in provider.accounts[:200]]
    whole = any(not row.model and not row.account for row in mine) or bool(accounts) and all(row.resting_s > 0 for row in accounts)
    state = breaker if breaker != "closed" else "resting" if whole else "partly resting" if mine else "ok"
    return ProviderRow(
        id=provider.id, name=provider.name, wire=provider.wire, address=address_of(provider), auth=provider.auth,
        preset=provider.preset, state=state, breaker=breaker,
        breaker_s=round(max(found.until - now, 0.0), 1) if found is not None and found.until else 0.0,
        failures=found.count if found is not None else 0, models=len(provider.models), accounts=accounts, cooldowns=len(mine),
        measured=measured(records), strip=strip or [])


def account_row(provider: Provider, account: Account, visit: Errand, rows: list[Cooldown], now: float) -> AccountRow:
    label, health = label_of(account), visit.ground.health
    key: Key = (provider.id, "", fingerprint(account))
    used = health.quotas.used(key, now) if health.quotas else 0.0
    if health.usage is not None:
        used = max(used, *health.usage((key,), now))
    resting = max((row.remaining_s for row in rows if row.account == label and not row.model), default=0.0)
    return AccountRow(number=account.ordinal, label=label, priority=account.priority, headroom=round(1.0 - used, 3), resting_s=resting)


def _strips(visit: Errand, wall: float) -> dict[str, list[tuple[int, int]]]:
    first = int(wall // 60) - STRIP + 1
    found: dict[str, list[tuple[int, int]]] = {}
    for minute in visit.office.series.since(wall, STRIP):
        for name, (good, bad) in minute.providers.items():
            if 0 <= minute.at - first < STRIP:
                found.setdefault(name, [(0, 0)] * STRIP)[minute.at - first] = (good, bad)
    return found


def _by_provider(known: list[tuple[Key, Record]]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for key, record in known:
        found.setdefault(key[0], []).append(record)
    return found
