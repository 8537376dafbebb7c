"""Does a body say the same to everybody, and nothing that chooses behind our back? For callers whose models or money are bounded.

What such a caller may use is judged by the fields that we read. A member that stands twice is read one way here and may be read the
other way by an upstream; a vendor's own field may name another model, or a dearer way to be served, that nobody judged. Both are
refused by name. Whoever has no bounds is not looked at.
"""
from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.policy.keys import Principal
from gateway.wire.problems import invalid
from gateway.wire.splice import fields

# Who serves it: https://openrouter.ai/docs/features/model-routing, https://openrouter.ai/docs/features/provider-routing
MODELS: Final = frozenset({"models", "route", "fallbacks", "provider", "plugins", "preset"})
# What it costs: https://platform.openai.com/docs/guides/priority-processing, https://openrouter.ai/docs/features/web-search
PRICES: Final = frozenset({"service_tier", "serviceTier", "speed", "web_search_options"})
# Values that cost the list price or less.
LISTED: Final = frozenset({"auto", "default", "standard", "standard_only", "flex"})
NESTED: Final[tuple[str, ...]] = ("generationConfig", "generation_config")       # where Gemini's callers say how long an answer may be


def bounded(principal: Principal) -> bool:
    return bool(principal.patterns or principal.budgeted or principal.limited)


def vet(raw: bytes, principal: Principal, allowed: Iterable[str] = ()) -> None:
    """Raises bad_request naming the first member that this caller may not send. Bodies that are no JSON object are left alone."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.lstrip()[:1] == b"{":
        return
    top = once(raw, "")
    if len(held := [name for name in NESTED if name in top]) > 1:
        raise invalid(held[1], f"stands beside {held[0]}, which means the same")
    for name in held:
        if bytes(top[name])[:1] == b"{":
            once(bytes(top[name]), name)
    named = MODELS | PRICES if principal.budgeted else MODELS if principal.patterns else frozenset[str]()
    for name in sorted(named.intersection(top).difference(allowed)):
        if not _harmless(name, msgspec.json.decode(top[name])):
            raise GatewayError("bad_request", f"Invalid request: {name}: this client key is bound to models or a budget and may not "
                               "choose by this field; the operator can allow it (limits.vendor_fields).", param=name,
                               code="field_not_allowed")


def once(raw: bytes, place: str) -> dict[str, msgspec.Raw]:
    """The members of an object, each of which stands there once.

    Every quote of the text belongs to a name or to a value that was kept, or else something was dropped: of two members of one name
    the first is, with the two quotes of its name at least.
    """
    top = fields(raw)
    n_quotes = raw.count(b'"') - 2 * len(top)
    for value in top.values():
        n_quotes -= bytes(value).count(b'"')
    if n_quotes:
        raise invalid(place or "the body", "a field stands there twice (or has a quote in its name)")
    return top


def _harmless(name: str, value: object) -> bool:
    return value is None or name in PRICES and isinstance(value, str) and value.lower() in LISTED
