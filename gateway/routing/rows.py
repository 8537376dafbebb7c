"""Why is somebody not asked? The gates of a walk as data, and in words."""
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from gateway.routing.catalog import Candidate, Leg, Target

Reason = Literal["", "vision", "tools", "n", "too_large", "no_account", "cooldown", "trial", "limit", "failed"]


class Row(msgspec.Struct, frozen=True):
    """One candidate's place: ``reason`` "" = may be asked. ``kind`` is the failure behind a cooldown, ``until`` its end.
    Gates that concern a whole target have no candidate."""
    target: Target
    candidate: Candidate | None
    reason: Reason
    kind: str = ""
    until: float = 0.0
    leg: Leg | None = None


_WORDS: Final[dict[Reason, Callable[[Row, float], str]]] = {
    "": lambda row, now: "may be asked",
    "vision": lambda row, now: "cannot see images",
    "tools": lambda row, now: "cannot call tools",
    "n": lambda row, now: f"its format ({row.target.provider.wire}) cannot give several choices",
    "too_large": lambda row, now: f"takes {row.target.room:.0f} tokens at most",
    "no_account": lambda row, now: "its provider has no key",
    "cooldown": lambda row, now: f"rests for {seconds(row.until - now)} after {row.kind}",
    "trial": lambda row, now: "comes back: one request tries it first",
    "limit": lambda row, now: f"its own limits have room in {seconds(row.until - now)}",
    "failed": lambda row, now: "failed in this request",
}


def words(row: Row, now: float) -> str:
    """The reason of a row, for people."""
    return _WORDS[row.reason](row, now)


def seconds(left_s: float) -> str:
    """A wait as people say it: 7 s, 12 min, 5 h."""
    if left_s < 120:
        return f"{max(left_s, 0):.0f} s"
    return f"{left_s / 60:.0f} min" if left_s < 7200 else f"{left_s / 3600:.0f} h"
