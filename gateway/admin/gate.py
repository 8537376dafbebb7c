"""May this caller use the operator's side, and did a person of ours mean it? Peer, Host, cookie or key; Origin on every change.

Three ways in: a session (cookie, by password), the key of ``[admin]``, and, as long as no password is set, this machine itself:
the peer's address is loopback, so is the Host (a rebound name is not), and nobody forwarded the request.
"""
import hmac
import ipaddress
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final, Literal
from urllib.parse import urlsplit

from aiohttp.web_request import BaseRequest

from gateway.admin.sessions import COOKIE, Sessions
from gateway.config.schema import Admin
from gateway.core.errors import GatewayError
from gateway.policy.access import is_loopback

How = Literal["session", "key", "loopback"]

HEADER: Final = "X-Gateway-Admin"                # a page of another origin cannot send it unasked
IDLE_HEADER: Final = "X-Gateway-Idle"            # sent by refreshes that nobody clicked
SAFE: Final = frozenset({"GET", "HEAD"})
_FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")


def peer_of(http: BaseRequest, trust_proxy: bool) -> str:
    """The address of who asks; "" for a UNIX socket. Behind a trusted proxy the last address that it was told."""
    if trust_proxy and (told := http.headers.getall("X-Forwarded-For", ())):
        return told[-1].rpartition(",")[2].strip()
    transport = http.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


def group_of(peer: str) -> str:
    """Whose guesses are counted together: one address, or the /64 that a customer of IPv6 has."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer[:64]
    if isinstance(address, ipaddress.IPv4Address) or address.ipv4_mapped is not None:
        return str(getattr(address, "ipv4_mapped", None) or address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def here(http: BaseRequest, trust_proxy: bool) -> bool:
    """Does the request come from this machine, by a name of this machine, and from nobody behind it?"""
    peer = peer_of(http, trust_proxy)
    if peer and not is_loopback(f"[{peer}]" if ":" in peer else peer):
        return False
    if not (trust_proxy and "X-Forwarded-For" in http.headers) and any(name in http.headers for name in _FORWARDED):
        return False                                 # a trusted proxy that tells it otherwise has told us nothing
    hosts = http.headers.getall("Host", ())
    return len(hosts) == 1 and is_loopback(hosts[0])


def token_of(headers: Mapping[str, str]) -> str:
    """The session's token in the cookies; "" without one."""
    try:
        found = SimpleCookie(headers.get("Cookie", "")[:4_096]).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def enter(http: BaseRequest, settings: Admin, sessions: Sessions, now: float, trust_proxy: bool, active: bool = True) -> How:
    """Raises unauthorized or forbidden; the message says what to do."""
    stamp, key = settings.password_hash.reveal(), settings.key.reveal()
    given = http.headers.get("Authorization", "")
    if given[:7].lower() == "bearer ":
        if key and hmac.compare_digest(given[7:].strip().encode("utf-8", "surrogateescape"), key.encode()):
            return "key"
        raise GatewayError("unauthorized", "This is not the key of [admin].", code="invalid_admin_key")
    if not stamp:
        if here(http, trust_proxy):
            return "loopback"
        raise GatewayError("forbidden", "Without a password the operator's side is for this machine only: set admin.password_hash "
                           "(`gateway admin-password` makes it), or use the key of [admin].", code="loopback_only")
    token = token_of(http.headers)
    if token and sessions.find(token, stamp, now, active and IDLE_HEADER not in http.headers) is not None:
        return "session"
    raise GatewayError("unauthorized", "Sign in first.", code="sign_in")


def meant(http: BaseRequest) -> None:
    """Did our own page send this change? For callers whose browser would vouch for them. Raises forbidden."""
    if HEADER not in http.headers:
        raise GatewayError("forbidden", f"Send the header {HEADER}: 1 with every change.", code="header_missing")
    origin = http.headers.get("Origin")
    if origin is not None and not _same(origin, http.headers.getall("Host", ())):
        raise GatewayError("forbidden", "This change comes from a page of another origin.", code="origin_not_allowed")
    if http.headers.get("Sec-Fetch-Site", "same-origin").strip().lower() not in ("same-origin", "none"):
        raise GatewayError("forbidden", "This change comes from a page of another site.", code="origin_not_allowed")


def _same(origin: str, hosts: tuple[str, ...] | list[str]) -> bool:
    try:
        told = urlsplit(origin)
    except ValueError:
        return False
    return len(hosts) == 1 and told.scheme in ("http", "https") and told.netloc.lower() == hosts[0].lower()
