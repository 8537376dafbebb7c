"""What can be done with a response that is kept? Read it, list its input, delete it; and what cannot: cancel it, or open a socket.

https://platform.openai.com/docs/api-reference/responses
"""
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError, bad_request
from gateway.core.ports import Kept
from gateway.memory import dialogue
from gateway.pipeline import admit, prepare, shrink
from gateway.surfaces.count import count

if TYPE_CHECKING:
    from gateway.core.call import Call
    from gateway.pipeline.deliver import Client
    from gateway.pipeline.ground import Ground
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door

PAGE: Final = 20
MAX_PAGE: Final = 100
_encode = msgspec.json.encode


async def get(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``GET /v1/responses/{id}`` and ``…/input_items``."""
    async def answer(call: "Call", client: "Client", ground: "Ground") -> bytes:
        id_, _, rest = tail(http, door)
        if rest not in ("", "input_items"):
            raise nowhere(http)
        kept = await owned(id_, call.principal, ground)
        query = http.rel_url.query
        if rest:
            return _encode(page(dialogue.input_of(kept), query))
        if query.get("stream") == "true":
            raise bad_request("Only a response that was made in the background can be streamed again.", "stream")
        return kept.body
    return await _answered(http, door, desk, answer)


async def delete(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``DELETE /v1/responses/{id}``."""
    async def answer(call: "Call", client: "Client", ground: "Ground") -> bytes:
        id_, _, rest = tail(http, door)
        if rest:
            raise nowhere(http)
        kept = await owned(id_, call.principal, ground)
        ground.responses.delete(kept.owner, kept.id)
        return _encode({"id": kept.id, "object": "response", "deleted": True})
    return await _answered(http, door, desk, answer)


async def cancel(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``POST /v1/responses/{id}/cancel``: for responses made in the background, of which there are none."""
    async def answer(call: "Call", client: "Client", ground: "Ground") -> bytes:
        id_, _, rest = tail(http, door)
        if rest != "cancel":
            raise nowhere(http)
        await owned(id_, call.principal, ground)
        raise bad_request("Cannot cancel a synchronous response.")
    return await _answered(http, door, desk, answer)


async def input_tokens(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``POST /v1/responses/input_tokens``: counted here, with everything that was said before."""
    async def answer(call: "Call", client: "Client", ground: "Ground") -> bytes:
        request = prepare.parse(call, client, await client.body(ground.snapshot.server.max_body_bytes))
        if dialogue.stateful(request):
            request = await dialogue.continued(request, call.principal, ground.responses)
        request = await shrink.counted(call, client, request, ground)
        return _encode({"object": "response.input_tokens", "input_tokens": count(request, ground)})
    return await _answered(http, door, desk, answer)


async def socket(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``GET /v1/responses``: clients that try a WebSocket first fall back at once."""
    if http.headers.get("Upgrade", "").lower() == "websocket":
        # https://www.rfc-editor.org/rfc/rfc9110#section-15.5.22: the answer names what is spoken here
        return await desk.refuse(http, door, GatewayError("upgrade_required", "There are no WebSockets here; POST to this path."),
                                 {"Upgrade": "HTTP/1.1", "Connection": "Upgrade"})
    return await desk.refuse(http, door, GatewayError("method_not_allowed", "GET is not possible here; use POST."),
                             {"Allow": "POST, OPTIONS"})


async def _answered(http: BaseRequest, door: "Door", desk: "Desk",
                    answer: "Callable[[Call, Client, Ground], Awaitable[bytes]]") -> web.StreamResponse:
    """The caller's key is checked; what goes wrong is told in the format's words."""
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        admit.caller(call, client, ground)
        await client.answer(await answer(call, client, ground))
    except GatewayError as error:
        await client.fail(error)
    if client.response is None:
        raise ConnectionResetError("the client went away before anything could be answered")
    return client.response


async def owned(id_: str, owner: str, ground: "Ground") -> Kept:
    """Raises 404 for what is unknown, gone, or somebody else's: nobody learns which."""
    found = await ground.responses.chain(owner, id_, 1)
    if not found:
        raise GatewayError("not_found", f"Response with id '{id_[:80]}' not found.")
    return found[0]


def tail(http: BaseRequest, door: "Door") -> tuple[str, str, str]:
    """(id, slash, what is asked of it)."""
    return unquote(http.rel_url.raw_path[len(door.path):]).partition("/")


def nowhere(http: BaseRequest) -> GatewayError:
    return GatewayError("not_found", f"There is no {http.method} {http.rel_url.raw_path[:200]} here.")


def page(items: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """A list object: newest first unless asked otherwise. Raises bad_request naming the parameter."""
    order, limit, after = query.get("order", "desc"), query.get("limit", str(PAGE)), query.get("after")
    if order not in ("asc", "desc"):
        raise bad_request("order: must be asc or desc", "order")
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:9]) <= MAX_PAGE:
        raise bad_request(f"limit: must be between 1 and {MAX_PAGE}", "limit")
    if order == "desc":
        items = items[::-1]
    if after is not None:
        place = next((i for i, item in enumerate(items) if item.get("id") == after), None)
        if place is None:
            raise bad_request(f"after: there is no item {after[:80]!r}", "after")
        items = items[place + 1:]
    shown = items[:int(limit)]
    return {"object": "list", "data": shown, "first_id": shown[0].get("id") if shown else None,
            "last_id": shown[-1].get("id") if shown else None, "has_more": len(items) > len(shown)}
