"""What did an upstream refuse that can be left out? The same request without it, for one more try at the same target.

Only what the client did not write itself is left out: thinking that an earlier target sealed and this one cannot read. Its
owner is gone, the words of the dialogue are not.
"""
from collections.abc import Callable
from typing import Final

from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.wire.openai_responses import without_reasoning

# (code of the refusal, wire of the request) -> how the request is told without its cause
MENDS: Final[dict[tuple[str, str], Callable[[Request], Request | None]]] = {
    # https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items: sealed for one organisation
    ("invalid_encrypted_content", "openai-responses"): without_reasoning,
}


def mended(request: Request, error: GatewayError) -> Request | None:
    """The request to send instead; None when the refusal stands."""
    mend = MENDS.get((error.code or "", request.wire))
    return mend(request) if mend is not None else None
