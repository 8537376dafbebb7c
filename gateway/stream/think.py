"""Which text of an answer is thinking? Only a ``<think>`` that opens it (spec/streaming 1.10).

The splitter sees the text events of one choice from the start. It holds an event only while everything so far is
blank or a prefix of the tag, gives it back untouched (raw frame included) once it can be no tag, and is ``over`` from
then on, so that a turn pays for it only at its first words. Between the tags text becomes Reasoning with at most
seven characters held (a prefix of the closing tag); blank text after the closing tag is dropped; everything later is
verbatim, tags included.
"""
from typing import Final

from gateway.core.events import Event, Reasoning, Text

OPEN: Final = "<think>"
CLOSE: Final = "</think>"
MAX_LEADING: Final = 512


def _partial(text: str) -> int:
    """Length of the longest suffix that could still become the closing tag."""
    at = text.rfind("<", max(0, len(text) - len(CLOSE) + 1))
    return len(text) - at if at >= 0 and CLOSE.startswith(text[at:]) else 0


class Think:
    """The splitter of one choice; ``over`` when it has nothing more to say, ``found`` when there was a tag."""

    __slots__ = ("over", "found", "_closed", "_held", "_text", "_choice")

    def __init__(self, choice: int = 0) -> None:
        self.over = False
        self.found = False
        self._closed = False
        self._held: list[Text] = []
        self._text = ""
        self._choice = choice

    def unasked(self, text: str) -> bool:
        """Is this the beginning, and visible text that can be no tag?"""
        return not self.found and not self._held and bool(text) and text[0] != OPEN[0] and not text[0].isspace()

    @property
    def n_held(self) -> int:
        return len(self._text)

    def feed(self, event: Text) -> list[Event]:
        if self.over or not event.text:
            return [event]
        if not self.found:
            return self._opening(event)
        return self._after(event.text, event) if self._closed else self._inside(event.text)

    def close(self) -> list[Event]:
        """The text is over: a tag that never closed was thinking, one that never completed was text."""
        held, text = self._held, self._text
        self.over, self._held, self._text = True, [], ""
        if self.found and text:
            return [Reasoning(text, choice=self._choice)]
        return list(held)

    def _opening(self, event: Text) -> list[Event]:
        text = self._text + event.text
        body = text.lstrip()
        n_blank = len(text) - len(body)
        if n_blank <= MAX_LEADING:
            if body.startswith(OPEN):
                self.found, self._held, self._text = True, [], ""
                return self._inside(body[len(OPEN):])
            if OPEN.startswith(body):
                self._held.append(event)
                self._text = text
                return []
        out: list[Event] = [*self._held, event]
        self.over, self._held, self._text = True, [], ""
        return out

    def _inside(self, text: str) -> list[Event]:
        text = self._text + text
        at = text.find(CLOSE)
        if at < 0:
            cut = len(text) - _partial(text)
            self._text = text[cut:]
            return [Reasoning(text[:cut], choice=self._choice)] if cut else []
        self._closed, self._text = True, ""
        thought: list[Event] = [Reasoning(text[:at], choice=self._choice)] if at else []
        return thought + self._after(text[at + len(CLOSE):], None)

    def _after(self, text: str, event: Text | None) -> list[Event]:
        body = text.lstrip()
        if not body:
            return []
        self.over = True
        if event is not None and len(body) == len(text):
            return [event]
        return [Text(body, choice=self._choice)]
