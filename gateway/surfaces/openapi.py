"""What can be asked of the surfaces, for machines? ``/v1/openapi.json``: OpenAPI 3.1, made from the table of doors.

Bodies are the providers' own formats: what is listed here is what is required and what is looked at; whatever else a format has
passes through, which is why every schema is open. ``externalDocs`` says where a format is told in full.
"""
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

if TYPE_CHECKING:
    from gateway.surfaces.desk import Desk
    from gateway.surfaces.routes import Door

Json = dict[str, Any]

_STRING: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "number"}
_COUNT: Final[Json] = {"type": "integer", "minimum": 1}
_FLAG: Final[Json] = {"type": "boolean"}
_WORDS: Final[Json] = {"anyOf": [_STRING, {"type": "array", "items": {"type": "object"}}]}
_TEXTS: Final[Json] = {"anyOf": [_STRING, {"type": "array", "items": {"anyOf": [_STRING, {"type": "integer"}]}}]}
_TURNS: Final[Json] = {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["role"], "properties": {
    "role": _STRING, "content": {"anyOf": [_STRING, {"type": "array", "items": {"type": "object"}}, {"type": "null"}]}}}}
_CONTENTS: Final[Json] = {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["parts"], "properties": {
    "role": {"enum": ["user", "model"]}, "parts": {"type": "array", "minItems": 1, "items": {"type": "object"}}}}}
_TOOLS: Final[Json] = {"type": "array", "items": {"type": "object"}}


def _body(required: tuple[str, ...], **properties: Json) -> Json:
    return {"type": "object", "required": list(required), "properties": properties}


_CHAT: Final = _body(("messages",), model=_STRING, messages=_TURNS, stream=_FLAG, max_tokens=_COUNT, temperature=_NUMBER,
                     top_p=_NUMBER, tools=_TOOLS, response_format={"type": "object"}, stream_options={"type": "object"})
_MESSAGES: Final = _body(("model", "messages"), model=_STRING, messages=_TURNS, system=_WORDS, tools=_TOOLS)
_GENERATE: Final = _body(("contents",), contents=_CONTENTS, systemInstruction={"type": "object"}, tools=_TOOLS,
                         generationConfig={"type": "object"})
_RESPONSE: Final = _body(("input",), model=_STRING, input={"anyOf": [_STRING, {"type": "array", "items": {"type": "object"}}]},
                         instructions=_STRING, previous_response_id=_STRING, stream=_FLAG, store=_FLAG, tools=_TOOLS)
