"""Every chat-like door is this one handler with another wire format."""
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.pipeline.serve import serve

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door


async def generate(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Answer one generation request on the ground that is current now."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    await serve(call, client, ground)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response
