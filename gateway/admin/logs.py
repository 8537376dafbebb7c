"""What does the log say? Its last lines, masked, and a tail that goes on."""
import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from aiohttp import web

from gateway.admin.errand import Ask, Errand, Facts
from gateway.admin.visit import Visit
from gateway.core.errors import GatewayError
from gateway.core.redact import mask

MOST: Final = 500
MAX_TAILS: Final = 8
LOOK_S: Final = 0.5
SILENCE_S: Final = 15.0


class Wanted(Ask, frozen=True):
    """Which lines."""
    after: Annotated[int, msgspec.Meta(ge=0, description="Only lines with a larger number.")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST, description="The newest so many.")] = 200


class Line(Facts, frozen=True):
    """One line. ``n`` grows by one a line."""
    n: int
    text: str


class Lines(Facts, frozen=True):
    """Oldest first."""
    last: int
    lines: list[Line]


def masked(lines: Sequence[tuple[int, str]], secrets: tuple[str, ...]) -> list[Line]:
    return [Line(n=n, text=mask(text, secrets)) for n, text in lines]


async def lines(visit: Errand) -> Lines:
    recent, asked = visit.office.recent, visit.query
    found = list(recent.after(asked.after, asked.limit))
    return Lines(last=recent.last, lines=await visit.office.aside(masked, found, visit.ground.snapshot.secrets))


async def tail(visit: Visit) -> web.StreamResponse:
    """Server-sent events, one JSON line each, until the reader leaves or the gateway stops. Raises shed above eight of them."""
    from gateway.admin.door import dress

    office = visit.office
    if visit.http.method == "HEAD":
        return web.Response(content_type="text/event-stream")
    if office.tails >= MAX_TAILS:
        raise GatewayError("shed", f"{MAX_TAILS} readers follow the log already.", retry_after_s=5.0)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    dress(response, visit.id)
    office.tails += 1
    try:
        await response.prepare(visit.http)
        await _follow(visit, response)
        await response.write_eof()
    finally:
        office.tails -= 1
    return response


async def _follow(visit: Visit, response: web.StreamResponse) -> None:
    office, clock = visit.office, visit.ground.clock
    seen, silent_since = visit.query.after, clock.now()
    await response.write(b": the log\n\n")
    while not office.ground.inflight.draining and visit.welcome():
        found = list(office.recent.after(seen, visit.query.limit))
        if found:
            seen, silent_since = found[-1][0], clock.now()
            told = await office.aside(masked, found, office.ground.snapshot.secrets)
            await response.write(b"".join(b"data: " + msgspec.json.encode(line) + b"\n\n" for line in told))
        elif clock.now() - silent_since >= SILENCE_S:
            silent_since = clock.now()
            await response.write(b": still here\n\n")
        await asyncio.sleep(LOOK_S)
