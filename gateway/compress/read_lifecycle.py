"""Which file was read again, or written, after this reading? Of the old reading, only what the new text does not say is kept.

Done in steps, for older messages only: it changes what was sent before, which costs a provider's cached prefix.
"""
from collections.abc import Iterator
from typing import Final

from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.tools import arguments, file_read, file_written, texts
from gateway.compress.words import NUMBERED

MIN_CHARS: Final = 160
MARK: Final = "[an earlier reading of this file; "
ALL: Final = MARK + "its lines stand in a later one]"
REST: Final = MARK + "its other lines stand in a later one]"


def run(talk: Talk) -> Iterator[Edit]:
    old = [s for s in talk.segments if s.message < talk.settled and s.result]
    later: dict[str, tuple[Segment, str]] = {}
    for segment in reversed(old):
        if path := file_written(segment):
            later[path] = segment, texts(arguments(segment))
        elif path := file_read(segment):
            if path in later and not (segment.locked or segment.pinned or segment.held) and len(segment.text) >= MIN_CHARS:
                newer, said = later[path]
                edit = replaced(segment, newer, said)
                if edit is not None:
                    yield edit
                    continue
            if path != "?" and not segment.text.startswith(MARK):
                later[path] = segment, segment.text


def replaced(segment: Segment, newer: Segment, said: str) -> Edit | None:
    """None where the new text does not say enough of it."""
    known = set(said.split("\n"))
    known |= {NUMBERED.sub("", line) for line in known}
    rest = [line for line in segment.text.split("\n") if line.strip() and line not in known and NUMBERED.sub("", line) not in known]
    text = "\n".join([REST, *rest]) if rest else ALL
    return Edit(segment, text, sources=(said,), holds=(newer,), numbered=True) if 5 * len(text) < 4 * len(segment.text) else None
