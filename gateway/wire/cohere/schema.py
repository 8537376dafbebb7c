"""What does Cohere's v2 chat API look like to us? Its words for endings, its token counts, its failures.

https://docs.cohere.com/reference/chat · https://docs.cohere.com/docs/streaming
"""
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import redact

NAME: Final = "cohere"
Json = dict[str, Any]

STOP_IN: Final = {"COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length", "TOOL_CALL": "tool_calls",
                  "ERROR_TOXIC": "content_filter", "ERROR_LIMIT": "length"}
# Endings that are none: the model or the service gave up. -> the status that says as much
FAILED: Final = {"ERROR": 500, "TIMEOUT": 504, "USER_CANCEL": 500}


def ending(reason: Any, error: Any, out: list[ev.Event]) -> bool:
    """Why the turn ended, in our words; False where it failed."""
    reason = reason if isinstance(reason, str) else ""
    if reason in FAILED or error:
        said = error if isinstance(error, str) else "The provider gave up on this answer."
        out.append(ev.Fault(GatewayError("in_band", redact(said), upstream_status=FAILED.get(reason, 500))))
        return False
    if reason:
        out.append(ev.Finish(STOP_IN.get(reason, reason.lower())))
    return True


def read_usage(native: Any) -> ev.Usage | None:
    """``tokens`` is what the model read and wrote, ``billed_units`` what is paid for; the first is what everybody counts."""
    if not isinstance(native, dict):
        return None
    tokens = native.get("tokens")
    if not isinstance(tokens, dict):
        tokens = native.get("billed_units")
    if not isinstance(tokens, dict):
        return None
    given, output = count(tokens, "input_tokens"), count(tokens, "output_tokens")
    return ev.Usage(input=given, output=output, cached=count(native, "cached_tokens"),
                    reasoning=count(tokens, "reasoning_tokens"), total=given + output, native=native)


def count(native: Json, name: str) -> int:
    """Counts come as numbers with a point in some versions."""
    value = native.get(name)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""
