"""Which concrete parts make a gateway? The only place that knows them all."""
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TypeVar

import msgspec

from gateway.admin.office import Office
from gateway.cache.keeping import Keeping
from gateway.cache.replays import Replays
from gateway.compress.tally import Tally
from gateway.config.catalog import catalog
from gateway.config.snapshot import Snapshot
from gateway.core.clock import Clock, SystemClock
from gateway.core.errors import GatewayError
from gateway.core.ports import Journal, SharedState, Store
from gateway.jobs.accounts import Accounts
from gateway.jobs.background import Jobs
from gateway.jobs.discovery import Discovery
from gateway.jobs.listing import Means
from gateway.jobs.retention import Retention
from gateway.memory.traces import Traces
from gateway.observe.access import AccessLog
from gateway.observe.journals import Journals
from gateway.observe.lag import Lag
from gateway.observe.meter import Meter
from gateway.observe.recent import Recent
from gateway.observe.series import Series
from gateway.observe.tallies import Tallies
from gateway.observe.telemetry import Telemetry
from gateway.observe.webhooks import Webhooks
from gateway.pipeline.combobook import ComboBook
from gateway.pipeline.extras import Extras
from gateway.pipeline.ground import Ground, Inflight
from gateway.policy.budget import Budgets, periods
from gateway.policy.keybook import KeyBook
from gateway.policy.keys import KeyRing
from gateway.policy.limits import Limits
from gateway.routing.health import Health
from gateway.server.keep import Keeper
from gateway.server.keykeep import KeyKeeper
from gateway.server.sharing import Sharing
from gateway.shared.local import LocalHub
from gateway.store.opening import store_at
from gateway.store.seal import Sealer
from gateway.store.vault import vault_at
from gateway.surfaces.desk import Desk
from gateway.tokens.calibrate import Calibration
from gateway.upstream.reach import Fetcher
from gateway.upstream.tokens import Tokens, Vault
from gateway.upstream.transport import Transport

T = TypeVar("T")


class Parts(msgspec.Struct):
    """What outlives a reload."""
    transports: dict[str, Transport]
    health: Health
    limits: Limits
    journal: Journal
    clock: Clock
    inflight: Inflight
    store: Store
    traces: Traces
    keeper: Keeper
    tokens: Tokens
    fetcher: Fetcher
    means: Means
    discovery: Discovery
    calibration: Calibration
    extras: Extras
    recent: Recent
    series: Series
    tallies: Tallies
    lag: Lag
    telemetry: Telemetry
    webhooks: Webhooks
    budgets: Budgets
    ring: KeyRing
    keybook: KeyBook
    combobook: ComboBook
    keykeeper: KeyKeeper
    sealer: Sealer
    accounts: Accounts
    replays: Replays
    tally: Tally
    keeping: Keeping
    crew: LocalHub | None = None                 # the other workers of this machine
    sharing: Sharing | None = None               # where other processes serve the same gateway
    written: Snapshot | None = None              # the last configuration, without what was found and stored besides


class Offline(msgspec.Struct, frozen=True):
    """A store without a gateway around it, for commands."""
    book: KeyBook
    accounts: Accounts
    vault: Vault


def network() -> tuple[Transport, Transport]:
    """Our own client, and aiohttp's, through which it goes where it has no way of its own. The first closes both."""
    from gateway.upstream.h1.transport import H1Transport

    fast = H1Transport()
    return fast, fast.plain


