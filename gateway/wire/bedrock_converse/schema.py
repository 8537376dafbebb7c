"""What does Amazon Bedrock's Converse API look like to us? Its words for endings and errors, token counts, formats of files.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html · .../API_runtime_ConverseStream.html
"""
import hashlib
from typing import Any, Final

from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.core.redact import redact

NAME: Final = "bedrock-converse"
Json = dict[str, Any]

# ---------------------------------------------------------------- why a turn ended
STOP_IN: Final = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter", "content_filtered": "content_filter",
    "model_context_window_exceeded": "length",
}
# Endings that say that the model's output was no turn: nothing to deliver.
MALFORMED: Final = frozenset({"malformed_model_output", "malformed_tool_use"})

# ---------------------------------------------------------------- errors
# name of an exception -> the HTTP status that it has outside of a stream
STATUS: Final = {
    "accessdeniedexception": 403, "internalserverexception": 500, "modelerrorexception": 424, "modelnotreadyexception": 429,
    "modelstreamerrorexception": 424, "modeltimeoutexception": 408, "resourcenotfoundexception": 404,
    "serviceunavailableexception": 503, "throttlingexception": 429, "validationexception": 400,
    "servicequotaexceededexception": 429,
}


def fault(kind: str, message: str) -> GatewayError:
    """An exception inside of a stream, or an error body under 200."""
    text = redact(message or kind)
    return GatewayError("in_band", text, upstream_status=STATUS.get(kind.lower()),
                        verbatim={"error": {"message": text, "type": kind}} if kind else None)


# ---------------------------------------------------------------- token counts
def read_usage(native: Json) -> Usage:
    """Inclusive counts: ``inputTokens`` leaves out what the cache took.
    https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html"""
    cached, written = _count(native, "cacheReadInputTokens"), _count(native, "cacheWriteInputTokens")
    given, output = _count(native, "inputTokens") + cached + written, _count(native, "outputTokens")
    return Usage(input=given, output=output, cached=cached, cache_write=written, total=given + output, native=native)


def _count(native: Json, name: str) -> int:
    value = native.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# ---------------------------------------------------------------- files and ids
IMAGES: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS: Final = {
    "application/pdf": "pdf", "text/csv": "csv", "application/msword": "doc", "text/html": "html", "text/plain": "txt",
    "text/markdown": "md", "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
VIDEOS: Final = {"video/mp4": "mp4", "video/quicktime": "mov", "video/x-matroska": "mkv", "video/webm": "webm",
                 "video/mpeg": "mpeg", "video/x-flv": "flv", "video/3gpp": "three_gp", "video/x-ms-wmv": "wmv"}
MAX_ID: Final = 64


def call_id(given: str) -> str:
    """An id of a call in at most 64 signs; the same one for the same id."""
    if len(given) <= MAX_ID:
        return given
    return given[:MAX_ID - 17] + "_" + hashlib.sha256(given.encode()).hexdigest()[:16]
