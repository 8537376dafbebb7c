"""What is a model good at, how dear and how quick is it before anybody measured it? Facts of a target, computed once.

Scores of fitness are rough by nature: names of well-known lines first, else what the catalogue knows (it reasons, it calls
tools, its context). They only ever order targets that are all able to serve.
"""
import re
from typing import Final

import msgspec

from gateway.providers.registry import Model, Provider

TASKS: Final = ("coding", "review", "planning", "analysis", "debugging", "documentation", "default")

# (part of a name, fitness for code, fitness for thinking, fitness for the rest). First match wins, so the narrow ones stand first.
_LINES: Final[tuple[tuple[re.Pattern[str], float, float, float], ...]] = tuple(
    (re.compile(pattern), code, think, rest) for pattern, code, think, rest in (
        (r"codex", .98, .88, .80), (r"opus", .96, .97, .95), (r"sonnet", .95, .92, .92), (r"haiku", .78, .72, .78),
        (r"gpt-5.*(?:mini|nano)", .80, .78, .80), (r"gpt-5", .95, .95, .94), (r"\bo[134](?:-|\b)", .95, .96, .85),
        (r"gpt-4o-mini|gpt-4\.1-(?:mini|nano)", .72, .68, .74), (r"gpt-4", .90, .85, .88), (r"gpt-oss-120b", .80, .80, .76),
        (r"gemini.*flash-lite", .68, .66, .72), (r"gemini.*flash", .80, .78, .82), (r"gemini.*pro", .92, .93, .92),
        (r"deepseek.*(?:r1|reason)", .88, .92, .80), (r"deepseek", .88, .85, .84), (r"qwen.*coder", .90, .78, .74),
        (r"qwen|glm|kimi|minimax", .82, .80, .80), (r"grok", .84, .86, .84), (r"mistral-large|devstral", .82, .78, .80),
        (r"llama", .72, .70, .74), (r"mistral|mixtral|gemma|phi", .66, .62, .68)))
_CODE: Final = frozenset({"coding", "review", "debugging"})
_THINK: Final = frozenset({"planning", "analysis"})

# Milliseconds to the first token that a name leads one to expect, until ten answers were measured.
_FIRST_MS: Final[tuple[tuple[re.Pattern[str], float], ...]] = tuple((re.compile(pattern), ms) for pattern, ms in (
    (r"opus", 6000.0), (r"sonnet", 4000.0), (r"gpt-4o-mini", 2764.0), (r"gemini.*flash", 1238.0), (r"deepseek", 2000.0),
    (r"\bo[134](?:-|\b)", 6000.0)))
USUAL_MS: Final = 1500.0
UNPRICED_USD: Final = 1.0

FREE, CHEAP, STANDARD, PREMIUM = range(4)
_TIER_WORTH: Final = (0.0, 0.33, 0.67, 1.0)
_MONTH_S: Final = 2_592_000.0
_RENEWAL_S: Final = 86_400.0                  # most quotas renew by the day
_FLAGSHIP: Final = re.compile(r"opus|gpt-5(?!.*(?:mini|nano))|gemini.*pro|\bo[13]\b|sonnet|large|r1|max|ultra")
_SMALL: Final = re.compile(r"mini|flash|haiku|nano|lite|small|8b|instant")


class Traits(msgspec.Struct, frozen=True, gc=False):
    """``price`` in and ``mix`` (.6 in + .4 out) are US dollars per million tokens, None = unknown; ``cost`` is the mix, or a usual
    one where it is unknown."""
    price: float | None
    mix: float | None
    cost: float
    tier: int
    tier_worth: float
    density: float
    first_ms: float
    fits: dict[str, float]
    power: float
    local: bool

    def fit(self, task: str) -> float:
        return self.fits.get(task) or self.fits["default"]


def traits(provider: Provider, model: Model) -> Traits:
    price = model.price
    mix = None if price is None else 0.6 * price.input + 0.4 * price.output
    tier = CHEAP if mix is None else FREE if mix == 0 else CHEAP if mix < 1 else STANDARD if mix < 6 else PREMIUM
    name = model.id.lower()
    worth = 0.8 * _TIER_WORTH[tier] + 0.2 * max(0.0, 1 - _RENEWAL_S / _MONTH_S)
    return Traits(price=None if price is None else price.input, mix=mix, cost=UNPRICED_USD if mix is None else mix,
                  tier=tier, tier_worth=worth,
                  density=min(max(len(provider.accounts) - 1, 0) / 10, 1.0),
                  first_ms=next((ms for pattern, ms in _FIRST_MS if pattern.search(name)), USUAL_MS),
                  fits=_fits(name, model), power=_power(name, model), local=provider.loopback)


def _fits(name: str, model: Model) -> dict[str, float]:
    found = next((row[1:] for row in _LINES if row[0].search(name)), None)
    if found is None:
        wide = model.tools is True and (model.context or 0) >= 128_000
        known = .92 if model.reasoning else .75 if wide else .6 if model.tools else .5
        found = (known + (.15 if "coder" in name else .10 if "code" in name else 0.0),
                 known + (.10 if "thinking" in name else 0.0), known)
    code, think, rest = (min(each, 1.0) for each in found)
    return {task: code if task in _CODE else think if task in _THINK else rest for task in TASKS}


def _power(name: str, model: Model) -> float:
    """How heavy a task it is made for, 0 to 150."""
    context, output = model.context or 0, model.max_output or 0
    power = 35.0 + 18 * bool(model.reasoning) + 3 * bool(model.vision) + 3 * bool(model.tools)
    power += 22 if context >= 1_000_000 else 15 if context >= 400_000 else 9 if context >= 200_000 else 0
    power -= 10 if 0 < context <= 32_000 else 0
    power += 12 if output >= 128_000 else 8 if output >= 64_000 else -8 if 0 < output <= 8192 else 0
    power += 28 * bool(_FLAGSHIP.search(name)) + 8 * ("coder" in name) - 24 * bool(_SMALL.search(name))
    return min(max(power, 0.0), 150.0)
