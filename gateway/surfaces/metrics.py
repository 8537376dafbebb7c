"""What do scrapers read? ``/metrics``, in Prometheus' text format or OpenMetrics; off this machine only with a key (contract 4)."""
import hmac
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy.access import is_loopback

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door

_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")


async def metrics(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    ground = desk.ground
    _, client = desk.call(http, door, ground)
    try:
        meter = desk.meter
        if meter is None or not ground.snapshot.metrics.enabled:
            raise GatewayError("not_found", "Metrics are switched off ([metrics] enabled).")
        allowed(client, ground)
        content_type, page = await meter.page(client.headers.get("Accept", ""))
        await client.answer(page, content_type=content_type, more={"Cache-Control": "no-store"})
    except GatewayError as error:
        await client.fail(error)
    assert client.response is not None
    return client.response


def allowed(client: Client, ground: Ground) -> None:
    """This machine, asked for by a name of its own and forwarding for nobody; else who has a key. Raises unauthorized."""
    headers = client.headers
    if client.local and is_loopback(headers.get("Host", "")) and not any(name in headers for name in _FORWARDED):
        return
    own, admin = ground.snapshot.metrics.key.reveal(), ground.snapshot.admin.key.reveal()
    given = headers.get("Authorization", "")
    if given[:7].lower() == "bearer ":
        token = given[7:].strip().encode("utf-8", "surrogateescape")
        if any(key and hmac.compare_digest(token, key.encode()) for key in (own, admin)):
            return
    if own:
        raise GatewayError("unauthorized", "Send the key of [metrics] as a bearer token.")
    principal = ground.keys.authenticate(headers)
    if principal.anonymous:
        raise GatewayError("unauthorized", "Off this machine /metrics needs a key: set metrics.key.")
