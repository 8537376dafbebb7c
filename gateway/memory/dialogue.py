"""What do responses remember for each other? The dialogue behind ``previous_response_id``, and what is kept of a finished one.

Upstreams keep nothing for us: the history goes into each request, so the next turn may be anybody's.
"""
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.ports import Kept, Responses
from gateway.core.request import Request
from gateway.wire.lenient import dump, load
from gateway.wire.openai_responses import input_items, output_items, with_history
from gateway.wire.openai_responses.schema import Asked

Json = dict[str, Any]
MAX_DEPTH: Final = 1_000                         # responses of one dialogue
MAX_BYTES: Final = 64 << 20
NOT_FOUND: Final = "previous_response_not_found"


class _Item(msgspec.Struct):
    """What a later request may name."""
    id: str | None = None


class _Named(msgspec.Struct):
    output: list[_Item] = []


_named = msgspec.json.Decoder(_Named)


def stateful(request: Request) -> bool:
    """Does this request go on from something that is kept here?"""
    asked = request.body
    return isinstance(asked, Asked) and (bool(asked.previous_response_id) or bool(asked.doc.get("conversation"))
                                         or next(references(request), None) is not None)


def stored(request: Request) -> bool:
    """Is its response to be kept?"""
    return isinstance(request.body, Asked) and request.body.store


async def continued(request: Request, owner: str, responses: Responses) -> Request:
    """The request with everything that was said before. Raises 404 for whatever is not the owner's, or not there any more."""
    asked: Asked = request.body
    if asked.doc.get("conversation"):
        raise GatewayError("not_found", "Conversations are not kept here; go on with previous_response_id.", code=NOT_FOUND,
                           param="conversation")
    chain = await _chain(asked.previous_response_id, owner, responses) if asked.previous_response_id else []
    items = [item for kept in reversed(chain) for item in items_of(kept)]
    known = {item["id"]: item for item in items if isinstance(item.get("id"), str)}
    missing = [id_ for id_ in references(request) if id_ not in known]
    found = await responses.holding(owner, missing) if missing else []
    for kept in found:
        for item in items_of(kept):
            if isinstance(item.get("id"), str):
                known.setdefault(item["id"], item)
    for id_ in missing:
        if id_ not in known:
            raise GatewayError("not_found", f"Item with id '{id_[:80]}' not found.", code=NOT_FOUND, param="input")
    makers = {item["id"]: kept.target.partition("/")[0] for kept in [*chain, *found] for item in items_of(kept)
              if item.get("type") == "reasoning" and isinstance(item.get("id"), str)}
    made = with_history(request, items, known)
    made.body.makers = makers
    return made


async def _chain(id_: str, owner: str, responses: Responses) -> list[Kept]:
    """Newest first, whole: a dialogue with a hole would be another one."""
    chain = await responses.chain(owner, id_, MAX_DEPTH)
    if len(chain) >= MAX_DEPTH and chain[-1].previous or sum(kept.n_bytes for kept in chain) > MAX_BYTES:
        raise GatewayError("bad_request", f"The dialogue behind '{id_[:80]}' is too long to be gone on with.",
                           param="previous_response_id")
    gone = chain[-1].previous if chain else id_
    if gone:
        raise GatewayError("not_found", f"Previous response with id '{gone[:80]}' not found.", code=NOT_FOUND,
                           param="previous_response_id")
    return chain


def references(request: Request) -> Iterator[str]:
    """Ids of items that the request names only."""
    given = request.body.doc.get("input")
    return (str(item.get("id")) for item in given if item.get("type") == "item_reference") if isinstance(given, list) \
        else iter(())


def items_of(kept: Kept) -> list[Json]:
    """What this response added to the dialogue."""
    return input_of(kept) + output_items(load(kept.body)[0])


def input_of(kept: Kept) -> list[Json]:
    """What its own request said."""
    items: list[Json] = load(kept.input)[0]
    return items


def kept_of(id_: str, request: Request, body: bytes, *, owner: str, created: float, target: str) -> Kept:
    """A finished response as it is kept. ``request``: as the client sent it; ``body``: the response as the client got it."""
    try:
        ids = dict.fromkeys(item.id for item in _named.decode(body).output if item.id)
    except msgspec.DecodeError:                      # half a surrogate pair somewhere: it can be gone on from, not named
        ids = {}
    return Kept(id=id_, owner=owner, created=created, previous=request.body.previous_response_id, target=target, body=body,
                input=dump(input_items(request)), items=tuple(ids))
