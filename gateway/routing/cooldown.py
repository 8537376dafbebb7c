"""For how long is somebody left alone after a failure? One pure function over a table of rules.

Precedence: a time that the provider stated (1 s to 24 h, shorter or longer than ours), else 5 s for upstreams on this
machine or network, else the rule. That a running longer cooldown is never shortened is the book-keeper's part (health.py).
"""
from typing import Final, Literal

import msgspec

from gateway.core.clock import until_midnight
from gateway.core.errors import GatewayError
from gateway.routing.outcomes import Rule

Source = Literal["authoritative", "heuristic", "credit", "tier", "breaker", "retired"]

DAY_S: Final = 86_400.0
LOOPBACK_S: Final = 5.0
STATED_MIN_S: Final = 1.0
MIDNIGHT_MIN_S: Final = 60.0
BACKOFF_MAX_S: Final = 600.0                  # doubling ends here, or at the operator's own time where that is longer
RECENT_S: Final = 600.0                       # a failure this soon after the end of a cooldown is the same trouble again


class Cooldown(msgspec.Struct, frozen=True):
    """``since`` and ``until`` are monotonic; ``kind`` the failure behind it; ``source`` how we know."""
    until: float
    kind: str
    source: Source
    since: float = 0.0


class Terms(msgspec.Struct, frozen=True):
    """What a rule gives: seconds (None = computed), how sure we are, and whether a stated time is believed instead."""
    seconds: float | None
    source: Source
    stated: bool


RULES: Final[dict[Rule, Terms]] = {
    "transient": Terms(None, "heuristic", True),
    "quota": Terms(None, "heuristic", True),
    "daily": Terms(None, "authoritative", True),
    "tier": Terms(DAY_S, "tier", True),
    # A bad key or an empty purse does not heal by the clock that a proxy in between may have stated.
    "auth": Terms(300.0, "heuristic", False),
    "credit": Terms(DAY_S, "credit", False),
}


class Facts(msgspec.Struct):
    """What a decision depends on besides the error."""
    loopback: bool
    pacific: bool                             # the provider's day ends at midnight US/Pacific
    level: int                                # 1 = the first failure, 2 = again soon after the first cooldown was over …
    transient_s: float


def decide(rule: Rule, error: GatewayError, facts: Facts, now: float, wall: float) -> Cooldown | None:
    """The cooldown that this failure asks for, None when it asks for none."""
    terms = RULES.get(rule)
    if terms is None:
        return None
    stated = error.retry_after_s
    if terms.stated and stated is not None:
        return Cooldown(now + min(max(stated, STATED_MIN_S), DAY_S), error.kind, "authoritative", now)
    if facts.loopback:
        return Cooldown(now + LOOPBACK_S, error.kind, "heuristic", now)
    seconds = terms.seconds if terms.seconds is not None else _computed(rule, facts, wall)
    return Cooldown(now + seconds, error.kind, terms.source, now)


def _computed(rule: Rule, facts: Facts, wall: float) -> float:
    if rule == "daily":
        return max(until_midnight(wall, facts.pacific), MIDNIGHT_MIN_S)
    return backoff(facts.level, facts.transient_s)


def backoff(level: int, first_s: float) -> float:
    """The first time, twice that, four times …"""
    return min(first_s * 2.0 ** min(max(level - 1, 0), 16), max(BACKOFF_MAX_S, first_s))
