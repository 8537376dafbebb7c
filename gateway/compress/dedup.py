"""What was said before, word for word? A block that stands earlier in the conversation is told by its first words.

Only backwards: what a segment becomes depends on those before it, so a growing conversation keeps its beginning to the byte.
File texts and code are repeated whole or not at all; a reader must not have to put code together.
"""
from collections.abc import Iterator
from typing import Final

from gateway.compress.segment import MAX_CHARS, Edit, Segment, Talk
from gateway.compress.tools import is_read
from gateway.compress.words import FENCES, kept_whole

MIN_CHARS: Final = 80
MIN_LINES: Final = 3
PREVIEW: Final = 60
MARK: Final = "[repeated from earlier in this conversation: "


def run(talk: Talk) -> Iterator[Edit]:
    wholes: dict[str, Segment] = {}
    known: dict[str, Segment] = {}
    for segment in talk.segments:
        text = segment.text
        if not _long(text) or len(text) > MAX_CHARS:
            continue
        fixed = segment.locked or segment.role in ("system", "user")
        first = wholes.setdefault(text, segment)
        if first is not segment and not fixed and first.message != segment.message:
            if len(note := reference(text)) < len(text):
                yield Edit(segment, note, sources=(text,), holds=(first,))
        elif first is segment:
            edit = _blocks(segment, known, fixed)
            if edit is not None and not (segment.result and (is_read(segment) or segment.code)):
                yield edit


def _blocks(segment: Segment, known: dict[str, Segment], fixed: bool) -> Edit | None:
    """The segment with blocks replaced that stand in an earlier one; its own are known from now on."""
    out: list[str] = []
    found: dict[str, Segment] = {}
    for block in _parts(segment.text):
        if _long(block):
            first = known.setdefault(block, segment)
            if first is not segment and not fixed:
                note = reference(block)
                if len(note) < len(block):
                    found[block] = first
                    out.append(note)
                    continue
        out.append(block)
    if not found:
        return None
    return Edit(segment, "\n\n".join(out), sources=tuple(found), holds=tuple(dict.fromkeys(found.values())))


def _parts(text: str) -> list[str]:
    """Split at empty lines; code blocks and hunks are not cut."""
    parts = text.split("\n\n")
    if "@@" not in text and not any(fence in text for fence in FENCES):
        return parts
    lines = text.split("\n")
    whole = kept_whole(text, lines)
    out: list[str] = []
    at = 0
    for part in parts:
        if out and at - 1 < len(whole) and whole[at - 1]:
            out[-1] += "\n\n" + part
        else:
            out.append(part)
        at += part.count("\n") + 2
    return out


def _long(block: str) -> bool:
    return len(block) >= MIN_CHARS and block.count("\n") >= MIN_LINES - 1


def reference(block: str) -> str:
    head = " ".join(block[:4 * PREVIEW].split())[:PREVIEW].replace("`", "'")
    return f"{MARK}{head}…]"
