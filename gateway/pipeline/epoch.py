"""Which configuration do answers go by? A digest over all of it that may change an answer: another one may answer the same otherwise.

It is the same in every process and after every start, since answers are kept and shared under it. Secrets are no part of it, nor is
what belongs to one client key (``policy.keys.Manner``): that stands in the address of each request.
"""
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from gateway.config.snapshot import Snapshot
from gateway.core.secret import Secret

# Sections of the configuration: who answers, what is sent, what becomes of the answer …
ANSWERING: Final = ("providers", "combos", "routing", "rules", "stream", "compression", "context", "thinking", "guardrails", "fusion",
                    "images")
# … and those that say who may ask, when, where, and what is kept of it.
AROUND: Final = ("server", "auth", "store", "state", "timeouts", "cache", "jobs", "ollama", "limits", "mcp", "admin", "log", "metrics",
                 "otel", "webhooks")


def epoch(snapshot: Snapshot) -> str:
    """Combos and providers of the store count like those of the file."""
    places = sorted((provider.id, provider.wire, provider.base_url) for provider in snapshot.providers)
    said = [[getattr(snapshot.config, name) for name in ANSWERING], snapshot.combos, snapshot.filters, places]
    return hashlib.sha256(orjson.dumps(plain(said), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()[:16]


def plain(value: Any) -> Any:
    """As data whose spelling depends on nothing but its meaning."""
    if isinstance(value, msgspec.Struct):
        return [type(value).__name__, *(plain(getattr(value, name)) for name in value.__struct_fields__)]
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(inner) for inner in value), key=repr)
    if isinstance(value, re.Pattern):
        return [value.pattern, int(value.flags)]
    if isinstance(value, Secret):
        return bool(value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)
