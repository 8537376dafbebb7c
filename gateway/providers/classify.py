"""Which kind of failure is this (contract 7)? Status first, then codes, then words; the only reader of provider error text.

One row of ``RULES`` per thing that a provider may say; a status names the rows that may apply to it, in order. Words are
whole words of the message, never digits of ids or counts. Whatever is taken from the text is redacted before it leaves.
"""
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.core.errors import KINDS, GatewayError
from gateway.core.redact import clip, mask_words, redact, redact_json
from gateway.providers import errorbody, wording
from gateway.providers.errorbody import Words
from gateway.providers.hints import limits_hint, retry_after_s
from gateway.providers.registry import Provider

# status -> (rows of wording.RULES that may apply, in order; the kind when none does)
_BODY_FAULT: Final = (("moderated", "auth", "credits", "suspended", "degraded", "rate", "tool_use", "parameter", "model",
                       "access", "context", "feature"), "rejected")
_STATUS: Final[dict[int, tuple[tuple[str, ...], str]]] = {
    400: _BODY_FAULT,
    401: ((), "auth"),
    402: ((), "out_of_credits"),
    403: (("auth", "suspended", "credits", "daily", "rate"), "forbidden_upstream"),
    404: (("auth", "credits", "no_endpoint", "policy", "missing_state"), "model_not_found"),
    405: ((), "server_error"),
    408: ((), "timeout"),
    409: ((), "server_error"),
    410: ((), "model_not_found"),
    413: (("auth",), "context_too_large"),
    422: _BODY_FAULT,
    423: (("suspended",), "server_error"),
    424: ((), "server_error"),
    425: ((), "server_error"),
    429: (("suspended", "credits", "daily"), "rate_limited"),
    431: ((), "context_too_large"),
    451: ((), "forbidden_upstream"),
    498: ((), "overloaded"),                         # Groq: flex tier has no capacity
    499: ((), "server_error"),                       # the provider's own proxy gave up
    500: (("context_code", "degraded", "busy"), "server_error"),
    502: (("degraded",), "server_error"),
    503: (("degraded",), "overloaded"),
    504: ((), "timeout"),
    522: ((), "timeout"),                            # Cloudflare: https://developers.cloudflare.com/support/troubleshooting/
    524: ((), "timeout"),
    529: ((), "overloaded"),                         # Anthropic: https://docs.anthropic.com/en/api/errors
}
_OTHER_4XX: Final = (("auth", "credits"), "server_error")
_OTHER_5XX: Final = (("degraded",), "server_error")
_UNSTATED: Final = (("moderated", "auth", "credits", "suspended", "daily", "rate", "degraded", "busy", "tool_use", "context",
                     "model", "timeout"), "in_band")

# Kinds whose stated time counts, and kinds that go back in the provider's own words and status.
_TIMED: Final = frozenset({"rate_limited", "daily_quota_exhausted", "out_of_credits", "suspended", "overloaded", "degraded",
                           "server_error", "timeout", "in_band", "forbidden_upstream"})
_OWN_WORDS: Final = frozenset({"context_too_large", "unsupported", "rejected"})

# In-band errors name themselves instead of a status.
_CODE_STATUS: Final[dict[str, int]] = {
    "overloaded_error": 529, "engine_overloaded_error": 529, "unavailable": 503, "service_unavailable": 503,
    "service_unavailable_error": 503, "model_overloaded": 503,
    "rate_limit_error": 429, "rate_limit_exceeded": 429, "rate_limit_exceeded_error": 429, "rate_limited": 429,
    "resource_exhausted": 429, "too_many_requests": 429, "throttlingexception": 429, "insufficient_quota": 429,
    "billing_error": 402, "payment_required": 402, "insufficient_credits": 402,
    "authentication_error": 401, "invalid_api_key": 401, "unauthenticated": 401, "unauthorized": 401,
    "permission_error": 403, "permission_denied": 403, "forbidden": 403,
    "not_found_error": 404, "not_found": 404, "model_not_found": 404,
    "request_too_large": 413, "timeout_error": 504, "timeout": 504, "deadline_exceeded": 504, "gateway_timeout": 504,
    "api_error": 500, "server_error": 500, "internal": 500, "internal_error": 500, "internal_server_error": 500,
    "internalservererror": 500, "upstream_error": 502, "bad_gateway": 502, "provider_unavailable": 502,
    "context_length_exceeded": 400, "invalid_request_error": 400, "invalid_argument": 400, "failed_precondition": 400,
    "invalid_prompt": 400, "bad_request": 400, "tool_use_failed": 400,
}


def classify(status: int, headers: Mapping[str, str], body: bytes, provider: Provider, *,
             wall: float | None = None) -> GatewayError:
    """The failure that an HTTP answer with an error status is."""
    said = errorbody.read(body, status)
    rows, otherwise = rules_of(status)
    kind = wording.first(rows, said) or otherwise
    error = _build(kind, said, provider, f"error {status}", status)
    if kind in _TIMED:
        error.retry_after_s = retry_after_s(headers, said.payload, said.message, resets=status == 429, wall=wall)
    return error