def build(snapshot: Snapshot, *, journal: Journal | None = None, clock: Clock | None = None, leads: bool = True) -> tuple[Desk, Parts]:
    """A desk ready to serve; call within a running loop (the transports bind to it). ``leads``: what one of several workers does
    for all is done by this one."""
    from gateway.mock.demo import DemoTransport

    clock = clock or SystemClock()
    fast, plain = network()
    transports: dict[str, Transport] = {"network": fast, "aiohttp": plain, "demo": DemoTransport()}
    sealer = Sealer(snapshot.master_keys)
    limits, store = Limits(), store_at(snapshot.store, clock)
    health = Health(dice=Random())
    means = Means(fast, Tokens(fast, clock, vault_at(snapshot.store, sealer)), clock, plain)
    recent, series, tallies, telemetry = Recent(), Series(), Tallies(), Telemetry()
    replays, inflight = Replays(), Inflight()
    budgets, ring = Budgets(clock.wall), KeyRing(wall=clock.wall)
    book, webhooks = KeyBook(store.keys, ring, clock, budgets), Webhooks(budgets, clock.wall)
    parts = Parts(transports=transports, health=health, limits=limits, recent=recent, series=series,
                  tallies=tallies, lag=Lag(inflight), telemetry=telemetry, webhooks=webhooks, clock=clock,
                  inflight=inflight, store=store,
                  journal=journal or journals(snapshot, recent, series, tallies, telemetry, webhooks, store.ledger),
                  keeper=Keeper(health, store.state, clock), traces=Traces(),
                  tokens=means.tokens, fetcher=Fetcher(), means=means, discovery=Discovery(means), calibration=Calibration(),
                  budgets=budgets, ring=ring, keybook=book, combobook=ComboBook(store.combos, clock),
                  keykeeper=KeyKeeper(book, budgets, store.spent, clock),
                  sealer=sealer, accounts=Accounts(store.keys, sealer, clock), extras=Extras(),
                  replays=replays, tally=Tally(), keeping=Keeping(replays.answers, store.answers, clock))
    health.usage = limits.shares
    webhooks.leads = leads
    desk = Desk(ground(snapshot, parts))
    desk.meter = Meter(tallies, parts.lag, lambda: desk.ground)
    desk.meter.webhooks = webhooks.counts
    webhooks.ground = lambda: desk.ground
    parts.combobook.ground = lambda: desk.ground
    parts.combobook.rebuild = partial(rebuild, desk, parts)
    return desk, parts


def journals(snapshot: Snapshot, recent: Recent, *others: Journal) -> Journals:
    """Who is told of every finished request."""
    return Journals(AccessLog(snapshot.log.format, snapshot.log.level, recent=recent), *others)


def ground(snapshot: Snapshot, parts: Parts) -> Ground:
    """The ground of one configuration, with what was found besides, on parts that live on."""
    parts.written = snapshot
    parts.sealer.use(snapshot.master_keys)
    snapshot = parts.combobook.apply(parts.discovery.apply(parts.accounts.apply(snapshot)))
    parts.health.transient_cooldown_s = snapshot.routing.transient_cooldown_s
    parts.health.budget_s = snapshot.routing.budget_s
    parts.health.memory.sheets.clear()        # they hold places of the old catalog
    parts.replays.answers.max_entries = snapshot.cache.max_entries
    parts.keeping.enabled = snapshot.cache.persist
    parts.replays.answers.max_bytes = snapshot.cache.max_bytes
    parts.series.counting = snapshot.admin.enabled or snapshot.config.mcp.enabled
    parts.ring.configure(snapshot.keys, snapshot.groups, snapshot.overall, snapshot.keys_required)
    found = catalog(snapshot)
    parts.tallies.counting = snapshot.metrics.enabled
    parts.tallies.canonical = found.canonical
    parts.telemetry.use(snapshot.otel, found)
    parts.webhooks.use(snapshot.webhooks, snapshot.secrets)
    return Ground(snapshot, catalog=found, keys=parts.ring, health=parts.health,
                  limits=parts.limits, transports=parts.transports, journal=parts.journal, clock=parts.clock,
                  inflight=parts.inflight, store=parts.store, traces=parts.traces, tokens=parts.tokens, fetcher=parts.fetcher,
                  calibration=parts.calibration, budgets=parts.budgets, keybook=parts.keybook, combobook=parts.combobook,
                  extras=parts.extras, replays=parts.replays, tally=parts.tally,
                  responses=parts.sharing.responses if parts.sharing is not None else None)


