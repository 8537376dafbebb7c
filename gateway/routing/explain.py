"""Which targets would serve this model now, in which order, and why? The walk itself, told as rows (the CLI renders them)."""
from typing import Any, Final

import msgspec

from gateway.core.request import Request
from gateway.routing.catalog import Catalog
from gateway.routing.health import Health
from gateway.routing.resolve import Resolution, resolve
from gateway.routing.rows import Row, words
from gateway.routing.walk import Walk

_MEANS: Final[dict[str, str]] = {
    "target": "named with its provider",
    "model": "serves this model",
    "alias": "has this alias",
    "virtual": "is part of auto",
    "family": "stands in for this family, which nobody serves",
}


class Place(msgspec.Struct, frozen=True):
    """One candidate. ``position`` 1, 2 … in the order of attempts, None = skipped. ``account``: its number in its provider."""
    position: int | None
    label: str
    account: int | None
    account_label: str
    reason: str
    skip: str = ""                        # class of the reason when skipped (rows.Reason)
    retry_s: float | None = None


def explain(name: str, catalog: Catalog, health: Health, request: Request | None, input_tokens: int,
            now: float) -> list[Place]:
    """Raises GatewayError no_model like a request would. Changes nothing and calls nobody."""
    resolution = resolve(name, catalog)
    asked = request or Request(wire="openai-chat", raw=b"", body=None, model=name, stream=True)
    walk = Walk(resolution, asked, health, input_tokens, now)
    places: list[Place] = []
    position = 0
    for row in walk.rows(now):
        usable = not row.reason
        position += usable
        places.append(_place(row, position if usable else None, resolution, now))
    return places


def as_data(places: list[Place]) -> list[dict[str, Any]]:
    """For ``--json``."""
    found: list[dict[str, Any]] = msgspec.to_builtins(places)
    return found


def _place(row: Row, position: int | None, resolution: Resolution, now: float) -> Place:
    account = row.candidate.account if row.candidate is not None else None
    if row.reason:
        why = words(row, now)
    else:
        why = f"{_MEANS[resolution.kind]}; {resolution.strategy} order"
        if len(row.target.candidates) > 1:
            why += ", keys take turns"
    return Place(position=position, label=row.target.label, account=account.ordinal if account else None,
                 account_label=account.label if account else "", reason=why, skip=row.reason,
                 retry_s=round(row.until - now, 3) if row.until > now else None)
