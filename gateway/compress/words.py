"""What in a text may not be lost? Numbers, names, code, diff hunks, errors and what was demanded: told by patterns.

Patterns are cheap on purpose and rather see too much than too little: what they see stays.
"""
import re
from collections.abc import Callable, Iterator
from typing import Final

NUMBER: Final = re.compile(r"\d+(?:\.\d+)*")
KEY: Final = re.compile(r'"[^"\\\n]{1,80}"(?=\s*:)')
PLACE: Final = re.compile(r"https?://[^\s\"'<>`)\]}]+|(?<![\w/])[\w.@~-]*(?:/[\w.@~%+-]+)+|\b[A-Za-z]:\\[^\s\"'<>|]+")
INLINE: Final = re.compile(r"`[^`\n]+`")
ASSIGNED: Final = re.compile(r"\b[A-Za-z_][\w.-]*=[^\s,;]+")
ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
NUMBERED: Final = re.compile(r"^\s*\d+(?:\t|→|\||: )")
SENTENCES: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(\"'\[])")
CJK: Final = re.compile("[⺀-鿿가-힯豈-﫿]")

_ERROR: Final = (r"\b(?:errors?|exceptions?|fail(?:ed|ure|ures|s|ing)?|fatal|panic(?:ked)?|traceback|warn(?:ing|ings)?|denied|refused|"
                 r"time[ds]? ?out|abort(?:ed)?|crash(?:ed)?|segfault|killed|invalid|cannot|can't|could not|unable|undefined|"
                 r"not found|no such|missing|assert\w*|unexpected|conflicts?)\b|\w(?:Error|Exception|Warning)\b")
_DEMAND: Final = (r"\b(?:must|never|always|do not|don't|dont|requir(?:e|es|ed|ement|ements)|should|shall|only|except|unless|forbidden|"
                  r"security|secrets?|important|ensure|mandatory|not allowed|avoid|exactly|at (?:most|least))\b")
CRITICAL: Final = re.compile(f"{_ERROR}|{_DEMAND}", re.IGNORECASE)
# Without one of these in it, a text has nothing critical: looked for with `in`, which is quicker than any pattern.
_STEMS: Final = ("error", "exception", "fail", "fatal", "panic", "traceback", "warn", "denied", "refused", "time", "abort", "crash",
                 "segfault", "killed", "invalid", "can", "could", "unable", "undefined", "not", "no such", "missing", "assert",
                 "unexpected", "conflict", "must", "never", "always", "dont", "requir", "shall", "should", "only", "except", "unless",
                 "forbidden", "secur", "secret", "important", "ensure", "mandatory", "avoid", "exactly", "at most", "at least",
                 "don't")
# A value of any kind.
_VALUE: Final = re.compile(r"\d|://|[\w.~-]/[\w.~-]|`|\"\s*:|\w=\S|\\\w|^\s*at ")
_CODE_ENDS: Final = (";", "{", "}", "[", "(", ",", ":")
_CODE_STARTS: Final = re.compile(r"\s*(?:(?:def|class|import|from|return|if|for|while|else|elif|try|func|fn|let|const|var|public|"
                                 r"private|static|package|use|impl)\b|#include|//|/\*|\*\s|@\w|</?[a-zA-Z])")
_HUNK: Final = re.compile(r"@@ .*?@@|@@$")
_SAMPLE: Final = 32                              # lines of a text that tell whether it is code
FENCES: Final = ("```", "~~~")
OMITTED: Final = "[…left out…]"


def watch(text: str) -> Callable[[str], bool]:
    """Which lines of this text are errors or demands?"""
    low = text.lower()
    stems = [stem for stem in _STEMS if stem in low]

    def critical(line: str) -> bool:
        low = line.lower()
        for stem in stems:
            if stem in low:
                return CRITICAL.search(line) is not None
        return False
    return critical if stems else _never


def _never(line: str) -> bool:
    return False


def valued(line: str) -> bool:
    """Does it hold a value of any kind?"""
    return _VALUE.search(line) is not None


def codelike(text: str) -> bool:
    """Does this look like source text, code blocks aside?"""
    lines = text.split("\n", _SAMPLE)[:_SAMPLE]
    if any(fence in text for fence in FENCES):
        lines = [line for line, code in zip(lines, fenced(lines), strict=True) if not code]
    lines = [line for line in lines if line.strip()]
    return len(lines) >= 3 and sum([
        line.rstrip().endswith(_CODE_ENDS) or _CODE_STARTS.match(line) is not None for line in lines]) * 10 >= len(lines) * 4


def fenced(lines: list[str]) -> list[bool]:
    """Which lines lie in a code block, its fences included? A block that is not closed goes to the end."""
    found = [False] * len(lines)
    fence, start = "", 0
    for at in [at for at, line in enumerate(lines) if "```" in line or "~~~" in line]:
        line = lines[at]
        head = line.lstrip()[:3]
        if fence:
            if head == fence:
                found[start:at + 1] = [True] * (at + 1 - start)
                fence = ""
        elif head == "```" or (head == "~~~" and not line.startswith("    ")):      # further in it underlines something
            fence, start = head, at
    if fence:
        found[start:] = [True] * (len(lines) - start)
    return found


def hunks(lines: list[str]) -> list[bool]:
    """Which lines lie in a hunk of a diff?"""
    inside = False
    found = []
    for line in lines:
        if line.startswith("@@") and _HUNK.match(line):
            inside = True
        elif inside and line and line[0] not in " +-\\":
            inside = False
        found.append(inside)
    return found


def kept_whole(text: str, lines: list[str]) -> list[bool]:
    """Which lines may not be touched one by one: code blocks and hunks."""
    none = [False] * len(lines)
    code = fenced(lines) if any(fence in text for fence in FENCES) else none
    diff = hunks(lines) if "@@" in text else none
    return [a or b for a, b in zip(code, diff, strict=True)]


def blocks(lines: list[str], inside: list[bool]) -> Iterator[str]:
    """The runs of lines that ``inside`` marks."""
    start = None
    for at, mark in enumerate([*inside, False]):
        if mark and start is None:
            start = at
        elif not mark and start is not None:
            yield "\n".join(lines[start:at])
            start = None


def values(text: str) -> list[str]:
    """The values that a text holds, in their order, each once."""
    found: dict[str, None] = {}
    for pattern in (PLACE, KEY, ASSIGNED, INLINE):
        found |= dict.fromkeys(pattern.findall(text))
    said = set(NUMBER.findall(" ".join(found)))
    found |= dict.fromkeys(number for number in NUMBER.findall(text) if number not in said)
    return list(found)
