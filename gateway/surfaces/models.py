"""Which models are there? ``GET /v1/models`` and ``GET /v1/models/{id}``, as far as the caller's key may see them."""
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError
from gateway.pipeline.admit import caller
from gateway.routing.resolve import resolve

if TYPE_CHECKING:
    from gateway.pipeline.ground import Ground
    from gateway.policy.keys import Principal
    from gateway.routing.catalog import Target
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door


async def listing(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``auto`` first, then each model id once, whoever serves it."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        principal = caller(call, client, ground)
        rows = [row for name, targets in names(ground) if principal.allows(name)
                for row in [entry(name, targets, ground)]]
        await client.answer(msgspec.json.encode({"object": "list", "data": rows}))
    except GatewayError as error:
        await client.fail(error)
    assert client.response is not None
    return client.response


async def one(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Any name that a request could use, ``provider/model`` included; the id may contain slashes."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        principal: Principal = caller(call, client, ground)
        name = unquote(http.rel_url.raw_path[len(door.path):])
        if not principal.allows(name):
            raise GatewayError("no_model", f"The model {name[:200]!r} does not exist or this key may not use it.", param="model")
        listed = ground.catalog.find(name)
        targets = listed.targets if listed is not None else resolve(name, ground.catalog).targets
        await client.answer(msgspec.json.encode(entry(name, targets, ground)))
    except GatewayError as error:
        await client.fail(error)
    assert client.response is not None
    return client.response


def names(ground: "Ground") -> "list[tuple[str, tuple[Target, ...]]]":
    """Every public name with who serves it, in config order."""
    auto = ground.catalog.kinds["chat"].auto
    return [*([("auto", auto)] if auto else []), *ground.catalog.by_model.items()]


def entry(name: str, targets: "tuple[Target, ...]", ground: "Ground") -> dict[str, Any]:
    """One row, with an honest context window: the largest of those that serve it, null if nobody says."""
    models = [target.model for target in targets]
    context = max((m.context for m in models if m.context), default=None)
    output = max((m.max_output for m in models if m.max_output), default=None)
    owners = list(dict.fromkeys(target.provider.id for target in targets))
    return {"id": name, "object": "model", "created": int(ground.snapshot.loaded_at), "owned_by": owners[0] if owners else "gateway",
            "context_window": context, "context_length": context, "max_output_tokens": output,
            "providers": owners, "supported_parameters": supported(targets)}


def supported(targets: "tuple[Target, ...]") -> list[str]:
    """Parameters that every target of the name takes."""
    base = ["temperature", "top_p", "max_tokens", "stop", "seed", "response_format", "stream"]
    if all(target.model.tools is not False for target in targets):
        base += ["tools", "tool_choice", "parallel_tool_calls"]
    if any(target.model.reasoning for target in targets):
        base.append("reasoning_effort")
    refused = frozenset().union(*(target.provider.drop_params for target in targets)) if targets else frozenset()
    return [name for name in base if name not in refused]
