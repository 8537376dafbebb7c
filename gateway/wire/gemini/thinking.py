"""How much may a Gemini model think? Effort and budgets in the terms of its family.

Gemini 2.5 takes a number of tokens, part of ``maxOutputTokens``; Gemini 3 takes a level. Thoughts are only shown when asked for.
https://ai.google.dev/gemini-api/docs/thinking
"""
import re
from typing import Final

from gateway.core.request import Conversation, Thought
from gateway.wire.base import Outbound
from gateway.wire.gemini.schema import Json

_VERSION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_NEVER: Final = re.compile(r"gemma|gemini-(?:1|2\.0)(?![\d])|embedding|imagen", re.I)

BUDGETS: Final = {"minimal": 512, "low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 32_768}
LEVELS: Final = {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
_MOST: Final = 24_576                            # of the flash models; pro allows more
_MOST_PRO: Final = 32_768
_LEAST_PRO: Final = 128                          # pro cannot be told not to think
_LEAST_LITE: Final = 512


def generation(model: str) -> int:
    """The major version; names without one are the newest."""
    found = _VERSION.search(model)
    if found is not None:
        return int(found[1])
    return 3 if re.search(r"gemini-(?:pro|flash|flash-lite)-latest", model) else 0


def config(talk: Conversation, to: Outbound) -> Json:
    """``thinkingConfig``, or {} where nothing was asked or the model cannot think."""
    thought = talk.thought
    if thought is None or _NEVER.search(to.model):
        return {}
    if generation(to.model) >= 3:
        out: Json = {"thinkingLevel": level} if (level := _level(thought, to.model)) else {}
    else:
        budget = _budget(thought, to.model, talk.sampling.max_tokens)
        out = {"thinkingBudget": budget} if budget is not None else {}
    if thought.include is not False and thought.effort != "none" and thought.budget_tokens != 0:
        out["includeThoughts"] = True
    return out


def _level(thought: Thought, model: str) -> str:
    if thought.effort is not None:
        level = LEVELS.get(thought.effort, "high")
    elif thought.budget_tokens is None or thought.budget_tokens < 0:
        return ""
    else:
        level = "minimal" if not thought.budget_tokens else "low" if thought.budget_tokens <= 4_096 else \
            "medium" if thought.budget_tokens <= 16_384 else "high"
    if "pro" in model:
        if level == "minimal":
            return "low"
        if level == "medium" and "gemini-3-pro" in model:
            return "high"                        # the first of them knew two levels only
    return level


def _budget(thought: Thought, model: str, limit: int | None) -> int | None:
    """Tokens; -1 is as many as the model likes."""
    pro, lite = "pro" in model, "lite" in model
    if thought.effort == "none" or thought.budget_tokens == 0:
        return _LEAST_PRO if pro else 0
    budget = thought.budget_tokens if thought.budget_tokens is not None else BUDGETS.get(thought.effort or "")
    if budget is None or budget < 0:
        return budget
    if limit is not None and budget >= limit:
        budget = limit // 2                      # the answer must find room too
    return min(max(budget, _LEAST_PRO if pro else _LEAST_LITE if lite else 1), _MOST_PRO if pro else _MOST)
