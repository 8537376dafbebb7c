"""How are embeddings asked for and answered? OpenAI's format on both sides, and the table of everybody else's.

https://platform.openai.com/docs/api-reference/embeddings/create
"""
import array
import base64
import binascii
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from gateway.core.embedding import Ask, Inputs, Vector, Vectors
from gateway.core.errors import GatewayError, bad_request
from gateway.core.redact import redact, redact_json
from gateway.wire import lenient, splice
from gateway.wire.base import Outbound
from gateway.wire.gemini import embed as gemini
from gateway.wire.ollama import embed as ollama
from gateway.wire.problems import decode, invalid

MAX_INPUTS: Final = 2_048
_EMPTY: Final = b"[]"                            # or two quotes
WIRE: Final = "openai-chat"
_encode = msgspec.json.encode


# ---------------------------------------------------------------- a client of OpenAI's format
class _Body(msgspec.Struct):
    input: str | list[Any]
    model: str | None = None
    encoding_format: str | None = None
    dimensions: int | None = None
    user: str | None = None


_body = msgspec.json.Decoder(_Body)


def parse(raw: bytes) -> Ask:
    """Raises bad_request naming the field."""
    body, raw = decode(raw, _body)
    if body.encoding_format not in (None, "float", "base64"):
        raise invalid("encoding_format", "expected 'float' or 'base64'")
    if body.dimensions is not None and body.dimensions < 1:
        raise invalid("dimensions", "expected a positive integer")
    return Ask(inputs=_inputs(body.input), model=body.model or "", dimensions=body.dimensions,
               base64=body.encoding_format == "base64", user=body.user or "", raw=raw, wire=WIRE)


def _inputs(given: str | list[Any]) -> Inputs:
    if isinstance(given, str):
        return [given]
    if not given:
        raise bad_request("Invalid request: input: expected a text, a list of texts, or tokens; it is empty.", "input")
    if all(isinstance(one, str) for one in given):
        found: Any = given
    elif _tokens(given):
        found = [given]
    elif all(isinstance(one, list) and one and _tokens(one) for one in given):
        found = given
    else:
        raise invalid("input", "expected a text, a list of texts, a list of token ids, or a list of such lists")
    if len(found) > MAX_INPUTS:
        raise invalid("input", f"holds more than {MAX_INPUTS} inputs")
    return cast(Inputs, found)


def _tokens(given: list[Any]) -> bool:
    return all(type(one) is int and one >= 0 for one in given)


def render(vectors: Vectors, ask: Ask, model: str) -> bytes:
    """The client's answer; the upstream's own body where it is in the form that was asked for."""
    if vectors.raw is not None:
        if vectors.model == model:
            return vectors.raw
        if (named := splice.set_model(vectors.raw, vectors.model, model)) is not None:
            return named
        vectors.items = [msgspec.json.decode(item) for item in vectors.items]
    items: list[Any] = [(packed if ask.base64 else unpacked)(item) for item in vectors.items]
    rows = [{"object": "embedding", "index": i, "embedding": item} for i, item in enumerate(items)]
    tokens = vectors.tokens or 0
    return _encode({"object": "list", "data": rows, "model": model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})


def packed(vector: Vector) -> str:
    """Base64 of little-endian float32."""
    if isinstance(vector, str):
        return vector
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def unpacked(vector: Vector) -> list[float]:
    """The numbers. Raises bad_reply."""
    if not isinstance(vector, str):
        return vector
    numbers = array.array("f")
    try:
        numbers.frombytes(base64.b64decode(vector, validate=True))
    except (ValueError, binascii.Error):
        raise GatewayError("bad_reply", "The provider's embedding is no base64 of 32-bit numbers.") from None
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


# ---------------------------------------------------------------- an upstream of OpenAI's format
class _Row(msgspec.Struct):
    embedding: msgspec.Raw                       # numbers are only read where they have to be written anew
    index: int | None = None


class _Reply(msgspec.Struct):
    data: list[_Row]
    model: str | None = None
    usage: dict[str, Any] | None = None


_reply = msgspec.json.Decoder(_Reply)
_vector: "msgspec.json.Decoder[list[float] | str]" = msgspec.json.Decoder(list[float] | str)


def build(ask: Ask, to: Outbound) -> bytes:
    """The upstream's body: the client's own where it has this form, unknown fields included."""
    if ask.raw is not None and ask.wire == WIRE:
        if not to.drop_params and not to.rename_params and (named := splice.set_model(ask.raw, ask.model, to.model)) is not None:
            return named
        top: dict[str, Any] = dict(splice.fields(ask.raw))
    else:
        told = {"input": ask.inputs, "dimensions": ask.dimensions, "user": ask.user or None,
                "encoding_format": "base64" if ask.base64 else "float"}
        top = {name: _encode(value) for name, value in told.items() if value is not None}
    top["model"] = _encode(to.model)
    return splice.join({to.rename_params.get(name, name): value for name, value in top.items() if name not in to.drop_params})


