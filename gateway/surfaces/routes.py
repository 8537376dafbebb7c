"""Which path is which door? The table of every path that this version answers (contract 4)."""
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.surfaces import (
    count,
    gemini,
    generate,
    health,
    media,
    metrics,
    models,
    ollama,
    oneshot,
    openapi,
    responses_state,
)

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk

Handler = Callable[[BaseRequest, "Door", "Desk"], Awaitable[web.StreamResponse]]


class Door(msgspec.Struct, frozen=True):
    """A path: its handler, the wire format of its bodies and errors, the operation of that format.

    ``tail``: the path goes on (``/v1/models/{id}``); ``query_key``: credentials may come as ``?key=``.
    """
    name: str
    method: str
    path: str
    handler: Handler
    wire: str = "openai-chat"
    operation: str = "chat"
    tail: bool = False
    query_key: bool = False


ROUTES: tuple[Door, ...] = (
    Door("chat", "POST", "/v1/chat/completions", generate.generate),
    Door("completions", "POST", "/v1/completions", generate.generate, operation="completions"),
    Door("responses", "POST", "/v1/responses", generate.generate, wire="openai-responses"),
    Door("responses_socket", "GET", "/v1/responses", responses_state.socket, wire="openai-responses"),
    Door("response_tokens", "POST", "/v1/responses/input_tokens", responses_state.input_tokens, wire="openai-responses"),
    Door("response", "GET", "/v1/responses/", responses_state.get, wire="openai-responses", tail=True),
    Door("response_deleted", "DELETE", "/v1/responses/", responses_state.delete, wire="openai-responses", tail=True),
    Door("response_cancelled", "POST", "/v1/responses/", responses_state.cancel, wire="openai-responses", tail=True),
    Door("messages", "POST", "/v1/messages", generate.generate, wire="anthropic"),
    Door("count_tokens", "POST", "/v1/messages/count_tokens", count.messages, wire="anthropic", operation="count_tokens"),
    Door("embeddings", "POST", "/v1/embeddings", oneshot.embeddings, operation="embeddings"),
    Door("images", "POST", "/v1/images/generations", media.relay, operation="images"),
    Door("speech", "POST", "/v1/audio/speech", media.relay, operation="speech"),
    Door("transcriptions", "POST", "/v1/audio/transcriptions", media.relay, operation="transcriptions"),
    Door("moderations", "POST", "/v1/moderations", media.relay, operation="moderations"),
    Door("rerank", "POST", "/v1/rerank", media.relay, operation="rerank"),
    *(Door("absent", method, f"/v1/{name}", media.absent) for name in ("files", "batches", "realtime") for method in ("GET", "POST")),
    Door("models", "GET", "/v1/models", models.listing),
    Door("model", "GET", "/v1/models/", models.one, tail=True),
    Door("models", "GET", "/v1beta/models", models.listing, wire="gemini", query_key=True),
    Door("model", "GET", "/v1beta/models/", models.one, wire="gemini", tail=True, query_key=True),
    Door("gemini", "POST", "/v1beta/models/", gemini.generate, wire="gemini", tail=True, query_key=True),
    Door("gemini", "POST", "/v1/models/", gemini.generate, wire="gemini", tail=True),
    Door("ollama", "POST", "/api/chat", ollama.generate, wire="ollama"),
    Door("ollama", "POST", "/api/generate", ollama.generate, wire="ollama", operation="generate"),
    Door("ollama", "POST", "/api/embed", ollama.embed, wire="ollama", operation="ollama_embed"),
    Door("ollama", "POST", "/api/embeddings", ollama.embed, wire="ollama", operation="ollama_embeddings"),
    Door("ollama", "GET", "/api/tags", ollama.tags, wire="ollama"),
    Door("ollama", "GET", "/api/version", ollama.version, wire="ollama"),
    Door("ollama", "POST", "/api/show", ollama.show, wire="ollama"),
    Door("openapi", "GET", "/v1/openapi.json", openapi.openapi),
    Door("livez", "GET", "/livez", health.livez),
    Door("readyz", "GET", "/readyz", health.readyz),
    Door("metrics", "GET", "/metrics", metrics.metrics),
)

EXACT: dict[str, dict[str, Door]] = {}
for _door in ROUTES:
    if not _door.tail:
        EXACT.setdefault(_door.path, {})[_door.method] = _door
TAILS: tuple[Door, ...] = tuple(door for door in ROUTES if door.tail)


def find(path: str) -> dict[str, Door]:
    """The doors at this path by method; empty where there is none."""
    doors = EXACT.get(path)
    if doors is not None:
        return doors
    return {door.method: door for door in TAILS if path.startswith(door.path) and len(path) > len(door.path)}
