"""How does one model's text go on where another one's broke off? What comes is compared with what was sent, then joined to it.

Three ways of going on are understood: from the very next character (a prefilled answer), after repeating the end of what was sent
(what an instruction asks for, so that the joint is certain), and after repeating all of it. What repeats is cut off: the longest end
of what was sent with which the new text begins, whereby blanks count as blanks, however many. Until that is decided the new text is
held; it never is longer than what was sent and a few words.

Who begins anew, or begins to talk about going on, does not go on: ``Strayed``.
"""
import re
from typing import Final

ANCHOR_CHARS: Final = 60                             # of the end that a model is asked to repeat
LEAST: Final = 12                                    # characters of a repetition that nobody asked for; less may be chance
LOOK_CHARS: Final = 48                               # of a beginning, before it is believed to go on
WORDS: Final = 3                                     # the same ones at the beginning of both: it begins anew
MOST_LOOKS: Final = 1_000                            # at places where a repetition may begin: a text of one letter has very many
MAX_SENT: Final = 131_072                            # characters of a text that can be gone on with
_BLANKS: Final = re.compile(r"\s+")
_ABOUT: Final = re.compile(
    r"(?:i['’]?m|i am|we['’]re|we are) (?:so |very |really )?sorry|sorry\b|(?:i|we) apologi[sz]e|(?:my |our )?apologies|"
    r"i (?:cannot|can['’]t|can not|am unable|will continue)|as an ai\b|"
    r"(?:sure|certainly|of course|okay|ok|absolutely)[,.!:]|"
    r"here(?:['’]s| is) (?:the|a|my) (?:continu|rest|remain|complete|full|answer)|"
    r"continuing (?:from|where|the)|(?:let me|to|i['’]ll) (?:continue|start over|restart|pick up)|it (?:seems|looks like) ", re.I)


class Strayed(Exception):
    """It does not go on with the text."""


def anchor(sent: str) -> str:
    """The end of a text that is to be repeated: whole words, as many as are certain to be found again."""
    text = sent.rstrip()
    if len(text) <= ANCHOR_CHARS:
        return text.lstrip()
    end = text[-ANCHOR_CHARS:]
    blank = _BLANKS.search(end)
    return end[blank.end():] if blank is not None and blank.end() < len(end) // 2 else end


def squeezed(text: str) -> str:
    """Every run of blanks as one."""
    return _BLANKS.sub(" ", text)


class Joint:
    """The place where two texts meet. ``asked``: the model was told to repeat the end; else it was given the text to go on with.
    ``bare``: that text was given without the blanks at its end."""

    __slots__ = ("_asked", "_bare", "_blanks", "_decided", "_held", "_least", "_look_at", "_sent")

    def __init__(self, sent: str, *, asked: bool, bare: bool = False) -> None:
        body = sent.rstrip()
        self._blanks = sent[len(body):]
        self._sent = squeezed(body).lstrip()
        self._asked = asked
        self._bare = bare
        self._least = min(LEAST, len(squeezed(anchor(sent)))) if asked else max(LEAST, len(self._sent))
        self._held = ""
        self._look_at = 0                            # so long a repetition is looked at again: each look reads all of it
        self._decided = False

    @property
    def decided(self) -> bool:
        return self._decided

    def feed(self, text: str) -> str:
        """What of it is new. Raises Strayed."""
        if self._decided:
            return text
        self._held += text
        if len(self._held) < self._look_at:
            return ""
        self._look_at = len(self._held) + len(self._held) // 16
        said = squeezed(self._held).strip()
        if said in self._sent:
            return ""
        n_same = self._overlap(said)
        if not n_same and len(said) < LOOK_CHARS:
            return ""
        return self._decide(said, n_same)

    def end(self) -> str:
        """Nothing more comes."""
        if self._decided:
            return ""
        said = squeezed(self._held).strip()
        return self._decide(said, self._overlap(said))

    def _decide(self, said: str, n_same: int) -> str:
        held, self._held = self._held, ""
        self._decided = True
        if not n_same:
            self._check(said)
            return self._met(held) if self._bare else held
        return self._met(held[_raw(held, n_same):])

    def _overlap(self, said: str) -> int:
        """How many characters repeat the end of what was sent; 0 where it is too few to mean that."""
        sent, longest = self._sent, min(len(said), len(self._sent))
        if longest < self._least:
            return 0
        head, at = said[:self._least], max(len(sent) - longest, 0)
        for _ in range(MOST_LOOKS):
            at = sent.find(head, at)
            if at < 0 or said.startswith(sent[at:]):
                return len(sent) - at if at >= 0 else 0
            at += 1
        return 0

    def _met(self, rest: str) -> str:
        """Without the blanks that were sent already."""
        at = 0
        while at < len(self._blanks) and at < len(rest) and rest[at] == self._blanks[at]:
            at += 1
        return rest[at:]

    def _check(self, said: str) -> None:
        sent = self._sent
        middle = bool(sent) and sent[-1] not in ".!?:;\"”'*)>`"
        words = sent.split(" ", WORDS)[:WORDS]
        if (self._asked or middle) and len(said) >= len(sent[:LEAST]) and (
                said[:LEAST] == sent[:LEAST] or (len(words) == WORDS and said.split(" ", WORDS)[:WORDS] == words)):
            raise Strayed("it began the answer anew")
        if (self._asked or middle) and _ABOUT.match(said):
            raise Strayed("it talked about the answer instead of going on")


def _raw(text: str, n: int) -> int:
    """Where the n-th character of the squeezed text ends in the text."""
    at = len(text) - len(text.lstrip())
    while n > 0:
        blank = _BLANKS.match(text, at)
        at = blank.end() if blank is not None else at + 1
        n -= 1
    return at
