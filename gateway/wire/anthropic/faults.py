"""How does a Messages upstream say in-band that it failed, and how do we say it to a Messages client?"""
from typing import Any

from gateway.core.errors import GatewayError
from gateway.core.redact import redact, redact_json
from gateway.wire.anthropic.schema import ERROR_STATUS, Json, dump, error_type
from gateway.wire.sse import frame


def fault_of(doc: Json, event: str | None = None) -> GatewayError | None:
    """The failure that a frame or body tells; None where it tells none. Copies of the format use OpenAI's shape too."""
    error = doc.get("error")
    if doc.get("type") != "error" and not error and event != "error":
        return None
    if not error:
        error = doc
    message = error.get("message") if isinstance(error, dict) else error
    kind = error.get("type") if isinstance(error, dict) else None
    text = redact(message if isinstance(message, str) and message else dump(error).decode())
    word = kind if isinstance(kind, str) and kind in ERROR_STATUS else "api_error"
    verbatim = redact_json(doc) if doc.get("type") == "error" and isinstance(error, dict) and word == kind \
        and isinstance(message, str) and message else {"type": "error", "error": {"type": word, "message": text}}
    return GatewayError("in_band", text, upstream_status=_status(error) or ERROR_STATUS[word], verbatim=verbatim)


def _status(error: Any) -> int | None:
    for name in ("status_code", "code", "status"):
        value = error.get(name) if isinstance(error, dict) else None
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    return None


def render(error: GatewayError) -> bytes:
    """The body of an HTTP error; the upstream's own words where they have this shape."""
    said = error.verbatim
    if said is not None and said.get("type") == "error" and _shaped(said.get("error")):
        return dump(said)
    message = error.message
    if error.param and error.origin == "client" and error.param not in message:
        message = f"{error.param}: {message}"
    body: Json = {"type": error_type(error.status), "message": message}
    if error.code is not None:
        body["code"] = error.code
    for key, value in (error.extra or {}).items():
        if key != "failed_generation":
            body.setdefault(key, value)
    return dump({"type": "error", "error": body})


def _shaped(error: Any) -> bool:
    return isinstance(error, dict) and isinstance(error.get("type"), str) and bool(error.get("message"))


def error_frame(error: GatewayError) -> bytes:
    """After this event a client expects nothing more."""
    return frame(render(error), "error")
