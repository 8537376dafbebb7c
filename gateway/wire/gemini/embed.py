"""How are embeddings asked for and answered in Gemini's API? embedContent for one text, batchEmbedContents for several.

https://ai.google.dev/api/embeddings
"""
from typing import Any, Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.wire.gemini.faults import fault_of
from gateway.wire.gemini.keys import camel_keys
from gateway.wire.gemini.request import listed
from gateway.wire.gemini.schema import Json
from gateway.wire.lenient import dump, load
from gateway.wire.problems import invalid

MAX_TEXTS: Final = 2_048


class Asked(msgspec.Struct):
    """Texts to be embedded. ``batch``: the answer has a list, also for one text."""
    texts: list[str]
    dimensions: int | None = None
    task_type: str = ""
    title: str = ""
    batch: bool = False


def parse_request(raw: bytes, batch: bool) -> Asked:
    """A client's body. Raises bad_request with the path of the field."""
    try:
        body = camel_keys(load(raw)[0])
    except (ValueError, RecursionError) as problem:
        raise GatewayError("bad_request", f"The request body is not valid JSON: {str(problem)[:120]}.") from None
    if not isinstance(body, dict):
        raise GatewayError("bad_request", "The request body must be a JSON object.")
    if not batch:
        return _one(body, "")
    requests = body.get("requests")
    if not isinstance(requests, list) or not requests:
        raise invalid("requests", "expected a list of at least one request")
    if len(requests) > MAX_TEXTS:
        raise invalid("requests", f"holds more than {MAX_TEXTS} requests")
    found = [_one(one if isinstance(one, dict) else {}, f"requests.{i}.") for i, one in enumerate(requests)]
    first = found[0]
    for i, one in enumerate(found):
        if one.dimensions != first.dimensions:
            raise invalid(f"requests.{i}.outputDimensionality", "must be the same in all requests of a batch")
    return Asked([one.texts[0] for one in found], first.dimensions, first.task_type, first.title, True)


def _one(body: Json, prefix: str) -> Asked:
    content = body.get("content")
    if not isinstance(content, dict):
        raise invalid(f"{prefix}content", "this field is required")
    texts: list[str] = []
    for i, part in enumerate(listed(content.get("parts"))):
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            raise invalid(f"{prefix}content.parts.{i}.text", "expected a string; only texts can be embedded")
        texts.append(part["text"])
    if not texts:
        raise invalid(f"{prefix}content.parts", "must hold at least one part")
    config = body.get("embedContentConfig")
    given: Json = {**(config if isinstance(config, dict) else {}), **body}
    size = given.get("outputDimensionality")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
        raise invalid(f"{prefix}outputDimensionality", "expected a positive integer")
    return Asked(["\n".join(texts)], size, str(given.get("taskType") or ""), str(given.get("title") or ""))


def build_request(asked: Asked, model: str) -> bytes:
    """The upstream's body: always a batch, which every embedding model takes."""
    name = model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"
    options: Json = {}
    if asked.dimensions is not None:
        options["outputDimensionality"] = asked.dimensions
    if asked.task_type:
        options["taskType"] = asked.task_type
    if asked.title:
        options["title"] = asked.title
    return dump({"requests": [{"model": name, "content": {"parts": [{"text": text}]}, **options} for text in asked.texts]})


def parse_reply(raw: bytes) -> list[list[float]]:
    """The vectors of an answer of either kind. Raises bad_reply, or the failure that the body tells."""
    try:
        body, _ = load(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    error = fault_of(body)
    if error is not None:
        raise error
    rows = body.get("embeddings") if "embeddings" in body else [body.get("embedding")]
    found: list[Any] = [row.get("values") if isinstance(row, dict) else None for row in listed(rows)]
    if not found or not all(isinstance(vector, list) and vector for vector in found):
        raise GatewayError("bad_reply", "The provider's answer has no embeddings.")
    return found


def build_reply(vectors: list[list[float]], batch: bool) -> bytes:
    """The client's answer."""
    if batch:
        return dump({"embeddings": [{"values": vector} for vector in vectors]})
    return dump({"embedding": {"values": vectors[0]}})
