"""How much may the model think, and how many tokens does the answer get? Effort and budgets in Anthropic's terms.

A budget is part of ``max_tokens``, at least 1024 and below it; models since Opus 4.7 think adaptively and take an effort.
https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking · .../adaptive-thinking
"""
import re
from typing import Final

from gateway.core.request import Conversation, Thinking
from gateway.wire.anthropic.schema import NAME, Json
from gateway.wire.base import Outbound

LEAST: Final = 1024
DEFAULT_MAX: Final = 32_000              # every model since Claude 4 can say that much
_UNKNOWN_CAP: Final = 64_000
_ROOM: Final = 4_096                     # left for the answer when the caller names no limit

BUDGETS: Final = {"minimal": 1_024, "low": 1_024, "medium": 10_240, "high": 131_072, "xhigh": 131_072, "max": 131_072}
EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max"}

_ADAPTIVE: Final = re.compile(r"claude-(?:opus-4[-.][7-9]|(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|\d\d))")
_NEVER: Final = re.compile(r"claude-(?:2|instant|3-opus|3-sonnet|3-haiku|3[-.]5)")


def limits(talk: Conversation, to: Outbound, forced: bool) -> Json:
    """``max_tokens``, ``thinking`` and ``output_config`` of a request. ``forced``: a tool must be called, beside which the API
    allows no thinking."""
    asked, cap = talk.sampling.max_tokens, to.max_output
    plain = min(asked or cap or DEFAULT_MAX, cap or asked or DEFAULT_MAX)
    thought = talk.thought
    out: Json = {"max_tokens": plain}
    if thought is None or _NEVER.search(to.model):
        return out
    if thought.effort == "none" or thought.budget_tokens == 0:
        return out | {"thinking": {"type": "disabled"}}
    adaptive = "adaptive_thinking" in to.flags or _ADAPTIVE.search(to.model) is not None
    if adaptive or thought.adaptive and thought.budget_tokens is None:
        if not forced:
            out["thinking"] = {"type": "adaptive"} | ({"display": thought.summary} if _display(thought.summary) else {})
        effort = EFFORTS.get(thought.effort or "")
        return out | {"output_config": {"effort": effort}} if effort and adaptive else out
    if forced or _broken_chain(talk):
        return out
    budget = thought.budget_tokens
    if budget is None or budget < 0:
        budget = BUDGETS.get(thought.effort or "", BUDGETS["medium"])
    elif LEAST <= budget < plain:
        return out | {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return out | _fit(asked, budget, cap)


def _fit(asked: int | None, budget: int, cap: int | None) -> Json:
    """Room for the answer first, then as much of the budget as the model allows; no thinking where that is too little."""
    budget = max(budget, LEAST)
    room = max(asked or _ROOM, LEAST)
    top = cap or max(_UNKNOWN_CAP, room)
    for kept in (room, LEAST):
        limit = min(kept + budget, top)
        if limit - kept >= LEAST:
            return {"max_tokens": limit, "thinking": {"type": "enabled", "budget_tokens": limit - kept}}
    return {}


def _broken_chain(talk: Conversation) -> bool:
    """In the middle of a tool loop the last assistant turn must begin with its signed thinking, which is only there if this
    API produced it."""
    turns = [message for message in talk.messages if message.role not in ("system", "developer")]
    if not turns or turns[-1].role != "tool":
        return bool(turns) and turns[-1].role == "assistant"
    last = next((message for message in reversed(turns) if message.role == "assistant"), None)
    if last is None or not last.parts:
        return False
    first = last.parts[0]
    return not (isinstance(first, Thinking) and first.owner == NAME and (first.signature or first.redacted))


def _display(word: str | None) -> bool:
    return word in ("summarized", "omitted")
