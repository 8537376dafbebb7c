"""Which sentences of a long past have nothing to do with the question? What shares no word with it and holds no value is left out.

Only where the older prose is long, only in the messages that are longer than their share, and never in code.
"""
import re
from collections.abc import Iterator
from typing import Final

from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.words import CJK, OMITTED, SENTENCES, kept_whole, valued, watch

MIN_CHARS: Final = 18_000
_WORD: Final = re.compile(r"\w{4,}")


def run(talk: Talk) -> Iterator[Edit]:
    last = max((s.message for s in talk.segments if s.role == "user"), default=-1)
    old = [s for s in talk.loose() if s.role in ("user", "assistant") and s.message < last]
    if sum(len(s.text) for s in old) <= MIN_CHARS:
        return
    question = set(_WORD.findall(" ".join(s.text for s in talk.segments if s.message == last and s.role == "user").lower()))
    if not question:
        return
    share = MIN_CHARS // len(old)
    for segment in old:
        if len(segment.text) > share and not CJK.search(segment.text) and not segment.code:
            text = related(segment, question)
            if len(text) < len(segment.text):
                yield Edit(segment, text)


def related(segment: Segment, question: set[str]) -> str:
    lines = segment.text.split("\n")
    whole = kept_whole(segment.text, lines)
    critical = watch(segment.text)
    out: list[str] = []
    for line, mark in zip(lines, whole, strict=True):
        if mark or not line.strip():
            out.append(line)
            continue
        said: list[str] = []
        for sentence in SENTENCES.split(line):
            if OMITTED in sentence or valued(sentence) or critical(sentence) \
                    or not question.isdisjoint(_WORD.findall(sentence.lower())):
                said.append(sentence)
            elif not said or said[-1] != OMITTED:
                said.append(OMITTED)
        if said != [OMITTED] or not out or out[-1] != OMITTED:
            out.append(" ".join(said))
    return "\n".join(out)
