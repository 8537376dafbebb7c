"""What does a Gemini path ask for? ``/v1beta/models/{model}:{method}``: the model, and what to do with it, stand in the path."""
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline import admit, prepare, shrink
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.oneshot import EMBED
from gateway.pipeline.serve import TURN, serve
from gateway.surfaces.count import count as tokens
from gateway.wire.embeddings import CLIENTS
from gateway.wire.gemini import build_count
from gateway.wire.gemini.faults import ARRAY
from gateway.wire.jsonl import ARRAY_TYPE

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door

# method -> the operation of the wire, and whether it streams
METHODS: Final[dict[str, tuple[str, bool]]] = {
    "generateContent": ("chat", False),
    "streamGenerateContent": ("chat", True),
    "countTokens": ("count_tokens", False),
    "embedContent": ("embed_content", False),
    "batchEmbedContents": ("batch_embed_contents", False),
}


async def generate(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Answer one request on the ground that is current now."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    model, method = split(http.rel_url.raw_path[len(door.path):])
    if method not in METHODS:
        await client.fail(GatewayError("not_found", f"There is no {http.rel_url.raw_path[:200]} here; the methods of a model are "
                                       f"{', '.join(METHODS)}."))
    else:
        call.path_model = model
        call.operation, call.path_stream = METHODS[method]
        if call.path_stream and http.rel_url.query.get("alt") != "sse":
            call.operation, client.content_type = ARRAY, ARRAY_TYPE
        if call.operation == "count_tokens":
            await count(call, client, ground)
        else:
            await serve(call, client, ground, EMBED if call.operation in CLIENTS else TURN)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response


def split(tail: str) -> tuple[str, str]:
    """(model, method). A model's name may hold slashes and colons, encoded or not."""
    model, _, method = unquote(tail).rpartition(":")
    return model.removeprefix("models/") or "auto", method


async def count(call: Call, client: Client, ground: Ground) -> None:
    """How many tokens would this be? Counted here: nobody is asked."""
    try:
        principal = admit.caller(call, client, ground)
        request = prepare.parse(call, client, await client.body(ground.snapshot.server.max_body_bytes))
        prepare.plan(call, request, principal, ground)
        request = await shrink.counted(call, client, request, ground)
        await client.answer(build_count(tokens(request, ground)))
    except GatewayError as error:
        await client.fail(error)
