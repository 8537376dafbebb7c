"""How are embeddings asked for and answered in Ollama's API? ``/api/embed``, and ``/api/embeddings`` as it was before.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings
"""
from typing import Any, Final

import msgspec

from gateway.core.embedding import Ask, Vectors
from gateway.core.errors import GatewayError
from gateway.wire.lenient import dump
from gateway.wire.ollama.faults import fault_of
from gateway.wire.problems import decode, invalid

MAX_INPUTS: Final = 2_048


class _Body(msgspec.Struct):
    model: str | None = None
    input: str | list[str] | None = None
    prompt: str | None = None
    dimensions: int | None = None
    truncate: bool | None = None


class _Reply(msgspec.Struct):
    embeddings: list[list[float]]
    prompt_eval_count: int | None = None


_body = msgspec.json.Decoder(_Body)
_reply = msgspec.json.Decoder(_Reply)


def parse(raw: bytes) -> Ask:
    """A client's body. Raises bad_request naming the field."""
    body, _ = decode(raw, _body)
    given = body.input if body.input is not None else body.prompt
    inputs = [given] if isinstance(given, str) else given
    if not inputs:
        raise invalid("input", "expected a text or a list of texts")
    if len(inputs) > MAX_INPUTS:
        raise invalid("input", f"holds more than {MAX_INPUTS} inputs")
    if body.dimensions is not None and body.dimensions < 1:
        raise invalid("dimensions", "expected a positive integer")
    return Ask(inputs=inputs, model=body.model or "", dimensions=body.dimensions, truncate=body.truncate)


def parse_one(raw: bytes) -> Ask:
    ask = parse(raw)
    if len(ask.inputs) > 1:
        raise invalid("prompt", "expected one text; /api/embed takes several")
    return ask


def render(vectors: list[list[float]], tokens: int, model: str) -> bytes:
    return dump({"model": model, "embeddings": vectors, "total_duration": 1, "load_duration": 0, "prompt_eval_count": tokens})


def render_one(vector: list[float]) -> bytes:
    return dump({"embedding": vector})


def build(ask: Ask, texts: list[str], model: str) -> bytes:
    """The upstream's body."""
    body: dict[str, Any] = {"model": model, "input": texts}
    if ask.dimensions is not None:
        body["dimensions"] = ask.dimensions
    if ask.truncate is not None:
        body["truncate"] = ask.truncate
    return dump(body)


def read(raw: bytes) -> Vectors:
    """The upstream's answer. Raises bad_reply, or the failure that the body tells."""
    try:
        body = _reply.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        error = fault_of(raw)
        raise error or GatewayError("bad_reply", "The provider's answer holds no embeddings.") from None
    return Vectors(items=body.embeddings, tokens=body.prompt_eval_count)
