"""What does this request demand of its turn? Facts of the request and of ``[stream]``, frozen for one turn."""
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from gateway.core.request import Format

# The modes of one choice; turn.py tells their story.
UNDECIDED: Final = "undecided"
PASSTHROUGH: Final = "passthrough"
DIALECT: Final = "dialect"
STRUCTURED: Final = "structured"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """``tools`` maps declared names to schemas (None = no schema); ``prompt_tokens`` is our estimate of the prompt."""
    tools: Mapping[str, dict[str, Any] | None] = {}
    format: Format | None = None
    tool_calls: Literal["whole", "live"] = "whole"
    reasoning: Literal["hold", "live"] = "hold"
    rescue: bool = True
    rescue_scan: int = 256
    hold_max_bytes: int = 4_194_304
    hold_max_s: float = 30.0
    think_tags: bool = True
    validate_tool_arguments: bool = False
    n: int = 1
    stream: bool = True
    prompt_tokens: int = 0

    @property
    def held(self) -> bool:
        """Must text be looked at as it comes, because it may be a call or must be JSON?"""
        return bool(self.tools) or self.format is not None
