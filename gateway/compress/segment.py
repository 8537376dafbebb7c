"""What does an engine see of a conversation? Its texts, one segment each, whatever the wire; and what it may answer: edits.

An engine never sees envelopes (calls, ids, roles, order), so it cannot change them.
"""
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gateway.compress.words import codelike

Path = tuple[str | int, ...]
MAX_CHARS: Final = 131_072                       # of a text that is worked on: every look at it keeps the event loop waiting

# What a conversation has at least behind it before its older part is looked at, and how far that part grows at once: whatever is
# changed in hindsight breaks a provider's prompt cache at that place, so it is done seldom and for many messages together.
LIVE_MESSAGES: Final = 4
STEP_MESSAGES: Final = 8
OLD_TURNS: Final = 8
STEP_TURNS: Final = 4


class Segment(msgspec.Struct, eq=False):
    """One text of a message. ``tool`` and ``arguments`` are those of the call that a result answers."""
    path: Path                                   # where it lies in the body
    message: int
    role: str                                    # system | user | assistant | tool
    text: str
    tool: str = ""
    arguments: str = ""
    turn: int = 0                                # in which turn of the user's
    locked: bool = False                         # nobody may change it
    pinned: bool = False                         # before a client's cache marker: only what comes out the same each time
    held: bool = False                           # another segment refers to it
    judged: str | None = None                    # the text that ``looks`` is about
    looks: bool = False

    @property
    def result(self) -> bool:
        return self.role == "tool"

    @property
    def code(self) -> bool:
        """Does its text look like code? Asked by several engines and by the gate."""
        if self.judged is not self.text:
            self.judged, self.looks = self.text, codelike(self.text)
        return self.looks


class Edit(msgspec.Struct, frozen=True, eq=False):
    """A new text for a segment, and what the gate must know to judge it."""
    segment: Segment
    text: str
    sources: tuple[str, ...] = ()                # texts elsewhere in the conversation that say what is left out here
    holds: tuple[Segment, ...] = ()              # where they stand
    noise: frozenset[str] = frozenset()          # lines that a filter declares to be of no interest
    canon: Callable[[str], Any] | None = None    # what must be the same before and after, for a change of notation
    numbered: bool = False                       # the numbers at the heads of lines are the tool's


class Talk(msgspec.Struct, eq=False):
    """The conversation. ``need``: characters by which it is too large (hard-budget)."""
    segments: list[Segment]
    messages: int
    turns: int
    filters: tuple[Any, ...] = ()                # compress.filters.Filter
    need: int = 0

    @property
    def settled(self) -> int:
        """Messages before this one are old; it moves in steps."""
        return max(0, (self.messages - LIVE_MESSAGES) // STEP_MESSAGES * STEP_MESSAGES)

    @property
    def aged(self) -> int:
        """Turns before this one are at least ``OLD_TURNS`` old; it moves in steps."""
        return max(0, (self.turns - OLD_TURNS) // STEP_TURNS * STEP_TURNS)

    def loose(self) -> list[Segment]:
        """What may be changed in hindsight."""
        return [s for s in self.segments if not (s.locked or s.pinned or s.held)]
