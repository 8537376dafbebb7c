"""Which models are there? Lists and single entries in the three shapes that clients know, as far as the caller's key may see.

Who asks decides the shape: ``x-goog-api-key`` or a ``/v1beta`` path means Gemini's, ``anthropic-version`` Anthropic's, anything
else OpenAI's. Coding agents have Claude and Gemini names built in, so their lists also hold the names that follow the family map.
"""
import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.core.errors import GatewayError, bad_request
from gateway.pipeline.admit import caller
from gateway.prices import as_data
from gateway.routing.catalog import Target
from gateway.routing.resolve import resolve

if TYPE_CHECKING:
    from gateway.pipeline.ground import Ground
    from gateway.policy.keys import Principal
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door

Json = dict[str, Any]
Names = list[tuple[str, tuple[Target, ...]]]

# Names that a client accepts unseen; whoever serves auto stands behind them (routing.families). wire -> names
FAMILY_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "anthropic": ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"),
    "gemini": ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"),
}
PAGE: Final = 1_000
INPUT_TOKENS: Final = 131_072                    # what Gemini's clients are told where nobody knows: null makes them fail
OUTPUT_TOKENS: Final = 8_192


async def listing(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """``auto`` first, ``fusion`` where several can sit in a panel, then each model id once, whoever serves it."""
    door = shaped(http, door)
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        found = names(ground, caller(call, client, ground), door.wire)
        await client.answer(msgspec.json.encode(_LIST[door.wire](found, http.rel_url.query, ground)))
    except GatewayError as error:
        await client.fail(error)
    assert client.response is not None
    return client.response


async def one(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Any name that a request could use, ``provider/model`` included; the id may contain slashes."""
    tail = len(door.path)
    door = shaped(http, door)
    ground = desk.ground
    call, client = desk.call(http, door, ground)
    try:
        principal: Principal = caller(call, client, ground)
        name = unquote(http.rel_url.raw_path[tail:])
        if door.wire == "gemini":
            name = name.removeprefix("models/")
        listed = ground.catalog.find(name)
        targets = listed.targets if listed is not None else resolve(name, ground.catalog).targets
        if not visible(principal, name, targets):
            raise GatewayError("no_model", f"The model {name[:200]!r} does not exist or this key may not use it.", param="model")
        await client.answer(msgspec.json.encode(_ENTRY[door.wire](name, targets, ground)))
    except GatewayError as error:
        await client.fail(error)
    assert client.response is not None
    return client.response


def shaped(http: BaseRequest, door: "Door") -> "Door":
    """The door in the language of whoever asks."""
    if door.wire == "openai-chat":
        wire = "gemini" if "x-goog-api-key" in http.headers else "anthropic" if "anthropic-version" in http.headers else ""
        if wire:
            return msgspec.structs.replace(door, wire=wire)
    return door


def names(ground: "Ground", principal: "Principal", wire: str) -> Names:
    """Every public name that the caller may use with who serves it: auto, fusion, the family's names, models in config order."""
    auto = ground.catalog.kinds["chat"].auto
    served = ground.catalog.by_model
    found: Names = [("auto", auto)] if auto else []
    found += [("fusion", auto)] if len(auto) > 1 and wire == "openai-chat" else []
    found += [(name, auto) for name in FAMILY_NAMES.get(wire, ()) if auto and name not in served]
    found += [(name, targets) for name, targets in served.items()
              if wire in ("openai-chat", "ollama") or targets[0].model.kind in ("chat", "embedding" if wire == "gemini" else "chat")]
    return [(name, targets) for name, targets in found if visible(principal, name, targets)]


def visible(principal: "Principal", name: str, targets: tuple[Target, ...]) -> bool:
    """May this key use the name? A family's name is nothing by itself: what stands behind it counts."""
    if principal.allows(name) or name in ("auto", "fusion"):
        return principal.allows(name)
    return any(principal.allows(t.label) or principal.allows(t.model.id) for t in targets)


# ---------------------------------------------------------------- OpenAI
def entry(name: str, targets: tuple[Target, ...], ground: "Ground") -> Json:
    """One row, with an honest context window: the largest of those that serve it, null if nobody says."""
    context, output = room(targets)
    owners = list(dict.fromkeys(target.provider.id for target in targets))
    kind = targets[0].model.kind if targets else "chat"
    row = {"id": name, "object": "model", "created": int(ground.snapshot.loaded_at), "owned_by": owners[0] if owners else "gateway",
           "context_window": context, "context_length": context, "max_output_tokens": output,
           "providers": owners, "supported_parameters": supported(targets) if kind == "chat" else [],
           "pricing": pricing(targets)}
    if kind != "chat":
        row |= {"kind": kind, "dimensions": next((t.model.dimensions for t in targets if t.model.dimensions), None)}
    return row


def room(targets: tuple[Target, ...]) -> tuple[int | None, int | None]:
    """(context, longest answer): the largest that somebody states."""
    models = [target.model for target in targets]
    return (max((m.context for m in models if m.context), default=None),
            max((m.max_output for m in models if m.max_output), default=None))


def pricing(targets: tuple[Target, ...]) -> Json | None:
    """US dollars per million tokens at whoever is asked first, with who states that; null if nobody does, or who is asked
    first depends on the request."""
    if not targets or any(target.model.id != targets[0].model.id for target in targets):
        return None
    return as_data(targets[0].model.price)


def supported(targets: tuple[Target, ...]) -> list[str]:
    """Parameters that every target of the name takes."""
    base = ["temperature", "top_p", "max_tokens", "stop", "seed", "response_format", "stream"]
    if all(target.model.tools is not False for target in targets):
        base += ["tools", "tool_choice", "parallel_tool_calls"]
    if any(target.model.reasoning for target in targets):
        base.append("reasoning_effort")
    refused = frozenset().union(*(target.provider.drop_params for target in targets)) if targets else frozenset()
    return [name for name in base if name not in refused]


def _openai(found: Names, query: Any, ground: "Ground") -> Json:
    return {"object": "list", "data": [entry(name, targets, ground) for name, targets in found]}


# ---------------------------------------------------------------- Anthropic: https://docs.anthropic.com/en/api/models-list
def _claude(name: str, targets: tuple[Target, ...], ground: "Ground") -> Json:
    made = datetime.datetime.fromtimestamp(int(ground.snapshot.loaded_at), datetime.UTC)
    context, output = room(targets)
    return {"type": "model", "id": name, "display_name": name, "created_at": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "max_input_tokens": context, "max_tokens": output}


def _claudes(found: Names, query: Any, ground: "Ground") -> Json:
    """One page: the ones after ``after_id``, or the last ones before ``before_id``."""
    limit = _number(query.get("limit"), "limit", PAGE)
    ids = [name for name, _ in found]
    after, before = query.get("after_id"), query.get("before_id")
    start, end = 0, len(ids)
    if after is not None:
        start = _place(ids, after, "after_id") + 1
    if before is not None:
        end = _place(ids, before, "before_id")
    more = end - start > limit
    if before is not None and after is None:
        start = max(start, end - limit)
    page = found[start:min(end, start + limit)]
    return {"data": [_claude(name, targets, ground) for name, targets in page], "has_more": more,
            "first_id": page[0][0] if page else None, "last_id": page[-1][0] if page else None}


def _place(ids: list[str], name: str, param: str) -> int:
    if name not in ids:
        raise bad_request(f"{param}: no such model", param)
    return ids.index(name)


def _number(text: str | None, param: str, default: int) -> int:
    if text is None:
        return default
    if not text.isdecimal() or not 1 <= int(text[:9]) <= PAGE:
        raise bad_request(f"{param}: Input should be a number from 1 to {PAGE}", param)
    return int(text)


# ---------------------------------------------------------------- Gemini: https://ai.google.dev/api/models
_METHODS: Final = {"chat": ["generateContent", "streamGenerateContent", "countTokens"],
                   "embedding": ["embedContent", "batchEmbedContents"]}


def _gemini(name: str, targets: tuple[Target, ...], ground: "Ground") -> Json:
    context, output = room(targets)
    kind = targets[0].model.kind if targets else "chat"
    return {"name": f"models/{name}", "version": "1", "displayName": name, "description": f"{name}, served by the gateway",
            "inputTokenLimit": context or INPUT_TOKENS, "outputTokenLimit": output or min(OUTPUT_TOKENS, context or OUTPUT_TOKENS),
            "supportedGenerationMethods": _METHODS.get(kind, [])}


def _geminis(found: Names, query: Any, ground: "Ground") -> Json:
    size = min(_number(query.get("pageSize"), "pageSize", PAGE), PAGE)
    start = _number(query.get("pageToken"), "pageToken", 0) if query.get("pageToken") else 0
    page = found[start:start + size]
    out: Json = {"models": [_gemini(name, targets, ground) for name, targets in page]}
    return out | {"nextPageToken": str(start + size)} if start + size < len(found) else out


_ENTRY: Final = {"openai-chat": entry, "anthropic": _claude, "gemini": _gemini}
_LIST: Final = {"openai-chat": _openai, "anthropic": _claudes, "gemini": _geminis}
