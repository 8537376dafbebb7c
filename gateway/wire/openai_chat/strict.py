"""Which habits of messages do strict chat upstreams refuse? A flag of the target each; what is said stays the same."""
import base64
import hashlib
import re
from typing import Any, Final

import msgspec

from gateway.wire.openai_chat.schema import Json

IDS, REASONING = "tool_ids_9", "no_reasoning_content"
STRICT: Final = frozenset({IDS, REASONING})

# Fields that some models take one or the other of: gpt-5.1 and later.
# https://platform.openai.com/docs/guides/latest-model#gpt-5-2-parameter-compatibility
SAMPLING, TOOLS = "sampling_or_effort", "tools_or_effort"
EITHER: Final = frozenset({SAMPLING, TOOLS})
_SAMPLING: Final = ("temperature", "top_p", "logprobs", "top_logprobs")

_NINE: Final = re.compile(r"[a-zA-Z0-9]{9}")
_THOUGHTS: Final = ("reasoning_content", "reasoning", "reasoning_details")


def comply(messages: list[Json], flags: frozenset[str]) -> None:
    """Put the messages right, in place."""
    for message in messages:
        if REASONING in flags and message.get("role") == "assistant":
            for name in _THOUGHTS:
                message.pop(name, None)
        if IDS in flags:
            for call in message.get("tool_calls") or ():
                call["id"] = nine(call.get("id"))
            if message.get("role") == "tool":
                message["tool_call_id"] = nine(message.get("tool_call_id"))


def choose(top: dict[str, Any], flags: frozenset[str]) -> None:
    """Leave out what this model refuses beside a wanted effort, or the effort beside tools. Values may be raw JSON."""
    effort = top.get("reasoning_effort")
    if isinstance(effort, (bytes, msgspec.Raw)):
        effort = bytes(effort).strip(b' "').decode("utf-8", "replace")
    if effort in (None, "null", "none"):
        return
    if TOOLS in flags and top.get("tools"):
        del top["reasoning_effort"]
    elif SAMPLING in flags:
        for name in _SAMPLING:
            top.pop(name, None)


def nine(given: Any) -> str:
    """Nine letters and digits; the same ones for the same id, since calls and results must go on to meet."""
    text = str(given or "")
    if _NINE.fullmatch(text):
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return base64.b32encode(digest).decode().lower()[:9]
