"""What went wrong, who is to blame, and may something else be tried?

One exception type for everything. ``kind`` is closed (``KINDS``): routing decides by it (contract 7), surfaces render it
(contract 4), records count it. Library exceptions are mapped to it in the file that calls the library.
"""
from typing import Any, Final, Literal

Origin = Literal["client", "policy", "upstream", "ours"]

# kind -> (origin, default HTTP status, OpenAI error type, OpenAI error code)
KINDS: Final[dict[str, tuple[Origin, int, str, str | None]]] = {
    # the caller's request
    "bad_request": ("client", 400, "invalid_request_error", None),
    "not_found": ("client", 404, "invalid_request_error", "not_found"),
    "method_not_allowed": ("client", 405, "invalid_request_error", "method_not_allowed"),
    "body_too_large": ("client", 413, "invalid_request_error", "request_too_large"),
    "unsupported_media_type": ("client", 415, "invalid_request_error", "unsupported_media_type"),
    "unprocessable": ("client", 422, "invalid_request_error", None),
    "upgrade_required": ("client", 426, "invalid_request_error", "upgrade_required"),
    "client_gone": ("client", 499, "invalid_request_error", "client_closed_request"),
    # what we allow
    "unauthorized": ("policy", 401, "authentication_error", "invalid_api_key"),
    "forbidden": ("policy", 403, "permission_error", "forbidden"),
    "limited": ("policy", 429, "rate_limit_error", "rate_limit_exceeded"),
    "budget": ("policy", 429, "rate_limit_error", "budget_exceeded"),
    "shed": ("policy", 503, "service_unavailable", "overloaded"),
    # routing found nobody
    "no_model": ("client", 404, "invalid_request_error", "model_not_found"),
    "no_provider": ("ours", 503, "service_unavailable", "no_providers_configured"),
    # the upstream, by status and words (spec/streaming 2.4)
    "auth": ("upstream", 502, "provider_error", "provider_authentication_failed"),
    "out_of_credits": ("upstream", 429, "rate_limit_error", "rate_limit_exceeded"),
    "suspended": ("upstream", 429, "rate_limit_error", "rate_limit_exceeded"),
    "daily_quota_exhausted": ("upstream", 429, "rate_limit_error", "rate_limit_exceeded"),
    "rate_limited": ("upstream", 429, "rate_limit_error", "rate_limit_exceeded"),
    "forbidden_upstream": ("upstream", 429, "rate_limit_error", "rate_limit_exceeded"),
    "model_not_found": ("upstream", 404, "invalid_request_error", "model_not_found"),
    "context_too_large": ("upstream", 413, "invalid_request_error", "context_length_exceeded"),
    "unsupported": ("upstream", 400, "invalid_request_error", "provider_rejected_request"),
    "rejected": ("upstream", 400, "invalid_request_error", "provider_rejected_request"),
    "overloaded": ("upstream", 503, "service_unavailable", "upstream_unhealthy"),
    "degraded": ("upstream", 503, "service_unavailable", "provider_degraded"),
    "server_error": ("upstream", 502, "provider_error", "upstream_failed"),
    "timeout": ("upstream", 504, "provider_error", "upstream_timeout"),
    "transport": ("upstream", 502, "provider_error", "upstream_failed"),
    # the upstream's turn (a 200 is not enough)
    "in_band": ("upstream", 502, "provider_error", "upstream_failed"),
    "bad_reply": ("upstream", 502, "provider_error", "upstream_failed"),
    "truncated": ("upstream", 502, "provider_error", "upstream_failed"),
    "empty": ("upstream", 502, "provider_error", "upstream_failed"),
    "empty_length": ("upstream", 502, "provider_error", "upstream_failed"),
    "unparseable_dialect": ("upstream", 502, "provider_error", "upstream_failed"),
    "invalid_tool_arguments": ("upstream", 502, "provider_error", "upstream_failed"),
    "format_ignored": ("upstream", 502, "provider_error", "upstream_failed"),
    "truncated_json": ("upstream", 502, "provider_error", "upstream_failed"),
    # every target was tried
    "exhausted": ("upstream", 502, "provider_error", "upstream_failed"),
    "internal": ("ours", 500, "server_error", "internal_error"),
}


class GatewayError(Exception):
    """One failure, neutral to every surface.

    ``status`` is what a surface answers when this ends the request; ``upstream_status`` what the provider said.
    ``message`` is safe to show: whoever builds the error has redacted and bounded it. ``param`` names the field at fault
    (``messages.1.content``). ``retry_after_s`` is a time that somebody stated or that we know, in seconds.
    ``verbatim`` is the upstream's own error body (redacted JSON) for failures that go back in its own words. ``extra`` is shown
    beside the message; ``hint`` is not: numbers that a refusal states about limits and sizes (``providers.hints.LimitsHint``).
    """

    __slots__ = ("kind", "origin", "status", "message", "type", "code", "param", "retry_after_s", "upstream_status",
                 "verbatim", "extra", "hint")

    def __init__(self, kind: str, message: str, *, status: int | None = None, param: str | None = None,
                 type: str | None = None, code: str | None = None, retry_after_s: float | None = None,
                 upstream_status: int | None = None, verbatim: dict[str, Any] | None = None,
                 extra: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.origin, default_status, default_type, default_code = KINDS[kind]
        self.status = status or default_status
        self.message = message
        self.type = type or default_type
        self.code = code if code is not None else default_code
        self.param = param
        self.retry_after_s = retry_after_s
        self.upstream_status = upstream_status
        self.verbatim = verbatim
        self.extra = extra
        self.hint: Any = None

    def __repr__(self) -> str:
        return f"GatewayError({self.kind!r}, {self.message!r}, status={self.status})"


def bad_request(message: str, param: str | None = None, *, code: str | None = None) -> GatewayError:
    """The caller's body is at fault; ``param`` is the dotted path of the field."""
    return GatewayError("bad_request", message, param=param, code=code)
