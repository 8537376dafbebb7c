"""Does a text try to turn a model against its instructions? Phrases with a severity, looked for in what nobody vouches for.

Heuristics: they find what is written without care, not what is written to get round them. A text is folded first (width, case,
invisible signs, runs of blanks), then looked at in short pieces, so that no expression has much to go back over.
"""
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

import msgspec

MAX_CHARS: Final = 16_384                        # of each text
PIECE, OVERLAP = 1_024, 256
MAX_PATTERNS: Final = 50
MAX_PATTERN: Final = 300
MAX_OPEN: Final = 2                              # repetitions without an end in one expression
OWN_S: Final = 0.05                              # what the operator's own expressions may take for one request
SEVERITIES: Final = ("low", "medium", "high")

_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{4,}")           # letters that nobody sees and models read
_OLD: Final = r"(?:previous|prior|above|earlier|preceding|foregoing|your|the|these|those|existing|original|system)"
_RULES: Final = r"(?:instructions?|prompts?|rules|directives?|guidelines|guardrails|orders|context)"
_DROP: Final = r"(?:ignore|disregard|forget|bypass|override|overlook|do not follow|don't follow|stop following)"

# severity, what it is called, the expression
PATTERNS: Final[tuple[tuple[str, str, str], ...]] = (
    ("high", "override", rf"\b{_DROP} (?:all |any |every |everything )?(?:of )?(?:{_OLD} ){{1,3}}{_RULES}\b"),
    ("high", "override", rf"\b{_DROP} (?:everything|anything|all) (?:that )?(?:above|before|said|prior)\b"),
    ("high", "override", r"\b(?:ignoriere|vergiss|missachte) (?:bitte )?alle (?:vorherigen|bisherigen|obigen) "
                         r"(?:anweisungen|regeln|befehle)\b"),
    ("high", "override", r"\b(?:ignore[sz]?|oublie[sz]?) (?:toutes )?les (?:instructions|consignes|règles) "
                         r"(?:précédentes|antérieures)\b"),
    ("high", "override", r"\b(?:ignora|olvida) (?:todas )?las (?:instrucciones|reglas) (?:anteriores|previas)\b"),
    ("high", "false turn", r"<\|(?:im_start|im_end|system|start_header_id|eot_id|endoftext)\|>|\[/?inst\]|<</?sys>>"),
    ("high", "exfiltration", r"\b(?:send|post|upload|forward|exfiltrate|leak|transmit) .{0,60}"
                             r"(?:api keys?|passwords?|credentials|secrets?|tokens?|private keys?|environment variables|\.env)\b"
                             r".{0,60}(?:https?:|\bto )"),
    ("high", "jailbreak", r"\byou (?:are|will act as|must act as) (?:now )?(?:dan\b|in (?:developer|god|jailbreak|unrestricted) mode"
                          r"|unrestricted|jailbroken|free (?:of|from) (?:all |any )?(?:rules|restrictions))"),
    ("medium", "prompt", r"\b(?:reveal|print|show|repeat|output|display|tell me|give me) (?:\w+ ){0,3}"
                         r"(?:system|initial|hidden|original) (?:prompt|instructions?|message)\b"),
    ("medium", "concealment", r"\b(?:do not|don't|never) (?:tell|inform|mention|reveal|show|alert) (?:\w+ ){0,3}"
                              r"(?:user|human|operator|developer)\b"),
    ("medium", "new orders", r"\b(?:new|updated|revised|real|actual) (?:system )?(?:instructions?|prompt|directives?|task) ?:"),
    ("medium", "false turn", r"(?:^|\n) ?#{0,3} ?(?:system|assistant|developer) ?(?:message|prompt)? ?:"),
    ("medium", "jailbreak", r"\b(?:act|respond|answer|behave|pretend) (?:\w+ ){0,4}(?:no|without|with no|free of) (?:\w+ ){0,2}"
                            r"(?:restrictions?|limits|limitations|filters?|censorship|guidelines|ethics)\b"),
    ("low", "jailbreak", r"\bjail ?break(?:ing|ed)?\b|\bdo anything now\b"),
    ("low", "hidden orders", r"\bdecode (?:\w+ ){0,4}(?:base64|rot13|hex) (?:\w+ ){0,4}(?:follow|execute|obey|do|run)\b"),
    ("low", "role", r"\bfrom now on,? you (?:are|will|must)\b"),
)


