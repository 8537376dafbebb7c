"""What does Anthropic's Messages API look like to us? Its words for endings and errors, token counts, ids.

https://docs.anthropic.com/en/api/messages · .../messages-streaming · .../errors · .../handling-stop-reasons
"""
import re
from typing import Any, Final

import msgspec

from gateway.core.events import Usage
from gateway.wire import lenient

NAME: Final = "anthropic"
Json = dict[str, Any]


# ---------------------------------------------------------------- frames
class Delta(msgspec.Struct, gc=False):
    """Of content_block_delta and message_delta."""
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class MoreText(msgspec.Struct, gc=False, tag_field="type", tag="text_delta", forbid_unknown_fields=True):
    text: str


class More(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta", forbid_unknown_fields=True):
    """A frame that says nothing but more of a text."""
    index: int
    delta: MoreText


class Frame(msgspec.Struct, gc=False):
    """Just enough of a frame to tell the deltas, which are nearly all; anything else is read as plain JSON."""
    type: str
    index: int | None = None
    delta: Delta | None = None


# ---------------------------------------------------------------- why a turn ended
_STOP_IN: Final = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "refusal",
    "pause_turn": "pause", "model_context_window_exceeded": "length",
}
# Servers that copy the format and keep the words of another one; no client of this one knows them.
COPIED: Final = {"stop": "stop", "eos": "stop", "length": "length", "tool_calls": "tool_calls", "content_filter": "refusal"}
STOP_IN: Final = {**_STOP_IN, **COPIED}
STOP_OUT: Final = {
    "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal", "content_filter": "refusal",
    "pause": "pause_turn",
}


def stop_out(reason: str, stop_sequence: str | None) -> str:
    """The word for a client. A word of nobody's is an ordinary end: clients know no others."""
    word = STOP_OUT.get(reason, "end_turn")
    return "stop_sequence" if word == "end_turn" and stop_sequence else word


# ---------------------------------------------------------------- errors
ERROR_TYPES: Final = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
    504: "timeout_error", 529: "overloaded_error",
}
ERROR_STATUS: Final = {word: status for status, word in ERROR_TYPES.items()} | {"api_error": 500}


def error_type(status: int) -> str:
    return ERROR_TYPES.get(status) or ("invalid_request_error" if status < 500 else "api_error")


# ---------------------------------------------------------------- blocks and tools
# Tools with a shape of Anthropic's own that the *client* runs: the model calls them like any other.
CLIENT_TOOLS: Final = ("bash_", "text_editor_", "computer_", "memory_")
VERSIONED: Final = re.compile(r"_20\d{6}$|^mcp_toolset$")
# Citations that the API takes back; other formats' annotations are none of these.
CITATIONS: Final = frozenset({"char_location", "page_location", "content_block_location", "web_search_result_location",
                              "search_result_location"})
_BAD_ID: Final = re.compile(r"[^a-zA-Z0-9_-]")
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def safe_id(call_id: str) -> str:
    """A tool call's id in the alphabet that the API accepts."""
    return _BAD_ID.sub("_", call_id) or "_"


def safe_name(name: str) -> str:
    return name if TOOL_NAME.fullmatch(name) else _BAD_ID.sub("_", name)[:128] or "_"


# The first bytes of a picture in base64, and what it therefore is: the API compares them with the declared type.
_MAGIC: Final = (("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
IMAGE_TYPES: Final = frozenset(kind for _, kind in _MAGIC)


def image_type(data: str, declared: str) -> str:
    """What a picture is, by its bytes; else by its declaration, spelled as the API wants it."""
    for head, kind in _MAGIC:
        if data.startswith(head):
            return kind
    declared = declared.partition(";")[0].strip().lower()
    return "image/jpeg" if declared in ("image/jpg", "image/pjpeg") else declared


# ---------------------------------------------------------------- token counts
def read_usage(native: Json) -> Usage:
    """Inclusive counts: ``input_tokens`` leaves out what the cache took.
    https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#tracking-cache-performance"""
    cached, written = _count(native, "cache_read_input_tokens"), _count(native, "cache_creation_input_tokens")
    given, output = _count(native, "input_tokens") + cached + written, _count(native, "output_tokens")
    details = native.get("output_tokens_details")
    reasoning = _count(details, "thinking_tokens") if isinstance(details, dict) else 0
    return Usage(input=given, output=output, cached=cached, cache_write=written, reasoning=reasoning, total=given + output,
                 native=native)


def write_usage(usage: Usage, same: bool) -> Json:
    """The usage object for a client: the upstream's own where it is one of these, else built."""
    native = usage.native
    if same and native and isinstance(native.get("output_tokens"), int) and isinstance(native.get("input_tokens"), int):
        return native
    out: Json = {"input_tokens": max(usage.input - usage.cached - usage.cache_write, 0),
                 "cache_creation_input_tokens": usage.cache_write, "cache_read_input_tokens": usage.cached,
                 "output_tokens": usage.output}
    if usage.reasoning:
        out["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return out


def _count(native: Json, name: str) -> int:
    value = native.get(name)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else 0


# ---------------------------------------------------------------- calls, and JSON as the rest of the folder uses it
def load(raw: bytes) -> Any:
    """A JSON value, leniently read. Raises ValueError."""
    return lenient.load(raw)[0]


dump = lenient.dump


def arguments(value: Any) -> str:
    """A call's input as the JSON text that everybody else passes around."""
    return "{}" if not value else value if isinstance(value, str) else dump(value).decode()


def call_input(text: str, kind: str = "function") -> Json:
    """JSON text as a call's input, which must be an object; free text of a custom tool goes under ``input``."""
    if kind == "custom":
        return {"input": text}
    try:
        value = load(text.encode("utf-8", "surrogatepass")) if text.strip() else {}
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}
