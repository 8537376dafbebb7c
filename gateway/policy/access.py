"""What may this caller use, and does a web page stand behind it? Pure checks that refuse before anything is spent."""
import ipaddress
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from gateway.core.errors import GatewayError
from gateway.policy.keys import Principal
from gateway.providers.registry import Model

_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
# https://www.rfc-editor.org/rfc/rfc9110#section-7.2: uri-host [":" port]
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z._-]+))(?::[0-9]{0,5})?", re.ASCII).fullmatch
_FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Real-IP")
# https://www.rfc-editor.org/rfc/rfc7239#section-4: a token, or quoted where there is a colon
_FOR: Final = re.compile(r"\bfor\s*=\s*(\"[^\"]*\"|[^;,\s]*)", re.I)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Forms in which a name was understood that the operator chose himself: allowing the name allows what he put behind it. A family
# name (claude-…) is no such choice, since anything may stand in for it.
_CHOSEN: Final = frozenset({"alias", "virtual", "combo"})


class Named(Protocol):
    """A target, as far as an allow-list cares."""

    @property
    def label(self) -> str: ...
    @property
    def model(self) -> Model: ...


T = TypeVar("T", bound=Named)


def restrict(principal: Principal, requested: str, kind: str, targets: tuple[T, ...]) -> tuple[T, ...]:
    """Those of a resolution's targets that this key may use. Raises forbidden when none is left."""
    if not principal.patterns:
        return targets
    allows = principal.allows
    if kind in _CHOSEN and allows(requested):
        return targets
    kept = tuple(target for target in targets if allows(target.label) or allows(target.model.id))
    if not kept:
        raise GatewayError("forbidden", f"This client key may not use the model {requested[:200]!r}.", param="model",
                           code="model_not_allowed")
    return kept


def browser_guard(headers: Mapping[str, str], method: str = "POST", origins: Sequence[str] = (),
                  form: bool = False) -> GatewayError | None:
    """Open mode only: a web page must not spend the user's keys (contract 4). ``origins``: server.cors_allow_origins.

    A page cannot send JSON to another origin without asking first (CORS), cannot forge Origin or Sec-Fetch-Site, and reaches us
    by a name of its own only when that name was rebound to loopback: each is checked by itself. ``form``: this door takes forms
    (uploads of audio); a page could send one unasked, but never without Origin or Sec-Fetch-Site.
    """
    host = headers.get("host")
    if host is not None and (not is_loopback(host) or _several(headers, "host")):
        return GatewayError("forbidden", "Without client keys only requests to a loopback host are served; configure "
                            "[[auth.keys]] to use another name.", code="host_not_allowed")
    origin = headers.get("origin")
    if origin is not None and (not _trusted(origin, origins) or _several(headers, "origin")):
        return GatewayError("forbidden", "Requests of web pages from other origins are refused; allow the origin in "
                            "server.cors_allow_origins or configure [[auth.keys]].", code="origin_not_allowed")
    if origin is None or not _listed(origin, origins):
        site = headers.get("sec-fetch-site")
        if site is not None and site.strip().lower() == "cross-site":
            return GatewayError("forbidden", "Cross-site requests of web pages are refused without client keys.",
                                code="origin_not_allowed")
    kind = headers.get("content-type", "")
    if form and origin is None and "sec-fetch-site" not in headers and kind.lower().startswith("multipart/"):
        return None
    if method not in _BODILESS and not _is_json(kind):
        return GatewayError("unsupported_media_type", "Send the body with 'Content-Type: application/json'.",
                            param="content-type")
    return None


def elsewhere(headers: Mapping[str, str]) -> bool:
    """Does a proxy say that it asks for another machine? Every address counts that is told: the first one is the asker's to write,
    the last one the proxy's, and one that nobody can read is no address of ours."""
    for name in _FORWARDED:
        if name in headers:
            told = ",".join(getattr(headers, "getall", lambda name: (headers[name],))(name))
            found = _FOR.findall(told) if name == "Forwarded" else told.split(",")
            if not found or not all(is_loopback(_bare(one)) for one in found):
                return True
    return False


def _bare(told: str) -> str:
    """An address as it may stand in a Host header."""
    told = told.strip().strip('"')
    return f"[{told}]" if told.count(":") > 1 and not told.startswith("[") else told


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Does a Host header name this machine? A port may follow; anything else that a URL may hold is no host."""
    parts = _HOST(host)
    if parts is None:
        return False
    name = (parts[1] or parts[2]).lower().rstrip(".")
    if name in _LOOPBACK or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _several(headers: Mapping[str, str], name: str) -> bool:
    """Is a header there twice? We would judge one of them and somebody else go by the other."""
    every = getattr(headers, "getall", None)
    return every is not None and len(every(name, ())) > 1


def _trusted(origin: str, origins: Sequence[str]) -> bool:
    """Allowed by the operator, or a page served from this very machine (another local application)."""
    if _listed(origin, origins):
        return True
    _, slashes, host = origin.partition("://")
    return bool(slashes) and is_loopback(host)


def _listed(origin: str, origins: Sequence[str]) -> bool:
    return "*" in origins or origin in origins


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
