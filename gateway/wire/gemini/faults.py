"""How does a Gemini upstream say in-band that it failed, and how do we say it to a Gemini client?

https://cloud.google.com/apis/design/errors
"""
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.core.redact import redact, redact_json
from gateway.wire import jsonl, sse
from gateway.wire.gemini.schema import Json
from gateway.wire.lenient import dump

# https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
RPC: Final = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED", 409: "ABORTED", 413: "INVALID_ARGUMENT", 415: "INVALID_ARGUMENT", 422: "INVALID_ARGUMENT",
    426: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED",
    502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}
_TYPE: Final = "type.googleapis.com/google.rpc."
ARRAY: Final = "chat-array"


def rpc(status: int) -> str:
    return RPC.get(status) or ("FAILED_PRECONDITION" if status < 500 else "INTERNAL")


def fault_of(doc: Json) -> GatewayError | None:
    """The failure that a frame or body tells; None where it tells none."""
    error = doc.get("error")
    if not error:
        return None
    said = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else dump(error).decode()}
    message = said.get("message")
    text = redact(message if isinstance(message, str) and message else dump(error).decode())
    code = said.get("code")
    status = code if isinstance(code, int) and 400 <= code <= 599 else _status(said.get("status"))
    return GatewayError("in_band", text, upstream_status=status,
                        verbatim=redact_json({"error": {**said, "message": text}}))


def _status(word: Any) -> int | None:
    return next((status for status, name in RPC.items() if name == word), None)


def render(error: GatewayError) -> bytes:
    """The body of an HTTP error; the upstream's own where it has this shape and says this status."""
    return dump({"error": body(error)})


def body(error: GatewayError) -> Json:
    said = (error.verbatim or {}).get("error")
    if isinstance(said, dict) and said.get("code") == error.status and said.get("status") in _NAMES and said.get("message"):
        return said
    out: Json = {"code": error.status, "message": error.message, "status": rpc(error.status)}
    details: list[Json] = []
    if error.code:
        details.append({"@type": _TYPE + "ErrorInfo", "reason": error.code.upper(), "domain": "gateway"})
    if error.param:
        details.append({"@type": _TYPE + "BadRequest",
                        "fieldViolations": [{"field": error.param, "description": error.message}]})
    if error.retry_after_s is not None:
        details.append({"@type": _TYPE + "RetryInfo", "retryDelay": f"{max(error.retry_after_s, 0):.3f}s"})
    if details:
        out["details"] = details
    for key, value in (error.extra or {}).items():
        if key != "failed_generation":
            out.setdefault(key, value)
    return out


_NAMES: Final = frozenset({*RPC.values(), "UNKNOWN", "ALREADY_EXISTS", "OUT_OF_RANGE", "DATA_LOSS"})


def in_stream(error: GatewayError, operation: str, first: bool) -> bytes:
    """The error as the last thing of a started stream. ``first``: nothing else is in the array yet."""
    data = render(error)
    return jsonl.element(data, first) + jsonl.CLOSE if operation == ARRAY else sse.frame(data)
