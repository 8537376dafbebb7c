"""What would another target have answered? A copy of a client's request, sent in the background; its answer is recorded and dropped.

Nobody waits for it and nobody pays for it but the operator: it starts after the client's own request, takes no account that rests or
is half used up, changes nothing of what routing knows, and is left where time, number or the gateway itself ends.
"""
import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.config.schema import Shadow
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline import record
from gateway.pipeline.attempt import Exchange, deliver_salvage, try_once
from gateway.pipeline.booking import close
from gateway.pipeline.deliver import Client
from gateway.pipeline.hop import Hop
from gateway.pipeline.prepare import Plan
from gateway.pipeline.recall import session_of
from gateway.pipeline.search import Search, Taken, Way
from gateway.routing.catalog import Candidate
from gateway.routing.resolve import resolution, resolve
from gateway.routing.walk import Walk
from gateway.routing.wildcards import compiled

AFTER_S: Final = 0.02                        # the client's own request goes first
SPARE_SHARE: Final = 0.5                     # of an account's limits, which shadows leave to clients
ROLE: Final = "shadow"
SAME: Final = ("surface", "wire", "operation", "request", "principal", "client", "stream")      # of both calls
WAY: Final = Way(Exchange, try_once, deliver_salvage)


class Nobody(Client):
    """A client that is not there: everything is taken, nothing is kept."""

    __slots__ = ()

    def __init__(self, call: Call, of: Client) -> None:
        super().__init__(of.http, call, of.wire, {}, None)
        self.headers: Mapping[str, str] = of.headers

    async def start(self) -> None:
        self.call.status = 200

    async def write(self, data: bytes, now: float) -> None:
        self.written += len(data)

    async def end(self, data: bytes = b"") -> None:
        self.written += len(data)

    async def answer(self, body: bytes, status: int = 200, content_type: str = "application/json",
                     more: Mapping[str, str] | None = None) -> None:
        self.call.status = status
        self.written += len(body)

    def start_early(self, now: float) -> None:
        return


def cast(search: Search) -> None:
    """Start what the operator wants copied. Never waits, never raises."""
    ground, requested = search.ground, search.plan.resolution.requested or "auto"
    for rule in ground.snapshot.routing.shadow:
        if not any(compiled(pattern).fullmatch(requested) for pattern in rule.models):
            continue
        dice = ground.health.dice
        if rule.share < 1.0 and (dice is None or dice.random() >= rule.share):
            continue
        if ground.extras.running(rule.target) < rule.concurrency and not ground.inflight.draining:
            ground.extras.start(rule.target, _send(rule, search))


async def _send(rule: Shadow, origin: Search) -> None:
    await asyncio.sleep(AFTER_S)
    taken = _aim(rule, origin)
    if taken is None:
        return
    search, candidate = taken
    ground, call = search.ground, search.call
    x = search.begin(candidate)
    assert isinstance(x, Exchange)
    call.session = session_of(x) if x.notes is not None else ""
    x.notes = None                           # what it says is no part of the session
    call.principal = ""
    error: GatewayError | None = GatewayError("internal", "left before its turn was whole")
    try:
        async with asyncio.timeout(rule.timeout_s):
            await try_once(x)
        error = x.attempt.error
    except GatewayError as failed:
        error = failed
    except TimeoutError:
        error = GatewayError("timeout", f"no complete answer within {rule.timeout_s:g} s")
    except asyncio.CancelledError:
        error = GatewayError("shed", "The gateway is shutting down.")
        raise
    finally:
        _end(x, error)
        record.close(call, search.client, None, ground)


def _end(x: Hop, error: GatewayError | None) -> None:
    now = x.ground.clock.now()
    close(x, error, now)
    x.call.error = error
    usage = x.attempt.usage
    if usage is not None:
        x.reservation.settle(usage.input + usage.output, now)
    else:
        x.reservation.release(now)
    x.let_go()


def _aim(rule: Shadow, origin: Search) -> "tuple[Search, Taken] | None":
    """The copy and who gets it; None where nobody is free for it."""
    ground, now, asked = origin.ground, origin.ground.clock.now(), origin.call
    try:
        flat = resolution(resolve(rule.target, ground.catalog).targets, rule.target, "target")
        walk = Walk(flat, origin.plan.request, ground.health, origin.plan.input_tokens, now)
        candidate = next((row.candidate for row in walk.rows(now) if not row.reason and row.candidate is not None
                          and _spare(row.candidate, origin, now)), None)
        if candidate is None:
            return None
        reservation = ground.limits.take_accounts([(candidate.account_key, candidate.target.provider.limits)], walk.tokens, now)
    except GatewayError:
        return None
    call = Call(id=f"{asked.id}-{ROLE}", role=ROLE, started=now, wall=ground.clock.wall(), strategy=flat.strategy,
                places=len(walk.legs), **{name: getattr(asked, name) for name in SAME})
    plan: Plan = msgspec.structs.replace(origin.plan, resolution=flat, previous="")
    return Search(call, plan, Nobody(call, origin.client), ground, WAY, walk), (candidate, reservation)


def _spare(candidate: Candidate, origin: Search, now: float) -> bool:
    """Is it well, and would a client not miss it?"""
    health = origin.ground.health
    return health.trial(candidate, now) == "free" and health.headroom(candidate, now) >= SPARE_SHARE
