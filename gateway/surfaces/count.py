"""How many tokens would this request be? Counted here: no upstream is asked, so clients may ask as often as they like."""
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline import admit, prepare, shrink
from gateway.tokens import count as tokens
from gateway.wire import WIRES
from gateway.wire.anthropic import build_count

if TYPE_CHECKING:
    from gateway.pipeline.ground import Ground
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door


async def messages(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``/v1/messages/count_tokens``: the caller and the model's name are checked as for a real request."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        principal = admit.caller(call, client, ground)
        request = prepare.parse(call, client, await client.body(ground.snapshot.server.max_body_bytes))
        prepare.plan(call, request, principal, ground)
        request = await shrink.counted(call, client, request, ground)
        await client.answer(build_count(count(request, ground)))
    except GatewayError as error:
        await client.fail(error)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response


def count(request: Request, ground: "Ground") -> int:
    """Tokens of a parsed request of any wire."""
    if request.conversation is None:
        request.conversation = WIRES[request.wire].open(request)
    return tokens.count(request.conversation, request.model, ground.calibration.factor(request.model))
