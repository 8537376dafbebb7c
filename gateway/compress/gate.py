"""Does an edit say less than what it replaces? Then it is discarded; the reason is counted.

What is compared are the lines that are gone: all that matters in them must stand in the new text, or in the very text elsewhere in
the conversation that the edit names as its source. Lines that a filter declares to be noise may lose their numbers and names, but
an error or a demand is never noise.
"""
import re
from collections.abc import Callable
from typing import Any, Final

from gateway.compress import words
from gateway.compress.segment import Edit

SMALLER, NOTATION, CODE, HUNK, WORDS, NUMBERS, NAMES = (
    "not smaller", "not reversible", "code", "diff hunk", "error or demand", "number", "name")
# (reason, what) of tokens that are looked up as they stand
TOKENS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (NAMES, words.KEY), (NAMES, words.PLACE), (CODE, words.INLINE), (NAMES, words.ASSIGNED))


def verdict(edit: Edit) -> str:
    """Why it is discarded; nothing if it may stay."""
    before, after = edit.segment.text, edit.text
    if len(after) >= len(before) or not after.strip():
        return SMALLER
    if edit.canon is not None:
        return "" if _same(edit.canon, before, after) else NOTATION
    if "\x1b" in before:
        before = words.ANSI.sub("", before)
    whole = "\n".join((after, *edit.sources))
    lines = before.split("\n")
    if reason := _blocks(before, lines, whole):
        return reason
    kept = set(whole.split("\n"))
    if edit.numbered:
        kept |= {words.NUMBERED.sub("", line) for line in kept}
        lines = [line if line in kept else words.NUMBERED.sub("", line) for line in lines]
    lost = [line for line in lines if line not in kept and line.strip()]
    return _lines(lost, whole, edit) if lost else ""


def _same(canon: Callable[[str], Any], before: str, after: str) -> bool:
    try:
        return bool(canon(before) == canon(after))
    except ValueError:
        return False


def _blocks(before: str, lines: list[str], whole: str) -> str:
    """Code words.blocks and words.hunks are there as they were."""
    if any(fence in before for fence in words.FENCES):
        if not all(block in whole for block in words.blocks(lines, words.fenced(lines))):
            return CODE
    if "@@" in before and not all(block in whole for block in words.blocks(lines, words.hunks(lines))):
        return HUNK
    return ""


def _lines(lost: list[str], whole: str, edit: Edit) -> str:
    """What these lines held is held elsewhere."""
    critical = words.watch("\n".join(lost))
    for line in lost:
        if critical(line) and any(critical(said) and said.strip() not in whole for said in words.SENTENCES.split(line)):
            return WORDS
    plain = [line for line in lost if line not in edit.noise] if edit.noise else lost
    if not plain:
        return ""
    text = "\n".join(plain)
    numbers = set(words.NUMBER.findall(text))
    if numbers and not numbers <= set(words.NUMBER.findall(whole)):
        return NUMBERS
    for reason, pattern in TOKENS:
        if any(token not in whole for token in set(pattern.findall(text))):
            return reason
    return CODE if edit.segment.code else ""
