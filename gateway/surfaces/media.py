"""Doors of operations that are passed on: images, speech, transcriptions, moderations, ranking; and of those that are not there."""
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError
from gateway.pipeline.relay import RELAY
from gateway.pipeline.serve import serve

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door


async def relay(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Answer one request on the ground that is current now."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    await serve(call, client, ground, RELAY)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response


async def absent(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """What this gateway does not do, said so: files and batches belong to one provider's account, realtime is another protocol."""
    what = door.path.removeprefix("/v1/")
    return await desk.refuse(http, door, GatewayError("not_found", f"This gateway does not serve {what}."))
