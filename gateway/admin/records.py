"""Which requests were there? Pages of them, newest first, and one with its attempts, read from the ledger on its own connection."""
import re
from typing import Annotated, Final

import msgspec

from gateway.admin.errand import Ask, Errand
from gateway.core.errors import GatewayError, bad_request
from gateway.store import reading

Name = Annotated[str, msgspec.Meta(max_length=400)]
Moment = Annotated[float, msgspec.Meta(ge=0, le=4e9, description="Epoch seconds; 0 = any.")]
_CURSOR: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


class Wanted(Ask, frozen=True):
    """Which ones; empty = any."""
    since: Moment = 0.0
    until: Moment = 0.0
    request: Annotated[str, msgspec.Meta(max_length=400, description="An X-Request-ID.")] = ""
    key: Name = ""
    client: Name = ""
    provider: Name = ""
    model: Annotated[str, msgspec.Meta(max_length=400, description="That answered, or was asked last.")] = ""
    asked: Annotated[str, msgspec.Meta(max_length=400, description="The name that the client used.")] = ""
    surface: Name = ""
    session: Name = ""
    outcome: Annotated[str, msgspec.Meta(max_length=40, description="ok, failed, broken, client_gone or refused.")] = ""
    error: Annotated[str, msgspec.Meta(max_length=40, description="The kind of a failure.")] = ""
    cursor: Annotated[str, msgspec.Meta(max_length=20, description="`next` of the page before.")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


async def requests(visit: Errand) -> reading.Page:
    asked: Wanted = visit.query
    if asked.cursor and not (_CURSOR.fullmatch(asked.cursor) and int(asked.cursor) <= reading.FOREVER):
        raise bad_request("cursor: is none that a page gave", "cursor")
    wanted = reading.Wanted(**{name: getattr(asked, name) for name in reading.Wanted.__struct_fields__})
    return await reading.requests(visit.ground.store.ledger.read, wanted, asked.cursor, asked.limit)


async def one(visit: Errand) -> reading.Story:
    """By its number, or the newest with this X-Request-ID."""
    found = await reading.request(visit.ground.store.ledger.read, visit.params["id"][:400])
    if found is None:
        raise GatewayError("not_found", "There is no record of this request: it is not written yet, or was let go.", param="id")
    return found