def refine(fault: GatewayError, provider: Provider) -> GatewayError:
    """What an error inside a stream, or a JSON error under 200, really is. Others come back as they are."""
    if fault.kind != "in_band":
        return fault
    said = _in_band(fault)
    status, exact = _stated_status(said)
    status = status or fault.upstream_status or 0
    rows, otherwise = rules_of(status) if status else _UNSTATED
    kind = wording.first(rows, said) or otherwise
    if kind == "rejected" and not exact:
        kind = "unsupported"      # a vague "invalid request" from inside a stream: another target may well take it
    error = _build(kind, said, provider, f"error {status}" if exact else "error in the stream", status)
    error.upstream_status = fault.upstream_status or error.upstream_status
    if fault.extra and "failed_generation" in fault.extra:      # what is below ``verbatim`` was redacted
        error.extra = {"failed_generation": fault.extra["failed_generation"]}
    if kind in _TIMED:
        error.retry_after_s = fault.retry_after_s or retry_after_s({}, said.payload, said.message, resets=status == 429)
    return error


def rules_of(status: int) -> tuple[tuple[str, ...], str]:
    if status in _STATUS:
        return _STATUS[status]
    return _OTHER_5XX if status >= 500 else _OTHER_4XX


def _in_band(fault: GatewayError) -> Words:
    """Decoders keep the error object as ``extra`` (or below its ``error``) or ``verbatim``; without one there is the message."""
    extra = fault.extra or {}
    payload = extra if "error" in extra or "message" in extra else fault.verbatim
    if payload is None:
        payload = {"message": fault.message}
        if fault.code and fault.code != KINDS[fault.kind][3]:
            payload["code"] = fault.code
        if fault.type and fault.type != KINDS[fault.kind][2]:
            payload["type"] = fault.type
    said = errorbody.words(payload)
    if not said.message:
        said.message = fault.message
    return said


def _stated_status(said: Words) -> tuple[int, bool]:
    """(status, is it a number that the provider wrote?); (0, False) when nothing tells."""
    for number in said.numbers:
        if number >= 400:
            return number, True
    for code in sorted(said.codes, key=lambda c: -_weight(c)):
        if code in _CODE_STATUS:
            return _CODE_STATUS[code], False
    return 0, False


def _weight(code: str) -> int:
    """A word of its own beats the class that it stands in: ``rate_limit_exceeded`` beats ``invalid_request_error``."""
    return 0 if _CODE_STATUS.get(code) in (400, 500) else 1


def _build(kind: str, said: Words, provider: Provider, what: str, status: int) -> GatewayError:
    secrets = (*provider.keys, *_places(provider))
    text = f"{clip(provider.name, 60)} {what}" + (f": {said.message}" if said.message else "")
    error = GatewayError(kind, redact(text, secrets), upstream_status=status or None)
    if kind in _OWN_WORDS:
        error.status = status if 400 <= status < 500 else KINDS[kind][1]
        error.param = redact(said.param, secrets, 120) if said.param else None
        code = said.error.get("code")
        if kind != "context_too_large" and isinstance(code, str) and code:
            error.code = redact(code, secrets, 120)
        error.verbatim = _verbatim(said, secrets)
    generation = said.error.get("failed_generation")
    if isinstance(generation, str) and generation:              # a call that the provider's own parser refused
        error.extra = {"failed_generation": generation}
    error.hint = limits_hint(said.message) or None
    return error


def _places(provider: Provider) -> tuple[str, ...]:
    """Its host as it may call itself, where that is none of the Internet's names: only a port tells."""
    place = urlsplit(provider.base_url).netloc.rpartition("@")[2]
    return (place,) if ":" in place else ()


def _verbatim(said: Words, secrets: tuple[str, ...]) -> dict[str, Any]:
    """The provider's own body in the shape of an OpenAI error, redacted."""
    payload = redact_json(said.payload, secrets) if said.payload is not None else {}
    inner = payload.get("error")
    if isinstance(inner, dict) and isinstance(inner.get("message"), str) and inner["message"]:
        if not isinstance(inner.get("type"), str):
            inner["type"] = "invalid_request_error"
        return dict(payload)
    code, kind = said.error.get("code"), said.error.get("type")
    return {"error": {
        "message": clip(mask_words(said.message, secrets), 2_000) or "The provider refused the request.",
        "type": kind if isinstance(kind, str) and kind and kind != "error" else "invalid_request_error",
        "param": redact(said.param, secrets, 120) if said.param else None,
        "code": redact(code, secrets, 120) if isinstance(code, str) and code else code if isinstance(code, int) else None}}

