"""What of a command's output does nobody need? Colours, progress, noise by the filter of that command, rows of the same line.

What becomes of a result depends on it alone, so it becomes the same in every later request. Texts of files are never filtered.
"""
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import orjson

from gateway.compress.filters import MAX_LINE, Example, Filter, Pack
from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.tools import command, is_read, is_shell
from gateway.compress.words import ANSI, kept_whole, valued, watch

MIN_CHARS: Final = 200
MIN_RUN: Final = 3                               # equal lines that are told once
_LOOK: Final = 4_000                             # characters of an output by which it is known
_NOISE: Final = re.compile(r"\[(\d+) lines of no interest left out\]")


def run(talk: Talk) -> Iterator[Edit]:
    if not talk.filters:
        return
    for segment in talk.segments:
        if segment.result and not segment.locked and len(segment.text) >= MIN_CHARS and not is_read(segment):
            found = pick(talk.filters, segment)
            if found is not None and (edit := filtered(found, segment)) is not None and len(edit.text) < len(segment.text):
                yield edit


def pick(filters: Sequence[Filter], segment: Segment) -> Filter | None:
    """By the command; else by what the output looks like, if it does not look like somebody's code."""
    shell = is_shell(segment)
    said = command(segment) if shell else ""
    for one in filters:
        if said and one.commands is not None and one.commands.search(said):
            return one
    sample, code = segment.text[:_LOOK], None
    for one in filters:
        if (one.pack.shell and shell) or (one.outputs is not None and one.outputs.search(sample)):
            code = segment.code if code is None else code
            if not code or one.pack.json:
                return one
    return None


def filtered(one: Filter, segment: Segment) -> Edit | None:
    text, pack = segment.text, one.pack
    if pack.json:
        made = _squeezed(text)
        return Edit(segment, made, canon=orjson.loads) if made else None
    if "\x1b" in text:
        text = ANSI.sub("", text)
    lines = text.split("\n")
    whole = kept_whole(text, lines)
    noise: set[str] = set()
    critical = watch(text)
    lines, whole, n_noise = _quiet(one, lines, whole, noise, critical)
    if pack.collapse:
        lines, whole = _collapsed(lines, whole)
    if (len(lines) > pack.max_lines or sum(map(len, lines)) > pack.max_chars) and not segment.code:
        lines = _cut(lines, whole, pack, critical)
    if n_noise:
        lines.append(f"[{n_noise} lines of no interest left out]")
    return Edit(segment, "\n".join(lines), noise=frozenset(noise))


def _quiet(one: Filter, lines: list[str], whole: list[bool], noise: set[str],
           critical: Callable[[str], bool]) -> tuple[list[str], list[bool], int]:
    """Without noise. Of a line that was written over, what it was in the end."""
    n_noise = 0
    if lines and (before := _NOISE.fullmatch(lines[-1])):       # this was filtered before
        n_noise, lines, whole = int(before[1]), lines[:-1], whole[:-1]
    drop, keep = one.drop, one.keep
    out: list[str] = []
    marks: list[bool] = []
    for line, mark in zip(lines, whole, strict=True):
        if not mark:
            if "\r" in line and not critical(line):
                noise.add(line)
                line = line.rstrip("\r").rpartition("\r")[2]
            if drop is not None and len(line) <= MAX_LINE and drop.search(line) and not (keep is not None and keep.search(line)) \
                    and not critical(line):
                noise.add(line)
                n_noise += 1
                continue
        out.append(line)
        marks.append(mark)
    return out, marks, n_noise


def _collapsed(lines: list[str], whole: list[bool]) -> tuple[list[str], list[bool]]:
    out: list[str] = []
    marks: list[bool] = []
    at = 0
    while at < len(lines):
        line, end = lines[at], at + 1
        while end < len(lines) and lines[end] == line and not whole[end]:
            end += 1
        note = f"[the line above {end - at - 1} more times]"
        if end - at >= MIN_RUN and line.strip() and not whole[at] and len(note) < (end - at - 1) * (len(line) + 1):
            out += (line, note)
            marks += (False, False)
        else:
            out += lines[at:end]
            marks += whole[at:end]
        at = end
    return out, marks


def _cut(lines: list[str], whole: list[bool], pack: Pack, critical: Callable[[str], bool]) -> list[str]:
    """The start, the end, and of the middle whatever holds a value."""
    head, tail = pack.head, pack.tail
    out = lines[:head]
    waiting: list[str] = []

    def settle() -> None:
        note = f"[{len(waiting)} lines left out]"
        out.extend(waiting if sum(map(len, waiting)) + len(waiting) <= len(note) + 1 else [note])
        waiting.clear()

    end = max(head, len(lines) - tail)
    for line, mark in zip(lines[head:end], whole[head:end], strict=True):
        if mark or valued(line) or critical(line):
            if waiting:
                settle()
            out.append(line)
        else:
            waiting.append(line)
    if waiting:
        settle()
    return out + lines[end:]


def _squeezed(text: str) -> str:
    """JSON without the white space between its values; nothing for what is no JSON."""
    try:
        raw = text.encode()
        orjson.loads(raw)
        return msgspec.json.format(raw, indent=-1).decode()
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ""


# ---------------------------------------------------------------- the tests that packs bring
def failures(one: Filter) -> Iterator[tuple[int, str]]:
    """(index, what came out) of every test of a filter that fails."""
    for index, example in enumerate(one.pack.tests):
        made = tried(one, example)
        if made != example.output.strip("\n"):
            yield index, made


def tried(one: Filter, example: Example) -> str:
    text = example.input.strip("\n")
    edit = filtered(one, Segment((), 0, "tool", text, "bash"))
    return edit.text if edit is not None else text
