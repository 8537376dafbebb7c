"""Who sits in the panel of this request, who judges, and how long is waited for whom? Decided before anybody is asked.

Three have a say, the request first: its field ``fusion``, the combo, ``[fusion]``. A panel is chosen from the order that routing has
for the name, from those who may be asked now; one that the request lists is taken as it is.
"""
from collections.abc import Callable, Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gateway.core.call import Call
from gateway.core.errors import GatewayError, bad_request
from gateway.core.request import Request
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.asking import ask
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan, planned
from gateway.policy.access import restrict
from gateway.policy.keys import Principal
from gateway.routing.panel import diverse
from gateway.routing.places import Leg, Target
from gateway.routing.resolve import Resolution, resolution, resolve
from gateway.routing.walk import Walk
from gateway.wire import amend
from gateway.wire.problems import decode

MOST_NAMED: Final = 64
MOST_CHOSEN_FROM: Final = 128                        # of a long order; who stands behind them would hardly be asked


class Wish(msgspec.Struct):
    """The request's field ``fusion``; unknown fields mean nothing."""
    models: Annotated[list[str], Meta(max_length=MOST_NAMED)] | None = None
    k: Annotated[int, Meta(ge=1)] | None = None
    judge: str | None = None
    strategy: Literal["synthesize", "best_of"] | None = None
    expose_panel: bool | None = None


class Body(msgspec.Struct):
    fusion: Wish | msgspec.UnsetType | None = msgspec.UNSET


