"""How do Responses upstreams say in-band that they failed? An ``error`` event, or a response whose status is failed."""
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.wire.openai_chat.faults import fault_of
from gateway.wire.openai_responses.schema import Json

_FIELDS: Final = ("message", "code", "param", "type")


def fault_in(doc: Json, event: str | None = None) -> GatewayError:
    """The failure that a frame tells, whatever its shape: flat, nested, or inside a response."""
    response = doc.get("response")
    error: Any = doc.get("error")
    if not error and isinstance(response, dict):
        error = response.get("error") or {"message": f"The response ended as {response.get('status') or 'failed'}."}
    if not error:
        error = {name: doc[name] for name in _FIELDS if doc.get(name) and doc[name] != "error"}
    if isinstance(error, dict) and not error.get("message"):
        error = {**error, "message": str(error.get("code") or "The provider failed.")}
    return fault_of({"error": error}, event) or GatewayError("in_band", "The provider failed.")


def failure(error: GatewayError) -> Json:
    """``error`` of a failed response. https://platform.openai.com/docs/api-reference/responses/object#responses/object-error"""
    return {"code": error.code or "server_error", "message": error.message}