def read(raw: bytes, ask: Ask) -> Vectors:
    """The upstream's answer. Raises bad_reply, or the failure that the body tells."""
    try:
        body = _reply.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise _no_answer(raw) from None
    rows = body.data
    ordered = all(row.index in (None, i) for i, row in enumerate(rows))
    if not ordered:
        rows = sorted(rows, key=lambda row: row.index or 0)
    usage = body.usage or {}
    told = usage.get("prompt_tokens", usage.get("total_tokens"))
    tokens = told if isinstance(told, int) else None
    items = [bytes(row.embedding) for row in rows]
    form = b'"' if ask.base64 else b"["
    if ask.wire == WIRE and ordered and body.model and tokens is not None \
            and all(item.startswith(form) and row.index is not None for item, row in zip(items, rows, strict=True)):
        return Vectors(items=[item if len(item) > len(_EMPTY) else b"" for item in items], tokens=tokens, raw=raw, model=body.model)
    try:
        return Vectors(items=[_vector.decode(item) for item in items], tokens=tokens, model=body.model or "")
    except msgspec.DecodeError:
        raise _no_answer(raw) from None


def _no_answer(raw: bytes) -> GatewayError:
    try:
        body, _ = lenient.load(raw)
    except ValueError:
        body = None
    if isinstance(body, dict) and (said := body.get("error")):
        message = said.get("message") if isinstance(said, dict) else said
        return GatewayError("in_band", redact(message if isinstance(message, str) else "The provider told an error."),
                            verbatim=redact_json(body) if isinstance(said, dict) else None)
    return GatewayError("bad_reply", "The provider's answer holds no embeddings.")


# ---------------------------------------------------------------- Gemini, in our words
def _gemini_build(ask: Ask, to: Outbound) -> bytes:
    return gemini.build_request(gemini.Asked(texts_of(ask), ask.dimensions, ask.task_type, ask.title, True), to.model)


def _gemini_read(raw: bytes, ask: Ask) -> Vectors:
    return Vectors(items=gemini.parse_reply(raw))


def _gemini_parse(batch: bool) -> Callable[[bytes], Ask]:
    def parse(raw: bytes) -> Ask:
        asked = gemini.parse_request(raw, batch)
        return Ask(inputs=asked.texts, dimensions=asked.dimensions, task_type=asked.task_type, title=asked.title)
    return parse


def _gemini_render(batch: bool) -> Callable[[Vectors, Ask, str], bytes]:
    def render(vectors: Vectors, ask: Ask, model: str) -> bytes:
        return gemini.build_reply([unpacked(item) for item in vectors.items], batch)
    return render


def texts_of(ask: Ask) -> list[str]:
    """The inputs for an upstream that takes texts only. Raises unsupported."""
    texts = ask.texts
    if texts is None:
        raise GatewayError("unsupported", "This provider embeds texts, not token ids.", param="input")
    return texts


# ---------------------------------------------------------------- the tables
class Client(msgspec.Struct, frozen=True):
    """A surface's form of the operation."""
    parse: Callable[[bytes], Ask]
    render: Callable[[Vectors, Ask, str], bytes]


class Upstream(msgspec.Struct, frozen=True):
    """A wire's form of it, with the path for a model."""
    path: Callable[[str], str]
    build: Callable[[Ask, Outbound], bytes]
    read: Callable[[bytes, Ask], Vectors]


# operation of a door -> the client's form
CLIENTS: Final[dict[str, Client]] = {
    "embeddings": Client(parse, render),
    "embed_content": Client(_gemini_parse(False), _gemini_render(False)),
    "batch_embed_contents": Client(_gemini_parse(True), _gemini_render(True)),
    "ollama_embed": Client(ollama.parse, lambda vectors, ask, model: ollama.render([unpacked(item) for item in vectors.items],
                                                                                  vectors.tokens or 0, model)),
    "ollama_embeddings": Client(ollama.parse_one, lambda vectors, ask, model: ollama.render_one(unpacked(vectors.items[0]))),
}
# wire -> the upstream's form; a wire that is not here has no embeddings
UPSTREAMS: Final[dict[str, Upstream]] = {
    "openai-chat": Upstream(lambda model: "/embeddings", build, read),
    "openai-responses": Upstream(lambda model: "/embeddings", build, read),
    "gemini": Upstream(lambda model: f"/models/{model.removeprefix('models/')}:batchEmbedContents", _gemini_build, _gemini_read),
    "ollama": Upstream(lambda model: "/api/embed", lambda ask, to: ollama.build(ask, texts_of(ask), to.model),
                       lambda raw, ask: ollama.read(raw)),
}
