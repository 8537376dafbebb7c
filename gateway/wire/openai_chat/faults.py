"""How do chat upstreams say in-band that they failed, and how do we say it to a chat client?

Servers put an error into a stream, or under status 200, in many shapes; none of them has a real answer beside it.
"""
from typing import Any

from gateway.core.errors import GatewayError
from gateway.core.redact import redact, redact_json
from gateway.wire.base import Shown
from gateway.wire.lenient import dump
from gateway.wire.openai_chat.schema import Json
from gateway.wire.sse import DONE, frame

# Fields that hold the failure where there is no `error`: FastAPI's, RFC 7807's, generic relays'.
_WORDS = ("error_message", "detail", "message", "msg", "title", "error_msg")
_VERBATIM_OUT = frozenset({"choices", "id", "object", "created", "usage"})


def fault_of(doc: Json, event: str | None = None) -> GatewayError | None:
    """The failure that a frame or a body tells; None where it tells none."""
    error = doc.get("error")
    if error:
        return _fault(doc, error)
    if doc.get("choices"):
        return None
    if event == "error" or doc.get("object") == "error" or doc.get("type") == "error" or doc.get("success") is False:
        return _fault(doc, doc)
    if doc.get("error_type") or doc.get("error_message") or doc.get("error_msg") or doc.get("detail"):
        return _fault(doc, doc)
    if "choices" not in doc and isinstance(doc.get("message"), str):
        return _fault(doc, doc)
    return None


def ended_in_failure(word: Any) -> GatewayError:
    """A finish reason that says the provider failed."""
    return GatewayError("in_band", f"The provider ended the answer with {redact(str(word))!r}.")


def _fault(doc: Json, error: Any) -> GatewayError:
    failed = error.get("failed_generation") if isinstance(error, dict) else None
    verbatim = redact_json({key: value for key, value in doc.items() if key not in _VERBATIM_OUT})
    if not isinstance(verbatim.get("error"), dict):
        verbatim = {"error": {"message": redact(_message(error)), "type": "provider_error", "param": None,
                              "code": _code(error)}}
    return GatewayError("in_band", redact(_message(error)), upstream_status=_status(error), verbatim=verbatim,
                        extra={"failed_generation": failed} if isinstance(failed, str) else None)


def _message(error: Any) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        return "; ".join(_message(item) for item in error[:5])
    if not isinstance(error, dict):
        return str(error)
    for name in _WORDS:
        value = error.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, (dict, list)) and value:
            return _message(value)
    inner = error.get("error")
    return _message(inner) if inner else dump(error).decode()[:500]


def _code(error: Any) -> Any:
    return error.get("code") or error.get("error_type") if isinstance(error, dict) else None


def _status(error: Any) -> int | None:
    """The HTTP status that the frame states."""
    if isinstance(error, dict):
        for name in ("status_code", "code", "status", "http_status"):
            value = error.get(name)
            if isinstance(value, str) and value.isdecimal():
                value = int(value)
            if isinstance(value, int) and 400 <= value <= 599:
                return value
    return None


def body(error: GatewayError) -> Json:
    """OpenAI's error object. https://platform.openai.com/docs/guides/error-codes"""
    out: Json = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    for key, value in (error.extra or {}).items():
        if key != "failed_generation":
            out.setdefault(key, value)
    return {"error": out}


def render(error: GatewayError) -> bytes:
    """The body of an HTTP error; the upstream's own words where they go back as they are."""
    if error.verbatim is not None and isinstance(error.verbatim.get("error"), dict):
        own = dict(error.verbatim["error"])
        own["message"] = own.get("message") if isinstance(own.get("message"), str) and own["message"] else error.message
        own["type"] = own["type"] if isinstance(own.get("type"), str) else error.type
        own.setdefault("param", error.param)
        if not isinstance(own.get("code"), str):             # elsewhere it is the status once more; clients look for a word
            own["code"] = error.code
        return dump({**error.verbatim, "error": own})
    return dump(body(error))


def in_stream(error: GatewayError, shown: Shown) -> bytes:
    """An error frame, and the [DONE] that clients wait for."""
    told = body(error)
    told["error"]["type"] = "stream_error"
    return frame(dump(told)) + (DONE if shown.done_after_error else b"")
