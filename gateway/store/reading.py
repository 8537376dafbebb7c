"""What can be read of the records? Typed rows for the pages, the commands and the tools; all SQL that reads the ledger is here.

Every function takes ``read``: a ledger's own (``store.ledger.read``), or ``store.lookup.reader(address)`` where no gateway runs.
It may raise GatewayError. Times are epoch seconds, ``since`` inclusive and ``until`` exclusive. Ids are decimal text: they do
not fit into a number of JavaScript. A cost of None is unknown, which is not nothing.
"""
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from gateway.store.batch import first_id
from gateway.store.pressing import opened
from gateway.store.records import ATTEMPT, REQUEST

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

MAX_PAGE: Final = 500
FOREVER: Final = (1 << 63) - 1


class RequestRow(msgspec.Struct, frozen=True):
    """One request. ``provider`` and ``model``: who answered, else who was asked last; ``routed`` is empty unless somebody answered.
    ``outcome``: ok, failed, broken, client_gone or refused; ``error`` a kind of core.errors."""
    id: str
    at: float
    request: str
    surface: str
    wire: str
    operation: str
    asked: str
    provider: str
    model: str
    routed: str
    key: str
    client: str
    session: str
    strategy: str
    decision: str
    stream: bool
    status: int
    outcome: str
    error: str
    message: str
    finish: str
    attempts: int
    input: int
    output: int
    cached: int
    cache_write: int
    reasoning: int
    estimated: bool
    cost_usd: float | None
    latency_ms: float
    ttft_ms: float | None
    upstream_ms: float
    overhead_ms: float
    bytes_in: int
    bytes_out: int
    role: str                                    # "shadow": a copy that no client waited for


class AttemptRow(msgspec.Struct, frozen=True):
    """One attempt; its times count from the start of the request, so that they draw a waterfall."""
    n: int
    provider: str
    model: str
    account: str
    status: int
    outcome: str
    error: str
    message: str
    started_ms: float
    headers_ms: float | None
    ttft_ms: float | None
    ended_ms: float
    upstream_ms: float
    input: int
    output: int
    cached: int
    cache_write: int
    reasoning: int
    estimated: bool
    cost_usd: float | None
    upstream_id: str
    upstream_model: str
    drift: bool                                  # it said that another model than the one asked for answered
    role: str                                    # panel · judge · resumed; "" = to answer


class Page(msgspec.Struct, frozen=True):
    """``next`` is the cursor of the page after this one; "" = this is the last."""
    requests: list[RequestRow]
    next: str


class ArtifactRow(msgspec.Struct, frozen=True):
    """A body that was kept: ``kind`` request or response; ``n_bytes`` what it had, ``cut``: not all of it is there."""
    kind: str
    n_bytes: int
    cut: bool


class Story(msgspec.Struct, frozen=True):
    """One request with everything that is known of it."""
    request: RequestRow
    attempts: list[AttemptRow]
    artifacts: list[ArtifactRow]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests; empty = any. ``request`` is an X-Request-ID."""
    since: float = 0.0
    until: float = 0.0
    request: str = ""
    key: str = ""
    client: str = ""
    provider: str = ""
    model: str = ""
    asked: str = ""
    surface: str = ""
    session: str = ""
    outcome: str = ""
    error: str = ""


_EQUAL: Final = ("request", "key", "client", "provider", "model", "asked", "surface", "session", "outcome", "error")
_REQUESTS: Final = f"SELECT {', '.join(REQUEST)} FROM requests"
_ATTEMPTS: Final = f"SELECT {', '.join(ATTEMPT[1:])} FROM attempts WHERE request_id = ? ORDER BY n"
_ARTIFACTS: Final = "SELECT kind, n_bytes, cut FROM artifacts WHERE request_id = ? ORDER BY kind"
_ARTIFACT: Final = "SELECT encoding, data FROM artifacts WHERE request_id = ? AND kind = ?"
_DRIFT: Final = ATTEMPT.index("drift") - 1
_STREAM, _ESTIMATED, _OF_ATTEMPT = REQUEST.index("stream"), REQUEST.index("estimated"), ATTEMPT.index("estimated") - 1


async def requests(read: Read, wanted: Wanted | None = None, cursor: str = "", limit: int = 50) -> Page:
    """Newest first (by when they ended). ``cursor`` as the page before gave it; raises ValueError where it is none."""
    wanted, limit = wanted or Wanted(), max(1, min(limit, MAX_PAGE))
    where, values = ["id < ?"], [int(cursor) if cursor else FOREVER]
    if wanted.since:
        where += ["id >= ?", "at >= ?"]          # who began later than this ended later
        values += [first_id(wanted.since), wanted.since]    # type: ignore[list-item]
    if wanted.until:
        where.append("at < ?")
        values.append(wanted.until)              # type: ignore[arg-type]
    for name in _EQUAL:
        if value := getattr(wanted, name):
            where.append(f"{name} = ?")
            values.append(value)
    sql = f"{_REQUESTS} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"
    found = [request_row(row) for row in await read(sql, (*values, limit + 1))]
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else "")


async def request(read: Read, id_: str) -> Story | None:
    """By its id, or the newest with this X-Request-ID."""
    rows: list[Any] = []
    if id_.isdecimal() and len(id_) < 20:
        rows = list(await read(f"{_REQUESTS} WHERE id = ?", (min(int(id_), FOREVER),)))
    rows = rows or list(await read(f"{_REQUESTS} WHERE request = ? ORDER BY id DESC LIMIT 1", (id_,)))
    if not rows:
        return None
    number = rows[0][0]
    return Story(request_row(rows[0]), [attempt_row(row) for row in await read(_ATTEMPTS, (number,))],
                 [ArtifactRow(kind, n_bytes, bool(cut)) for kind, n_bytes, cut in await read(_ARTIFACTS, (number,))])


async def artifact(read: Read, id_: str, kind: str) -> bytes | None:
    """A body that was kept (log.capture_bodies), masked and perhaps cut; ``kind``: request or response."""
    if not (id_.isdecimal() and len(id_) < 20):
        return None
    for encoding, data in await read(_ARTIFACT, (min(int(id_), FOREVER), kind)):
        return opened(encoding, bytes(data))
    return None


def request_row(row: Any) -> RequestRow:
    values = list(row)
    values[0] = str(values[0])
    values[_STREAM], values[_ESTIMATED] = bool(values[_STREAM]), bool(values[_ESTIMATED])
    return RequestRow(*values)


def attempt_row(row: Any) -> AttemptRow:
    values = list(row)
    values[_OF_ATTEMPT], values[_DRIFT] = bool(values[_OF_ATTEMPT]), bool(values[_DRIFT])
    return AttemptRow(*values)
