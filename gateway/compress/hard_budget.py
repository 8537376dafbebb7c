"""What goes when the prompt must fit? Old lines without a value: of tool results first, then answers, then questions.

The oldest go first, and by a quantity that grows in steps, so that the same lines are missing in the requests that follow.
"""
from collections.abc import Iterator
from typing import Final

from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.tools import is_read
from gateway.compress.words import OMITTED, kept_whole, valued, watch

_LEAST: Final = ("tool", "assistant", "user")


def run(talk: Talk) -> Iterator[Edit]:
    need = talk.need
    for role in _LEAST:
        for segment in talk.loose():
            if need <= 0:
                return
            if segment.role == role and segment.message < talk.settled and not segment.code \
                    and not (segment.result and is_read(segment)):
                text = thinned(segment, need)
                if len(text) < len(segment.text):
                    need -= len(segment.text) - len(text)
                    yield Edit(segment, text)


def thinned(segment: Segment, need: int) -> str:
    """Without lines from its start on, until enough is gone."""
    lines = segment.text.split("\n")
    whole = kept_whole(segment.text, lines)
    critical = watch(segment.text)
    out: list[str] = []
    for line, mark in zip(lines, whole, strict=True):
        if need <= 0 or mark or not line.strip() or line == OMITTED or valued(line) or critical(line):
            out.append(line)
        else:
            need -= len(line) + 1
            if not out or out[-1] != OMITTED:
                out.append(OMITTED)
                need += len(OMITTED) + 1
    return "\n".join(out)
