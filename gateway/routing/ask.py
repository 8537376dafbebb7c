"""What does routing want to know of a request besides its size? Its session, its task, its tags: told by the pipeline."""
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

import msgspec

from gateway.routing.traits import CHEAP, FREE, STANDARD

SCAN_CHARS: Final = 8_192

Intent = Literal["code", "math", "reasoning", "creative", "simple", "medium"]
Level = Literal["light", "standard", "heavy", "critical"]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is the newest user message (bounded); ``turns`` the number of messages; ``answered`` says that the history has an
    answer of an assistant. ``session`` "" = none; ``prefix`` names the beginning of the prompt, for caches of prompts."""
    session: str = ""
    prefix: str = ""
    text: str = ""
    chars: int = 0
    turns: int = 0
    tools: int = 0
    max_tokens: int = 0
    effort: str = ""
    answered: bool = False
    tags: frozenset[str] = frozenset()
    tags_all: bool = False
    relay: bool = False                       # the session's last model is wanted: its words are handed over to another one
    intents: "Intents | None" = None          # the operator's words besides ours


NOTHING: Final = Ask()

# In this order; words of several languages, matched at their beginning.
_INTENTS: Final[tuple[tuple[Intent, re.Pattern[str]], ...]] = tuple(
    (cast(Intent, name), re.compile(words, re.IGNORECASE)) for name, words in (
        ("code", r"```|\b(?:def |class \w+[:({]|function\b|refactor|debug|compil|stack ?trace|traceback|unit test|pull request|"
                 r"regex|python|javascript|typescript|rust\b|golang|sql\b|bug\b|api\b|código|programm|fonction|代码|函数|コード)"),
        ("math", r"\b(?:equation|integral|derivative|theorem|proof|prove that|calculate|matrix|probabilit|algebra|ecuación|"
                 r"gleichung|équation)|方程|数学"),
        ("reasoning", r"\b(?:step by step|reason(?:ing)? (?:about|through)|analy[sz]e|compare|trade-?offs?|evaluate|why does|"
                      r"strateg|plan\b|analiza|analysiere|vergleiche|pourquoi)|分析|比较"),
        ("creative", r"\b(?:poem|story|haiku|lyrics|novel|write a song|slogan|fiction|gedicht|poème|poema|cuento)|故事|诗")))
_TASK_OF: Final[dict[str, str]] = {"code": "coding", "math": "analysis", "reasoning": "analysis"}
_SECURITY: Final = re.compile(r"\b(?:vulnerab|exploit|cve-\d|security audit|threat model|authenticat|encrypt|xss\b|injection)",
                              re.IGNORECASE)
_HEAVY: Final = re.compile(r"\b(?:architect|migrat|refactor|rewrite|design a|end-to-end|whole codebase|performance|concurren)",
                           re.IGNORECASE)
_HIGH: Final = frozenset({"high", "xhigh", "max"})


class Intents(msgspec.Struct, frozen=True):
    """Words of the operator that tell what a message is about: patterns by intent."""
    patterns: dict[str, re.Pattern[str]] = {}

    @classmethod
    def of(cls, words: Mapping[str, Sequence[str]]) -> "Intents | None":
        """None without words. Each is matched in any case, at its beginning."""
        found = {name: re.compile("|".join(rf"(?<!\w){re.escape(word)}" for word in some), re.IGNORECASE)
                 for name, some in words.items() if some}
        return cls(found) if found else None


def intent(text: str, own: Intents | None = None) -> Intent:
    """What the newest message is about."""
    head = text[:SCAN_CHARS]
    more = own.patterns if own is not None else {}
    for name, pattern in _INTENTS:
        if pattern.search(head) or (name in more and more[name].search(head)):
            return name
    return "simple" if len(head.split()) < 60 else "medium"


def task(text: str, own: Intents | None = None) -> str:
    """The kind of task that fitness is looked up by."""
    return _TASK_OF.get(intent(text, own), "default") if text else "default"


def level(ask: Ask) -> Level:
    """How heavy is it? By size, tools, effort and words."""
    text, chars, high = ask.text[:SCAN_CHARS], ask.chars, ask.effort in _HIGH
    secure, heavy = bool(_SECURITY.search(text)), bool(_HEAVY.search(text))
    if chars >= 100_000 or ask.max_tokens >= 32_768 or (ask.tools >= 8 and chars >= 16_000) \
            or (secure and (high or ask.tools >= 3 or chars >= 8_000)):
        return "critical"
    signs = (chars >= 24_000) + (ask.turns >= 16) + (ask.tools >= 4) + (ask.max_tokens >= 8_192) + secure \
        + (heavy and chars >= 4_000)
    if chars >= 50_000 or high or signs >= 2:
        return "heavy"
    light = chars <= 2_000 and ask.turns <= 3 and not ask.tools and ask.max_tokens <= 1_500 and not (secure or heavy)
    return "light" if light and ask.effort in ("", "low", "minimal", "none") else "standard"


POWERS: Final[dict[Level, float]] = {"light": 35.0, "standard": 65.0, "heavy": 95.0, "critical": 120.0}
# The least tier that a prompt of this specificity asks for.
_HINTS: Final = ((15, FREE), (50, CHEAP), (100, STANDARD))


def specificity(ask: Ask) -> float:
    """0 (trivial) to 100 (expert): how much a prompt asks of a model."""
    if not ask.text:
        return 0.0
    score = min(ask.chars / 400, 40) + min(ask.tools * 4, 24) + min(ask.turns, 16)
    score += 20 * bool(_HEAVY.search(ask.text[:SCAN_CHARS])) + 15 * bool(_SECURITY.search(ask.text[:SCAN_CHARS]))
    return min(score, 100.0)


def least_tier(score: float, tools: int) -> int:
    tier = next(tier for most, tier in _HINTS if score <= most)
    return max(tier, CHEAP) if tools else tier
