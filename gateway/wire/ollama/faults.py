"""How does Ollama say that something failed? ``{"error": "text"}``, in a body and as a line of a stream."""
from gateway.core.errors import GatewayError
from gateway.core.redact import redact
from gateway.wire.jsonl import line
from gateway.wire.lenient import dump, load
from gateway.wire.ollama.schema import Json


def fault_of(raw: bytes) -> GatewayError | None:
    """The failure that a line or body tells; None where it tells none."""
    try:
        doc, _ = load(raw)
    except ValueError:
        return None
    return fault_in(doc) if isinstance(doc, dict) else None


def fault_in(doc: Json) -> GatewayError | None:
    said = doc.get("error")
    if not said:
        return None
    message = said.get("message") if isinstance(said, dict) else said
    status = doc.get("status_code")
    return GatewayError("in_band", redact(message if isinstance(message, str) else dump(said).decode()),
                        upstream_status=status if isinstance(status, int) and 400 <= status <= 599 else None)


def render(error: GatewayError) -> bytes:
    return dump({"error": error.message})


def in_stream(error: GatewayError) -> bytes:
    """The last line of a stream that broke."""
    return line(dump({"error": error.message, "done": True}))
