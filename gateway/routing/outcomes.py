"""What does each kind of failure mean for the next try? One table over ``core.errors.KINDS`` (contract 7)."""
from typing import Final, Literal

import msgspec

from gateway.core.errors import KINDS

Skip = Literal["none", "key", "account", "model", "provider"]
Rule = Literal["none", "transient", "quota", "daily", "tier", "auth", "credit"]


class Outcome(msgspec.Struct, frozen=True):
    """``skip``: who is out for the rest of this request, from one key of one model up to the whole provider.
    ``rule``: how its cooldown is found (``cooldown.RULES``). ``counts``: the fault is the model's own, not one account's, so
    it adds to the failure window that benches the model on all its keys. ``moves_on``: another target may be asked."""
    skip: Skip
    rule: Rule
    counts: bool
    moves_on: bool = True


_END: Final = Outcome("none", "none", False, moves_on=False)

# Facts of one account (quota, credits, a bad key, a plan) never bench a model's other keys, so they do not count.
_UPSTREAM: Final[dict[str, Outcome]] = {
    # A bad or unpaid key is bad for every model of its provider; the provider's other keys are not touched.
    "auth": Outcome("account", "auth", False),
    "out_of_credits": Outcome("account", "credit", False),
    "suspended": Outcome("account", "credit", False),
    "daily_quota_exhausted": Outcome("key", "daily", False),
    "rate_limited": Outcome("key", "quota", False),
    "forbidden_upstream": Outcome("key", "tier", False),
    # No cooldown for a name that is unknown, but three in a row and the model rests.
    "model_not_found": Outcome("model", "none", True),
    # The request does not fit this model; the next caller's may.
    "context_too_large": Outcome("model", "none", False),
    "unsupported": Outcome("model", "none", False),
    # The body is at fault: nobody else would take it either, and the caller must hear it in the provider's words.
    "rejected": _END,
    # A provider that is down is down for its other keys and models too.
    "overloaded": Outcome("provider", "transient", True),
    "degraded": Outcome("provider", "transient", True),
    "server_error": Outcome("provider", "transient", True),
    "timeout": Outcome("provider", "transient", True),
    "transport": Outcome("provider", "transient", True),
    # The turn was no answer; a sibling key may well give one.
    "in_band": Outcome("key", "transient", True),
    "bad_reply": Outcome("key", "transient", True),
    "truncated": Outcome("key", "transient", True),
    "empty": Outcome("key", "transient", True),
    # The caller's max_tokens may be to blame; only a streak of these is held against the model (health.STREAKS).
    "empty_length": Outcome("key", "none", False),
    # How a model writes is no matter of health: another one is asked, nobody cools.
    "unparseable_dialect": Outcome("key", "none", False),
    "invalid_tool_arguments": Outcome("model", "none", False),
    "format_ignored": Outcome("model", "none", False),
    "truncated_json": Outcome("model", "none", False),
    "exhausted": _END,
}

OUTCOMES: Final[dict[str, Outcome]] = {kind: _UPSTREAM.get(kind, _END) for kind in KINDS}

# Failures that are told alike when every attempt ended in them (contract 7, last paragraph; routing/exhaust.py).
QUOTA_KINDS: Final = frozenset({"rate_limited", "daily_quota_exhausted", "out_of_credits", "suspended",
                                "forbidden_upstream"})
BUSY_KINDS: Final = frozenset({"overloaded", "degraded"})
REFUSED_KINDS: Final = frozenset({"context_too_large", "unsupported", "rejected"})
