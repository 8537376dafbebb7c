"""What does OpenAI's Responses format look like to us? Names of items, parts and events, ids, token counts.

https://platform.openai.com/docs/api-reference/responses and the habits of the servers that copy it.
"""
import hashlib
from typing import Any, Final

import msgspec

from gateway.core.events import Usage
from gateway.core.request import Tool

WIRE: Final = "openai-responses"
Json = dict[str, Any]

# ---------------------------------------------------------------- items
# Calls that the client answers with text: the turn takes their deltas over.
CALLS: Final = {"function_call": "function", "custom_tool_call": "custom"}
OUTPUTS: Final = {"function_call_output": "function", "custom_tool_call_output": "custom", "local_shell_call_output": "function"}

# Items that are an answer by themselves: media, and what the client must act on.
COUNTS: Final = frozenset({
    "image_generation_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "mcp_approval_request",
    "tool_search_call", "compaction",
})

CUSTOM_SCHEMA: Final[Json] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"],
                              "additionalProperties": False}
EMPTY_SCHEMA: Final[Json] = {"type": "object", "properties": {}}
NO_RESULT: Final = "No result was given."
SHELL: Final = "local_shell"
SHELL_SCHEMA: Final[Json] = {
    "type": "object", "required": ["command"],
    "properties": {"command": {"type": "array", "items": {"type": "string"}}, "working_directory": {"type": "string"},
                   "timeout_ms": {"type": "integer"}}}

ID_PREFIX: Final = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc",
                    "image_generation_call": "ig", "web_search_call": "ws", SHELL + "_call": "lsh"}

# ---------------------------------------------------------------- why a turn ended
INCOMPLETE: Final = {"max_output_tokens": "length", "content_filter": "content_filter", "max_tokens": "length"}
TERMINALS: Final = {"response.completed": "completed", "response.incomplete": "incomplete"}
FAILED: Final = frozenset({"error", "response.failed", "response.error", "response.cancelled"})

MAX_ID: Final = 64


def clamped(call_id: str) -> str:
    """A call's id as this API takes it: at most 64 characters, the same for the call and its result."""
    if len(call_id) <= MAX_ID:
        return call_id
    return call_id[:40] + "_" + hashlib.blake2s(call_id.encode("utf-8", "replace"), digest_size=11).hexdigest()


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What the client declared under a name that other formats are told: kind function, custom or local_shell."""
    name: str
    kind: str = "function"
    namespace: str = ""


class Asked(msgspec.Struct, kw_only=True):
    """A request's body. ``doc`` is the JSON as it came; ``origins`` maps the names that other formats see to the client's
    declarations, where the two differ; ``tools`` are all declarations in neutral form."""
    doc: Json
    previous_response_id: str = ""
    store: bool = True
    origins: dict[str, Origin] = {}
    tools: list[Tool] = []
    replayed: bool = False                       # earlier turns were put before the input, by us
    makers: dict[str, str] = {}                  # of their reasoning items, by id: the provider that can read them


# ---------------------------------------------------------------- token counts
def write_usage(usage: Usage, same: bool) -> Json:
    """The usage object: the upstream's own where it holds what clients rely on, else built."""
    native = usage.native
    if same and native and all(isinstance(native.get(name), int) for name in ("input_tokens", "output_tokens", "total_tokens")):
        return native
    out: Json = {"input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached},
                 "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                 "total_tokens": usage.total or usage.input + usage.output}
    if usage.cache_write:
        out["input_tokens_details"]["cache_write_tokens"] = usage.cache_write
    if usage.estimated:
        out["estimated"] = True
    return out


# ---------------------------------------------------------------- items, compared
def texts_of(parts: Any) -> list[str]:
    """The texts of ``content`` or ``summary``."""
    if not isinstance(parts, list):
        return []
    return [str(part.get("text") or part.get("refusal") or "") if isinstance(part, dict) else str(part) for part in parts]
