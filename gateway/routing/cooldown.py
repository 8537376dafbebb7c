"""For how long is somebody left alone after a failure? One pure function over a table of rules.

Precedence: a time that the provider stated (1 s to 24 h, shorter or longer than ours), else 5 s for upstreams on this
machine or network, else the rule. That a running longer cooldown is never shortened is the book-keeper's part (health.py).
"""
from typing import Final, Literal

import msgspec

from gateway.core.clock import until_midnight
from gateway.core.errors import GatewayError
from gateway.routing.outcomes import Rule

Source = Literal["authoritative", "heuristic", "credit", "tier"]

DAY_S: Final = 86_400.0
LOOPBACK_S: Final = 5.0
STATED_MIN_S: Final = 1.0
MIDNIGHT_MIN_S: Final = 60.0
# Quota answers without a stated time, by how many within a day: the first is transient, then we step back further. The steps
# of one and of 24 hours are left out: without knowing a daily limit they would bench a key for a busy minute.
LADDER_S: Final = (120.0, 600.0)
LADDER_START_S: Final = 3600.0                # two hits must be this close for the ladder to begin


class Cooldown(msgspec.Struct, frozen=True):
    """``until`` is monotonic; ``kind`` the failure behind it; ``source`` how we know."""
    until: float
    kind: str
    source: Source


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
    quota_hits: list[float]                   # monotonic times of quota answers within a day, the present one included
    transient_s: float


def decide(rule: Rule, error: GatewayError, facts: Facts, now: float, wall: float) -> Cooldown | None:
    """The cooldown that this failure asks for, None when it asks for none."""
    terms = RULES.get(rule)
    if terms is None:
        return None
    stated = error.retry_after_s
    if terms.stated and stated is not None:
        return Cooldown(now + min(max(stated, STATED_MIN_S), DAY_S), error.kind, "authoritative")
    if facts.loopback:
        return Cooldown(now + LOOPBACK_S, error.kind, "heuristic")
    seconds = terms.seconds if terms.seconds is not None else _computed(rule, facts, now, wall)
    return Cooldown(now + seconds, error.kind, terms.source)


def _computed(rule: Rule, facts: Facts, now: float, wall: float) -> float:
    if rule == "daily":
        return max(until_midnight(wall, facts.pacific), MIDNIGHT_MIN_S)
    if rule == "quota":
        return ladder(facts.quota_hits, now, facts.transient_s)
    return facts.transient_s


def ladder(hits: list[float], now: float, first_s: float) -> float:
    """Two quota answers within an hour begin the ladder; more within a day climb it."""
    if len(hits) < 2 or now - hits[-2] > LADDER_START_S:
        return first_s
    return max(first_s, LADDER_S[min(len(hits) - 2, len(LADDER_S) - 1)])
