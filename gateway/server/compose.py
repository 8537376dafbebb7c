"""Which concrete parts make a gateway? The only place that knows them all."""
from random import Random

import msgspec

from gateway.config.catalog import catalog
from gateway.config.snapshot import Snapshot
from gateway.core.clock import Clock, SystemClock
from gateway.core.ports import Journal, Store
from gateway.memory.traces import Traces
from gateway.observe.access import AccessLog
from gateway.pipeline.ground import Ground, Inflight
from gateway.policy.keys import KeyRing
from gateway.policy.limits import Limits
from gateway.routing.health import Health
from gateway.server.keep import Keeper
from gateway.store.opening import store_at
from gateway.store.vault import vault_at
from gateway.surfaces.desk import Desk
from gateway.upstream.reach import Fetcher
from gateway.upstream.tokens import Tokens
from gateway.upstream.transport import Transport


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


def build(snapshot: Snapshot, *, journal: Journal | None = None, clock: Clock | None = None) -> tuple[Desk, Parts]:
    """A desk ready to serve; call within a running loop (the transports bind to it)."""
    from gateway.mock.demo import DemoTransport
    from gateway.upstream.aiohttp_transport import AiohttpTransport

    clock = clock or SystemClock()
    transports: dict[str, Transport] = {"network": AiohttpTransport(), "demo": DemoTransport()}
    limits, store = Limits(), store_at(snapshot.store, clock)
    health = Health(dice=Random())
    parts = Parts(transports=transports, health=health, limits=limits,
                  journal=journal or AccessLog(snapshot.log.format, snapshot.log.level), clock=clock,
                  inflight=Inflight(), store=store, keeper=Keeper(health, store.state, clock), traces=Traces(),
                  tokens=Tokens(transports["network"], clock, vault_at(snapshot.store)), fetcher=Fetcher())
    health.usage = limits.used
    return Desk(ground(snapshot, parts)), parts


def ground(snapshot: Snapshot, parts: Parts) -> Ground:
    """The ground of one configuration on parts that live on."""
    parts.health.transient_cooldown_s = snapshot.routing.transient_cooldown_s
    parts.health.budget_s = snapshot.routing.budget_s
    return Ground(snapshot, catalog=catalog(snapshot), keys=KeyRing(snapshot.keys), health=parts.health,
                  limits=parts.limits, transports=parts.transports, journal=parts.journal, clock=parts.clock,
                  inflight=parts.inflight, store=parts.store, traces=parts.traces, tokens=parts.tokens, fetcher=parts.fetcher)


async def dissolve(parts: Parts) -> None:
    await parts.tokens.close()
    await parts.fetcher.close()
    for transport in parts.transports.values():
        await transport.close()
    await parts.keeper.close()
    await parts.store.close()
    await parts.journal.close()