_GEMINI: Final[dict[str, Json]] = {
    ":generateContent": _GENERATE,
    ":streamGenerateContent": _GENERATE,
    ":countTokens": _body((), contents=_CONTENTS, generateContentRequest={"type": "object"}),
    ":embedContent": _body(("content",), content={"type": "object"}),
    ":batchEmbedContents": _body(("requests",), requests={"type": "array", "items": {"type": "object"}}),
}
# path -> the body that it takes
BODIES: Final[dict[str, Json]] = {
    "/v1/chat/completions": _CHAT,
    "/v1/completions": _body(("prompt",), model=_STRING, prompt=_TEXTS, suffix=_STRING, stream=_FLAG, max_tokens=_COUNT),
    "/v1/responses": _RESPONSE,
    "/v1/responses/input_tokens": _RESPONSE,
    "/v1/messages": _body(("model", "messages", "max_tokens"), **_MESSAGES["properties"], max_tokens=_COUNT, stream=_FLAG),
    "/v1/messages/count_tokens": _MESSAGES,
    "/v1/embeddings": _body(("input",), model=_STRING, input=_TEXTS, dimensions=_COUNT, encoding_format={"enum": ["float", "base64"]}),
    "/v1/images/generations": _body(("prompt",), model=_STRING, prompt=_STRING),
    "/v1/audio/speech": _body(("input",), model=_STRING, input=_STRING, voice=_STRING),
    "/v1/moderations": _body(("input",), model=_STRING, input=_TEXTS),
    "/v1/rerank": _body(("query", "documents"), model=_STRING, query=_STRING, documents={
        "type": "array", "items": {"anyOf": [_STRING, {"type": "object"}]}}),
    **{f"{prefix}{{model}}{name}": body for prefix in ("/v1beta/models/", "/v1/models/") for name, body in _GEMINI.items()},
    "/api/chat": _body(("model", "messages"), model=_STRING, messages=_TURNS, stream=_FLAG, options={"type": "object"}),
    "/api/generate": _body(("model",), model=_STRING, prompt=_STRING, stream=_FLAG, options={"type": "object"}),
    "/api/embed": _body(("model", "input"), model=_STRING, input=_TEXTS),
    "/api/embeddings": _body(("model", "prompt"), model=_STRING, prompt=_STRING),
    "/api/show": _body(("model",), model=_STRING),
}
FORMS: Final[dict[str, Json]] = {"/v1/audio/transcriptions": _body(("file",), file=_STRING, model=_STRING)}
# what stands behind a path that goes on
TAILS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("GET", "/v1/responses/"): ("{id}", "{id}/input_items"),
    ("DELETE", "/v1/responses/"): ("{id}",),
    ("POST", "/v1/responses/"): ("{id}/cancel",),
    ("POST", "/v1beta/models/"): tuple("{model}" + name for name in _GEMINI),
    ("POST", "/v1/models/"): tuple("{model}" + name for name in _GEMINI),
}
DOCS: Final = {"openai-chat": "https://platform.openai.com/docs/api-reference/chat",
               "openai-responses": "https://platform.openai.com/docs/api-reference/responses",
               "anthropic": "https://docs.anthropic.com/en/api/messages", "gemini": "https://ai.google.dev/api",
               "ollama": "https://docs.ollama.com/api"}
_LEFT_OUT: Final = frozenset({"absent", "responses_socket"})     # doors that only say no


def document(doors: "tuple[Door, ...]", version: str) -> Json:
    """The whole description."""
    paths: dict[str, Json] = {}
    for door in doors:
        if door.name in _LEFT_OUT:
            continue
        for tail in TAILS.get((door.method, door.path), ("{model}",)) if door.tail else ("",):
            paths.setdefault(door.path + tail, {}).setdefault(door.method.lower(), _operation(door, door.path + tail))
    return {"openapi": "3.1.0",
            "info": {"title": "gateway", "version": version,
                     "description": "The APIs of several providers, whoever answers. `model` may be a model, `provider/model`, a "
                                    "combo, `auto` or one of its kin."},
            "paths": paths, "security": [{"bearer": []}, {"x-api-key": []}, {"x-goog-api-key": []}, {}],
            "components": {"securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "x-goog-api-key": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"}}}}


def _operation(door: "Door", path: str) -> Json:
    answers = ("application/json", "text/event-stream") if door.method == "POST" else ("application/json",)
    told: Json = {
        "operationId": "_".join((door.method.lower(), *path.translate(_PLAIN).split())), "tags": [door.wire],
        "externalDocs": {"url": DOCS[door.wire]},
        "parameters": [{"name": hole, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                       for hole in _HOLE.findall(path)],
        "responses": {
            "200": {"description": "The answer, in the format of this path.", "content": {kind: {} for kind in answers}},
            "default": {"description": "An error in the shape of this format.",
                        "content": {"application/json": {"schema": {"type": "object"}}}}}}
    if path in BODIES:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": BODIES[path]}}}
    elif path in FORMS:
        told["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": FORMS[path]}}}
    return told


_HOLE: Final = re.compile(r"\{(\w+)\}")
_PLAIN: Final = {ord(sign): " " for sign in "/{}:."}


@cache
def encoded(version: str) -> bytes:
    from gateway.surfaces.routes import ROUTES

    return msgspec.json.encode(document(ROUTES, version))


async def openapi(http: BaseRequest, door: "Door", desk: "Desk") -> web.StreamResponse:
    """Open: it says nothing that is not in the README."""
    _, client = desk.call(http, door, desk.ground)
    await client.answer(encoded(desk.version), more={"Cache-Control": "max-age=300"})
    assert client.response is not None
    return client.response
