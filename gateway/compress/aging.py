"""What remains of a turn of long ago? Its first line, what was wanted and decided, errors and demands, and every value in it.

Turns age in steps of several, so that the part of the prompt that a provider keeps in its cache changes seldom.
"""
import re
from collections.abc import Iterator
from typing import Final

from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.tools import is_read
from gateway.compress.words import kept_whole, values, watch

MIN_CHARS: Final = 400
LEAD: Final = 200
MARK: Final = "[an older turn, shortened]"
_INTENT: Final = re.compile(r"\b(?:I(?:'ll| will| want| need| would)|we (?:need|want|will|decided)|let(?:'s| us)|please|goal|plan|"
                            r"decided|decision|fix(?:ed)?|implement\w*|because|todo|next|summary|conclusion|result)\b", re.IGNORECASE)


def run(talk: Talk) -> Iterator[Edit]:
    for segment in talk.loose():
        if segment.turn < talk.aged and segment.role != "system" and len(segment.text) >= MIN_CHARS \
                and not segment.text.startswith(MARK) and not segment.code and not (segment.result and is_read(segment)):
            text = shortened(segment)
            if 5 * len(text) < 4 * len(segment.text):
                yield Edit(segment, text)


def shortened(segment: Segment) -> str:
    lines = segment.text.split("\n")
    whole = kept_whole(segment.text, lines)
    critical = watch(segment.text)
    out = [MARK]
    lost: list[str] = []
    led = False
    for line, mark in zip(lines, whole, strict=True):
        if mark or critical(line) or _INTENT.search(line):
            out.append(line)
        elif not led and line.strip():
            out.append(line[:LEAD])
            lost.append(line[LEAD - 40:] if len(line) > LEAD else "")
        else:
            lost.append(line)
        led = led or bool(line.strip())
    said = "\n".join(out)
    left = [value for value in values("\n".join(lost)) if value not in said]
    if left:
        out.append("values: " + " ".join(left))
    return "\n".join(out)