class Finding(msgspec.Struct, frozen=True):
    severity: str
    name: str


class Watch:
    """Compiled: what counts from a severity on, and the operator's own expressions, each of them high."""
    __slots__ = ("_all", "_own", "_ranked", "_tags")

    def __init__(self, least: str = "medium", own: Sequence[str] = ()) -> None:
        counted = [row for row in PATTERNS if SEVERITIES.index(row[0]) >= SEVERITIES.index(least)]
        self._ranked = [(Finding(severity, name), re.compile(pattern)) for severity, name, pattern in counted]
        self._all = re.compile("|".join(f"(?:{pattern})" for _, _, pattern in counted))
        self._own = [re.compile(pattern, re.IGNORECASE) for pattern in own]

    def found(self, texts: Iterable[str]) -> tuple[Finding, int] | None:
        """The worst of it, and in how many texts there was any."""
        worst: Finding | None = None
        n, left_s = 0, OWN_S
        for text in texts:
            finding, took_s = self._look(text[:MAX_CHARS], left_s)
            left_s -= took_s
            if finding is not None:
                n += 1
                if worst is None or SEVERITIES.index(finding.severity) > SEVERITIES.index(worst.severity):
                    worst = finding
        return (worst, n) if worst is not None else None

    def _look(self, text: str, left_s: float) -> tuple[Finding | None, float]:
        if _TAGS.search(text):
            return Finding("high", "hidden text"), 0.0
        folded = fold(text)
        if self._all.search(folded):
            rows = [finding for finding, pattern in self._ranked if pattern.search(folded)]
            return max(rows, key=lambda finding: SEVERITIES.index(finding.severity)), 0.0
        if not self._own:
            return None, 0.0
        began = time.perf_counter()
        for piece in pieces(text):
            if time.perf_counter() - began > left_s:
                break
            if any(pattern.search(piece) for pattern in self._own):
                return Finding("high", "own pattern"), time.perf_counter() - began
        return None, time.perf_counter() - began


def fold(text: str) -> str:
    """As a reader sees it, in small letters; line ends stay, since they begin false turns."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return re.sub(r"[^\S\n]+", " ", text.lower().replace("\u2019", "'"))


def pieces(text: str) -> Iterator[str]:
    """What an expression of unknown cost is tried on."""
    for start in range(0, max(len(text) - OVERLAP, 1), PIECE - OVERLAP):
        yield text[start:start + PIECE]


# ---------------------------------------------------------------- expressions of the operator's
def wrong(pattern: str) -> str:
    """Why an expression is not taken; "" = it is."""
    if not pattern or len(pattern) > MAX_PATTERN:
        return f"must have 1 to {MAX_PATTERN} characters"
    try:
        re.compile(pattern, re.IGNORECASE)
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    n_open = _open(tree)
    if n_open < 0:
        return "repeats a repetition, which may take for ever"
    if n_open > MAX_OPEN:
        return f"has more than {MAX_OPEN} repetitions without an end, which may take very long"
    return "" if re.compile(pattern, re.IGNORECASE).search("") is None else "matches everything"


def _open(tree: Any, inside: bool = False) -> int:
    """How many repetitions without a small end it has; -1: one inside of another, or a choice inside of one."""
    total = 0
    for op, args in tree:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = args
            varies = high > low and high > 4
            if inside and varies:
                return -1
            below = _open(body, inside or varies)
            total += varies and high > 64
        elif name == "BRANCH":
            if inside:
                return -1
            counts = [_open(one, inside) for one in args[1]]
            below = -1 if min(counts) < 0 else max(counts)
        else:
            below = sum_of(args, inside)
        if below < 0:
            return -1
        total += below
    return total


def sum_of(args: Any, inside: bool) -> int:
    """Of whatever groups an operation holds."""
    total = 0
    for one in args if isinstance(args, (tuple, list)) else ():
        if isinstance(one, parser.SubPattern):
            below = _open(one, inside)
            if below < 0:
                return -1
            total += below
    return total
