"""Is the process alive, and may traffic come? ``/livez`` and ``/readyz`` (contract 4); open, without secrets."""
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door


async def livez(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    body = {"status": "ok", "version": desk.version, "uptime_s": int(desk.ground.clock.now() - desk.started)}
    return await _say(http, door, desk, body, 200)


async def readyz(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """503 when draining, when nothing is configured or when the store cannot be written; a rate-limited upstream does not make the
    node unready."""
    ground = desk.ground
    ready = len(ground.catalog.providers)
    reason = "draining" if ground.inflight.draining else "no_upstreams_configured" if not ready else \
        None if ground.store.reachable else "store_unreachable"
    if reason is None:
        return await _say(http, door, desk, {"status": "ok", "ready_upstreams": ready}, 200)
    return await _say(http, door, desk, {"status": "unavailable", "reason": reason}, 503)


async def _say(http: BaseRequest, door: "Door", desk: "Desk", body: dict[str, object], status: int) -> web.StreamResponse:
    _, client = desk.call(http, door, desk.ground)
    await client.answer(msgspec.json.encode(body), status, more={"Cache-Control": "no-store"})
    assert client.response is not None
    return client.response
