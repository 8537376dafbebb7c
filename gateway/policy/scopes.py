"""What may a caller do over MCP? The scopes, what each opens, and what a key's list of them grants."""
from collections.abc import Iterable
from typing import Final

# scope -> what it opens. A tool names those that it needs; a key that holds none may do nothing.
SCOPES: Final[dict[str, str]] = {
    "read:health": "How the gateway and its providers do: latencies, breakers, cooldowns, requests in flight.",
    "read:providers": "Which upstreams are configured; no key of theirs is ever told.",
    "read:quota": "What is left of the quotas of provider accounts.",
    "read:models": "Models, what they can, and their prices.",
    "read:combos": "Combos and how their targets fare.",
    "read:usage": "Requests, tokens and cost, in sums.",
    "read:requests": "Single requests with their attempts; no bodies.",
    "read:budget": "Budgets of keys and groups, and what is spent of them.",
    "read:cache": "What the cache holds and saves.",
    "read:compression": "What compression does to prompts.",
    "read:config": "The configuration, without secrets.",
    "read:sessions": "Which target sessions are bound to.",
    "read:logs": "The last lines of the log, masked.",
    "read:keys": "Client keys and what they may do; no secrets.",
    "read:audit": "Who changed what.",
    "write:combos": "Make, change, order and delete combos of the store: whoever may use a name reaches what is put behind it.",
    "write:resilience": "End cooldowns and close breakers.",
    "write:budget": "Set budgets of keys and groups of the store.",
    "write:cache": "Forget kept answers.",
    "write:config": "Put the configuration file in force.",
    "write:keys": "Make, change, rotate and revoke client keys of the store, for any model and budget.",
    "execute:providers": "Ask providers whether their keys work.",
    "execute:completions": "Ask models something; costs what it costs.",
}


def known(pattern: str) -> bool:
    """Is this a scope, or a pattern that means at least one?"""
    return any(_means(pattern, scope) for scope in SCOPES)


def granted(patterns: Iterable[str]) -> frozenset[str]:
    """The scopes that a list means: ``*`` is all of them, ``read:*`` all that begin so."""
    return frozenset(scope for pattern in patterns for scope in SCOPES if _means(pattern, scope))


def _means(pattern: str, scope: str) -> bool:
    return pattern in (scope, "*") or pattern.endswith(":*") and scope.startswith(pattern[:-1])
