"""Doors of operations with one answer: embeddings."""
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.pipeline.oneshot import EMBED
from gateway.pipeline.serve import serve

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door


async def embeddings(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Answer one request for vectors on the ground that is current now."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    await serve(call, client, ground, EMBED)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response