class Brief(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """``members``: what each is asked by; the first ``k`` at once, the others take the places of those that fail. ``judges``: named
    ones; none = whoever answered, then the others."""
    members: tuple[Resolution, ...]
    k: int
    judges: tuple[Target, ...] = ()
    best_of: bool = False
    expose: bool = False
    quorum: int = 2
    grace_s: float = 8.0
    timeout_s: float = 90.0
    dropped: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(member.targets[0] for member in self.members)

    def among(self, fits: Callable[[Target], bool]) -> "Brief":
        """The same with those members and judges only. Judges that are named stay named, so that nobody else judges."""
        members = tuple(member for member in self.members if fits(member.targets[0]))
        judges = tuple(filter(fits, self.judges))
        return msgspec.structs.replace(self, members=members, judges=judges, k=min(self.k, len(members)),
                                       best_of=self.best_of or bool(self.judges and not judges))


_body: Final = msgspec.json.Decoder(Body)


async def briefed(call: Call, plan: Plan, principal: Principal, client: Client, ground: Ground) -> Plan:
    """The plan with its brief; without one where a single target would answer anyway. Raises bad_request naming the field."""
    request = plan.request
    if not request.chars:
        return plan                                  # nothing is asked: some clients only want a model to be loaded
    if request.n > 1:
        raise bad_request("Invalid request: n: fusion gives one answer; ask with n = 1.", "n")
    large = len(request.raw) > LARGE_BYTES
    wish = await aside(wished, request) if large else wished(request)
    if wish is not None:
        request = await aside(amend.without_field, request, client.wire, "fusion") if large \
            else amend.without_field(request, client.wire, "fusion")
        call.retold = True
        plan = msgspec.structs.replace(planned(request, plan.resolution, ground), tags=plan.tags, tags_all=plan.tags_all)
    wish = wish or Wish()
    k = seats(wish, plan.resolution, ground)
    if wish.models:
        members, dropped = named(wish.models, plan, principal, ground)
        members, over = members[:k], members[k:]
        dropped += [member.requested for member in over]
    else:
        members, dropped = chosen(plan, call.principal, client, ground)[:2 * k], []
    if len(members) == 1 and not wish.models:
        return plan
    if len(members) == 1:
        return msgspec.structs.replace(plan, resolution=members[0])
    if k == 1:
        return plan
    return msgspec.structs.replace(plan, brief=settled(wish, members, k, tuple(dropped), plan.resolution, principal, ground))


def wished(request: Request) -> Wish | None:
    body, _ = decode(request.raw, _body)
    return None if body.fusion is msgspec.UNSET else body.fusion or Wish()


def seats(wish: Wish, asked: Resolution, ground: Ground) -> int:
    """How many answer at once: as many as the request names or wants, all of a combo, else the operator's number."""
    table = ground.snapshot.fusion
    combo = asked.strategy == "fusion" and asked.combo is not None
    return min(wish.k or len(set(wish.models or ())) or (len(asked.targets) if combo else table.k), table.max_k)


def settled(wish: Wish, members: list[Resolution], k: int, dropped: tuple[str, ...], asked: Resolution, principal: Principal,
            ground: Ground) -> Brief:
    table, own = ground.snapshot.fusion, asked.settings
    k = min(k, len(members))
    quorum = table.quorum if own.quorum is None else own.quorum
    return Brief(members=tuple(members), k=k, judges=judges(wish.judge or own.judge or table.judge, wish, principal, ground),
                 best_of=wish.strategy == "best_of", expose=bool(wish.expose_panel), quorum=min(quorum, k),
                 grace_s=table.grace_s if own.grace_s is None else own.grace_s,
                 timeout_s=own.panel_timeout_s or table.timeout_s, dropped=dropped)


def judges(name: str, wish: Wish, principal: Principal, ground: Ground) -> tuple[Target, ...]:
    """Who may judge, by a name. The request's own must lead somewhere; the operator's may be gone since, then anybody judges."""
    if not name:
        return ()
    try:
        found = resolve(name, ground.catalog)
        # the operator's own choice is allowed to everybody whom he lets ask a panel
        return restrict(principal, name, found.kind, found.targets) if wish.judge else found.targets
    except GatewayError as error:
        if not wish.judge:
            return ()
        error.param = "fusion.judge"
        raise


def named(names: Iterable[str], plan: Plan, principal: Principal, ground: Ground) -> tuple[list[Resolution], list[str]]:
    """Those that the request lists and that can serve it, in its order; and whom not."""
    found: dict[Target, Resolution] = {}
    dropped: list[str] = []
    for name in dict.fromkeys(names):
        try:
            meant = resolve(name, ground.catalog)
            targets = restrict(principal, name, meant.kind, meant.targets)
        except GatewayError:
            dropped.append(name)
            continue
        able = free(meant.only(targets), plan, ground)
        new = next((target for target in able if target not in found), None)
        if new is None:
            dropped.append(name)
        else:
            found[new] = able[new]
    if not found:
        raise bad_request("Invalid request: fusion.models: none of them can serve this request now.", "fusion.models")
    return list(found.values()), dropped


def chosen(plan: Plan, principal: str, client: Client, ground: Ground) -> list[Resolution]:
    """The panel and who takes the places of those that fail. Raises what a request would hear that nobody can serve."""
    asked = ask(plan, principal, client, ground)
    now, wall = ground.clock.now(), ground.clock.wall()
    walk = Walk(plan.resolution, plan.request, ground.health, plan.input_tokens, now, asked)
    able = alone(walk, now)
    if not able:
        raise walk.exhaustion(now, wall)
    order = list(able)
    listed = plan.resolution.strategy == "fusion" and len(order) <= ground.snapshot.fusion.max_k
    return [able[target] for target in (order if listed else diverse(order))]


def free(meant: Resolution, plan: Plan, ground: Ground) -> dict[Target, Resolution]:
    now = ground.clock.now()
    return alone(Walk(meant, plan.request, ground.health, plan.input_tokens, now), now)


def alone(walk: Walk, now: float) -> dict[Target, Resolution]:
    """Each target that may be asked now, with its places: what a member is asked by."""
    places: dict[Target, dict[Leg, None]] = {}
    for row in walk.rows(now):
        if not row.reason and row.leg is not None and (row.target in places or len(places) < MOST_CHOSEN_FROM):
            places.setdefault(row.target, {})[row.leg] = None
    found: dict[Target, Resolution] = {}
    for target, legs in places.items():
        first = next(iter(legs))
        walk.at(first)
        settings = walk.settings(first.candidates[0])
        found[target] = msgspec.structs.replace(resolution((target,), target.label, "target"), legs=tuple(legs), settings=settings,
                                                several=False)
    return found
