"""Which white space says nothing? Blanks at the ends of lines and rows of empty lines in prose; and a system message told twice.

What a user wrote went out as it was when it was new, so it stays so: the provider's cache holds it.
"""
from collections.abc import Iterator
from typing import Final

from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.tools import is_read
from gateway.compress.words import FENCES, kept_whole

AGAIN: Final = "[the same system message as before]"


def run(talk: Talk) -> Iterator[Edit]:
    systems: dict[str, Segment] = {}
    for segment in talk.segments:
        if segment.role == "system":
            first = systems.setdefault(segment.text, segment)
            if first is not segment and len(segment.text) > len(AGAIN):
                yield Edit(segment, AGAIN, sources=(first.text,), holds=(first,))
        elif segment.role != "user" and not segment.locked:
            text = tidy(segment)
            if len(text) < len(segment.text):
                yield Edit(segment, text)


def tidy(segment: Segment) -> str:
    text = segment.text
    if " \n" not in text and "\t\n" not in text and "\n\n\n" not in text:
        return text
    if segment.result and (is_read(segment) or segment.code):
        return text
    lines = text.split("\n")
    whole = kept_whole(text, lines) if "@@" in text or any(fence in text for fence in FENCES) else None
    out: list[str] = []
    for at, line in enumerate(lines):
        if whole is not None and whole[at]:
            out.append(line)
            continue
        line = line.rstrip(" \t")
        if line or not out or out[-1]:
            out.append(line)
    return "\n".join(out)