async def with_means(snapshot: Snapshot, work: Callable[[Means], Awaitable[T]]) -> T:
    """Do something outside of a gateway with a network of its own."""
    clock, (transport, plain) = SystemClock(), network()
    tokens = Tokens(transport, clock, vault_at(snapshot.store, Sealer(snapshot.master_keys)))
    try:
        return await work(Means(transport, tokens, clock, plain))
    finally:
        await tokens.close()
        await transport.close()


async def with_store(snapshot: Snapshot, work: Callable[[Offline], Awaitable[T]]) -> T:
    """Do something with the keys of a store that a running gateway may use at the same time. Raises GatewayError."""
    clock, sealer = SystemClock(), Sealer(snapshot.master_keys)
    store, budgets, ring = store_at(snapshot.store, clock), Budgets(clock.wall), KeyRing(wall=clock.wall)
    ring.configure(snapshot.keys, snapshot.groups)
    book = KeyBook(store.keys, ring, clock, budgets)
    await store.open()
    try:
        if not store.reachable:
            raise GatewayError("internal", "The store cannot be opened; its log line says why.", status=503)
        await book.open()
        budgets.others(await store.spent.spent(periods(clock.wall()), True))
        return await work(Offline(book, Accounts(store.keys, sealer, clock), vault_at(snapshot.store, sealer)))
    finally:
        await store.close()


def jobs(desk: Desk, parts: Parts) -> Jobs:
    """The work in the background; what it finds is in the next ground."""
    return Jobs(parts.discovery, parts.means, lambda: desk.ground, partial(rebuild, desk, parts), parts.combobook.refresh,
                Retention(parts.store.ledger, parts.clock, lambda: desk.ground.snapshot.retention_days).run)


def rebuild(desk: Desk, parts: Parts) -> None:
    """The same configuration on a ground of its own, with what was found, or made, since."""
    if parts.written is not None:
        desk.ground = ground(parts.written, parts)


async def share(desk: Desk, parts: Parts, crew: LocalHub | None) -> None:
    """Know and tell what other processes of this gateway do: over a server that all nodes reach, else over the hub of this machine."""
    snapshot, parts.crew = desk.ground.snapshot, crew
    state: SharedState | None = crew
    if snapshot.state:
        from gateway.shared.valkey import ValkeyState

        state = ValkeyState(snapshot.state, snapshot.state_prefix)
        if crew is not None:
            await crew.open()
    if state is not None:
        parts.sharing = Sharing(state, parts, parts.clock)
        await parts.sharing.open()
        if desk.meter is not None:
            desk.meter.shared = state
        rebuild(desk, parts)


async def open_keys(desk: Desk, parts: Parts) -> None:
    """Client keys, spending and provider keys as the store has them, now and whenever somebody changes them."""
    async def changed() -> None:
        if await parts.accounts.refresh():
            rebuild(desk, parts)

    parts.keykeeper.changed = parts.accounts.changed = changed
    await parts.keykeeper.open()
    try:
        await changed()
    except GatewayError as error:
        logging.getLogger("gateway.accounts").error("provider keys of the store cannot be read: %s", error.message)


def office(desk: Desk, parts: Parts) -> Office:
    """The operator's side, which from now on hears what is logged."""
    logging.getLogger().addHandler(parts.recent)
    made = Office(desk, parts.recent, parts.series)
    made.means = parts.means
    made.accounts = parts.accounts
    return made


async def dissolve(parts: Parts) -> None:
    logging.getLogger().removeHandler(parts.recent)
    await parts.tokens.close()
    await parts.fetcher.close()
    for transport in parts.transports.values():
        await transport.close()
    await parts.keeper.close()
    await parts.keykeeper.close()
    if parts.sharing is not None:
        await parts.sharing.close()
    if parts.crew is not None:
        await parts.crew.close()
    await parts.store.close()
    await parts.journal.close()


