"""Ollama's doors, for clients that know nothing else: off by default, open to this machine, or for holders of a client key.

``/api/chat`` and ``/api/generate`` are served like every other format. Names may carry Ollama's ``:latest``; a request without a
prompt only asks that the model be loaded, which is answered at once.
"""
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline import attempts, oneshot, prepare
from gateway.pipeline.admit import caller
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.serve import Story, serve
from gateway.policy.access import elsewhere
from gateway.routing.resolve import resolve
from gateway.surfaces.models import names, room, visible
from gateway.wire.ollama.reply import build_load
from gateway.wire.ollama.request import probe
from gateway.wire.ollama.schema import stamp
from gateway.wire.problems import decode, invalid

if TYPE_CHECKING:
    from gateway.policy.keys import Principal
    from gateway.routing.catalog import Target
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door

VERSION: Final = "0.12.6"                        # whose API this is like; clients ask for a least one
LATEST: Final = ":latest"
ARCHITECTURE: Final = "gateway"

Json = dict[str, Any]


async def generate(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """One chat, one text."""
    ground = desk.ground
    return await answer(http, door, desk, Story(partial(parse, ground, prepare.parse), prepare.plan, run))


async def embed(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Vectors."""
    ground = desk.ground
    return await answer(http, door, desk, Story(partial(parse, ground, oneshot.parse), oneshot.plan, oneshot.run))


async def answer(http: BaseRequest, door: "Door", desk: "Desk", story: Story) -> web.StreamResponse:
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        gate(client, ground)
    except GatewayError as error:
        await client.fail(error)
    else:
        await serve(call, client, ground, story)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response


def gate(client: Client, ground: Ground) -> None:
    """Is this surface there for this caller? Raises not_found or forbidden."""
    mode = ground.snapshot.ollama.mode
    if mode == "off":
        raise GatewayError("not_found", 'The Ollama API is off here; the operator can set mode = "loopback" or "key" in [ollama].')
    if mode == "loopback":
        if not client.local or elsewhere(client.headers):
            raise GatewayError("forbidden", "The Ollama API is open to this machine only.", code="not_local")
        client.keyless = True


def parse(ground: Ground, wire_parse: Any, call: Call, client: Client, body: bytes) -> Request:
    request: Request = wire_parse(call, client, body)
    request.model = named(request.model, ground)
    return request


def named(name: str, ground: Ground) -> str:
    """The name without a tag that only says "as it is", unless somebody serves it so."""
    return name if ground.catalog.find(name) is not None else name.removesuffix(LATEST)


async def run(call: Call, plan: prepare.Plan, client: Client, ground: Ground) -> None:
    request = call.request or plan.request           # as the client said it: instructions may have been put to it
    if not probe(request):
        return await attempts.run(call, plan, client, ground)
    await client.answer(build_load(request.model, request.operation, call.wall, request.body.keep_alive in (0, "0", "0s")))


# ---------------------------------------------------------------- what there is
async def version(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    return await tell(http, door, desk, lambda principal, body: {"version": VERSION})


async def tags(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Every model that the caller may use."""
    ground = desk.ground

    def rows(principal: "Principal", body: bytes) -> Json:
        return {"models": [{"name": name, "model": name, "modified_at": stamp(ground.snapshot.loaded_at), "size": 0, "digest": "",
                            "details": details(targets)} for name, targets in names(ground, principal, "ollama")]}
    return await tell(http, door, desk, rows)


class _Asked(msgspec.Struct):
    model: str | None = None
    name: str | None = None


_asked = msgspec.json.Decoder(_Asked)


async def show(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """What one model can do."""
    ground = desk.ground

    def card(principal: "Principal", body: bytes) -> Json:
        asked, _ = decode(body, _asked)
        given = asked.model or asked.name
        if not given:
            raise invalid("model", "this field is required")
        name = named(given, ground)
        listed = ground.catalog.find(name)
        targets = listed.targets if listed is not None else resolve(name, ground.catalog).targets
        if not visible(principal, name, targets):
            raise GatewayError("no_model", f"The model {name[:200]!r} does not exist or this key may not use it.", param="model")
        context, _ = room(targets)
        info: Json = {"general.architecture": ARCHITECTURE, "general.basename": name}
        if context:
            info |= {"general.context_length": context, f"{ARCHITECTURE}.context_length": context}
        return {"modelfile": "", "parameters": "", "template": "", "details": details(targets), "model_info": info,
                "capabilities": abilities(targets), "modified_at": stamp(ground.snapshot.loaded_at)}
    return await tell(http, door, desk, card)


async def tell(http: BaseRequest, door: "Door", desk: "Desk", made: Any) -> web.StreamResponse:
    """An answer from what the gateway itself knows."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        gate(client, ground)
        principal = caller(call, client, ground)
        body = await client.body(ground.snapshot.server.max_body_bytes) if http.method == "POST" else b""
        await client.answer(msgspec.json.encode(made(principal, body)))
    except GatewayError as error:
        await client.fail(error)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response


def details(targets: "tuple[Target, ...]") -> Json:
    family = targets[0].provider.id if targets else ARCHITECTURE
    return {"parent_model": "", "format": "", "family": family, "families": [family], "parameter_size": "", "quantization_level": ""}


def abilities(targets: "tuple[Target, ...]") -> list[str]:
    """What somebody who serves it can do; where nobody knows about tools, they are worth a try."""
    models = [target.model for target in targets]
    if models and all(model.kind == "embedding" for model in models):
        return ["embedding"]
    found = ["completion"]
    if any(model.tools is not False for model in models):
        found.append("tools")
    if any(model.vision for model in models):
        found.append("vision")
    if any(model.reasoning for model in models):
        found.append("thinking")
    return found
