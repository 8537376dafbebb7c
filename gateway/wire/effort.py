"""How much thinking may a request ask for? Effort and budgets, made smaller or taken out, in the client's own format.

What a request does not ask for is left to the model, with one exception: to be told not to think at all is said where the format
has a word for it and the request speaks of thinking.
"""
from collections.abc import Callable
from typing import Any, Final

import msgspec

Json = dict[str, Any]
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
LEAST_BUDGET: Final = 1_024                      # Anthropic's: below it there is no thinking
                                                 # https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking


class Ceiling(msgspec.Struct, frozen=True):
    """``tokens`` 0 and ``effort`` "" are no limit; ``off``: no thinking at all."""
    tokens: int = 0
    effort: str = ""
    off: bool = False


def limited(doc: Json, wire: str, ceiling: Ceiling) -> bool:
    """Make the document ask for no more than that; True where it asked for more."""
    limit = _LIMITS.get(wire)
    return limit is not None and limit(doc, ceiling)


def _effort(bag: Json, name: str, ceiling: Ceiling, nothing: str = "none") -> bool:
    """A word of EFFORTS; words that nobody knows pass, unless there is to be no thinking."""
    said = bag.get(name)
    if not isinstance(said, str):
        return False
    most = nothing if ceiling.off else ceiling.effort
    known = said.lower() in EFFORTS
    if not most or said.lower() == most or (not ceiling.off and (not known or EFFORTS.index(said.lower()) <= EFFORTS.index(most))):
        return False
    bag[name] = most
    return True


def _tokens(bag: Json, name: str, ceiling: Ceiling) -> bool:
    said = bag.get(name)
    if not isinstance(said, int) or isinstance(said, bool):
        return False
    most = 0 if ceiling.off else ceiling.tokens
    if (not most and not ceiling.off) or 0 <= said <= most:
        return False                             # below 0: as much as the model likes
    bag[name] = most
    return True


def _chat(doc: Json, ceiling: Ceiling) -> bool:
    """Also OpenRouter's ``reasoning``, the ``thinking`` of Chinese providers and the switches of vLLM's templates."""
    changed = _effort(doc, "reasoning_effort", ceiling)
    if isinstance(bag := doc.get("reasoning"), dict):
        changed |= _effort(bag, "effort", ceiling) | _tokens(bag, "max_tokens", ceiling)
        if ceiling.off and bag.get("enabled"):
            bag["enabled"], changed = False, True
        if ceiling.off and "max_tokens" in bag:
            doc["reasoning"] = {"enabled": False}
    changed |= _switch(doc, ceiling)
    for holder in (doc, doc.get("chat_template_kwargs")):
        for name in ("enable_thinking", "thinking"):
            if ceiling.off and isinstance(holder, dict) and holder.get(name) is True:
                holder[name], changed = False, True
    return changed


def _switch(doc: Json, ceiling: Ceiling) -> bool:
    """``thinking`` as Anthropic writes it."""
    bag = doc.get("thinking")
    if not isinstance(bag, dict) or bag.get("type") == "disabled":
        return False
    if ceiling.off or 0 < ceiling.tokens < LEAST_BUDGET:
        doc["thinking"] = {"type": "disabled"}
        return True
    return _tokens(bag, "budget_tokens", ceiling)


def _anthropic(doc: Json, ceiling: Ceiling) -> bool:
    changed = _switch(doc, ceiling)
    bag = doc.get("output_config")
    if isinstance(bag, dict) and "effort" in bag:
        if ceiling.off:
            del bag["effort"]
            changed = True
            if not bag:
                del doc["output_config"]
        else:
            changed |= _effort(bag, "effort", ceiling)
    return changed


def _responses(doc: Json, ceiling: Ceiling) -> bool:
    bag = doc.get("reasoning")
    return isinstance(bag, dict) and _effort(bag, "effort", ceiling)


def _gemini(doc: Json, ceiling: Ceiling) -> bool:
    outer = doc.get("generationConfig")
    bag = outer.get("thinkingConfig") if isinstance(outer, dict) else None
    if not isinstance(bag, dict):
        return False
    changed = _tokens(bag, "thinkingBudget", ceiling) | _effort(bag, "thinkingLevel", ceiling, nothing="minimal")
    if ceiling.off and bag.get("includeThoughts"):
        bag["includeThoughts"], changed = False, True
    return changed


def _ollama(doc: Json, ceiling: Ceiling) -> bool:
    if ceiling.off and doc.get("think"):
        doc["think"] = False
        return True
    return not ceiling.off and _effort(doc, "think", ceiling)


_LIMITS: Final[dict[str, Callable[[Json, Ceiling], bool]]] = {
    "openai-chat": _chat, "anthropic": _anthropic, "openai-responses": _responses, "gemini": _gemini, "ollama": _ollama,
}
