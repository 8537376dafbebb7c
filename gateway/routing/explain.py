"""Which targets would serve this model now, in which order, and why? The walk itself, told as rows (the CLI renders them)."""
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gateway.core.request import Request
from gateway.routing.ask import NOTHING, Ask
from gateway.routing.catalog import Candidate, Catalog
from gateway.routing.health import Health
from gateway.routing.order import shortcoming
from gateway.routing.resolve import Resolution, resolve
from gateway.routing.rows import Row, words
from gateway.routing.walk import Walk

_MEANS: Final[dict[str, str]] = {
    "target": "named with its provider",
    "combo": "is part of this combo",
    "model": "serves this model",
    "alias": "has this alias",
    "virtual": "is part of auto",
    "family": "stands in for this family, which nobody serves",
}


class Place(msgspec.Struct, frozen=True):
    """One candidate. ``position`` 1, 2 … in the order of attempts, None = skipped. ``account``: its number in its provider.
    ``place`` is the execution key: the way through the combos."""
    position: int | None
    label: str
    account: int | None
    account_label: str
    reason: str
    skip: str = ""                        # class of the reason when skipped (rows.Reason)
    retry_s: float | None = None
    strategy: str = ""
    place: str = ""
    input_usd: float | None = None        # per million tokens; None = unknown
    output_usd: float | None = None


class Decision(msgspec.Struct, frozen=True):
    """Who would be asked, in which order and why; ``kind`` is how the name was understood (resolve.Form)."""
    requested: str
    kind: str
    strategy: str
    places: list[Place]


def explain(name: str, catalog: Catalog, health: Health, request: Request | None, input_tokens: int, now: float,
            ask: Ask = NOTHING, sticky_ttl_s: float = 0.0) -> list[Place]:
    """The places of ``decided``."""
    return decided(name, catalog, health, request, input_tokens, now, ask, sticky_ttl_s).places


def decided(name: str, catalog: Catalog, health: Health, request: Request | None, input_tokens: int, now: float,
            ask: Ask = NOTHING, sticky_ttl_s: float = 0.0, full_s: Callable[[Candidate], float] | None = None) -> Decision:
    """Raises GatewayError no_model like a request would. Changes nothing and calls nobody. ``full_s``: for how long an account's
    own limits have no room."""
    resolution = resolve(name, catalog)
    asked = request or Request(wire="openai-chat", raw=b"", body=None, model=name, stream=True)
    walk = Walk(resolution, asked, health.fork(), input_tokens, now, ask, sticky_ttl_s, telling=True)
    if full_s is not None:
        for candidate in {candidate for leg in resolution.legs for candidate in leg.candidates}:
            if (wait_s := full_s(candidate)) > 0:
                walk.busy(candidate, now + wait_s)
    return told(walk, asked, now)


def told(walk: Walk, request: Request, now: float, opening: bool = True) -> Decision:
    """The decision of a walk. Not ``opening``: combos inside stay closed, so that nothing is drawn before its turn."""
    resolution = walk.resolution
    places: list[Place] = []
    position = 0
    for row in walk.rows(now, opening):
        usable = not row.reason
        position += usable
        places.append(_place(row, position if usable else None, resolution, walk, request, now))
    return Decision(resolution.requested, resolution.kind, resolution.strategy, places)


def as_data(places: list[Place]) -> list[dict[str, Any]]:
    """For ``--json``."""
    found: list[dict[str, Any]] = msgspec.to_builtins(places)
    return found


def _place(row: Row, position: int | None, resolution: Resolution, walk: Walk, request: Request, now: float) -> Place:
    account = row.candidate.account if row.candidate is not None else None
    leg, price = row.leg, row.target.model.price
    if row.reason:
        why = words(row, now)
    else:
        why = f"{_MEANS[resolution.kind]}; {_order(row, resolution, walk)}"
        if leg is not None and len(leg.candidates) > 1:
            why += ", keys take turns"
        if leg is not None and (short := shortcoming(leg, request)):
            why += f"; last, since it {short}"
    label = leg.combo.name if leg is not None and leg.combo is not None else row.target.label
    return Place(position=position, label=label, account=account.ordinal if account else None,
                 account_label=account.label if account else "", reason=why, skip=row.reason,
                 retry_s=round(row.until - now, 3) if row.until > now else None, strategy=resolution.strategy,
                 place=leg.key if leg is not None else "", input_usd=price.input if price else None,
                 output_usd=price.output if price else None)


def _order(row: Row, resolution: Resolution, walk: Walk) -> str:
    """The strategies on the way to a place, the outermost first, and what led to it there."""
    told, leg = [f"{resolution.strategy} order"], row.leg
    if leg is not None:
        inside = walk.opened.get(leg.place)
        if inside is not None and inside[1].combo is not None:
            told.append(f"{inside[1].combo.name} in {inside[1].combo.strategy} order")
        why = walk.view.why if walk.view is not None else {}
        if (reason := why.get(leg.key) or why.get(leg.place)):
            told.append(reason)
    return ", ".join(told)
