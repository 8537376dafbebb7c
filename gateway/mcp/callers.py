"""Who calls over HTTP, and what may it do? The key of [admin] may do everything, a client key what its scopes say.

On a machine without client keys and without an operator's password, whoever is on this machine is its operator, as at /admin.
Scopes are read from the key that a request comes with, each time: nothing that the request itself says about them counts.
"""
import hmac
from typing import Final
from urllib.parse import urlsplit

import msgspec
from aiohttp.web_request import BaseRequest

from gateway.admin import gate
from gateway.admin.errand import EVERY
from gateway.admin.office import Office
from gateway.core.errors import GatewayError
from gateway.policy.access import browser_guard, is_loopback
from gateway.policy.keys import Principal

ADMIN: Final = "mcp:admin"
LOCAL: Final = "mcp:loopback"


class Caller(msgspec.Struct, frozen=True):
    """Who calls: as the audit log names it, what it may do, and by whose limits models are asked (None: nobody's)."""
    name: str
    scopes: frozenset[str] = EVERY
    principal: Principal | None = None


def caller(http: BaseRequest, office: Office) -> Caller:
    """Raises unauthorized, forbidden or shed; the message says what to do."""
    ground, settings = office.ground, office.settings
    given, key = http.headers.get("Authorization", ""), settings.key.reveal()
    if key and given[:7].lower() == "bearer " and hmac.compare_digest(given[7:].strip().encode("utf-8", "surrogateescape"),
                                                                     key.encode()):
        return Caller(ADMIN)
    if not ground.keys.open:
        principal = ground.keys.authenticate(http.headers)
        if not principal.mcp_scopes:
            raise GatewayError("forbidden", f"The client key {principal.name!r} holds no scope for MCP: give it mcp_scopes, such as "
                               '["read:*"].', code="insufficient_scope")
        return Caller(f"mcp:{principal.name}", principal.mcp_scopes, principal)
    if settings.password_hash or not gate.here(http, ground.snapshot.server.trust_proxy):
        raise GatewayError("unauthorized", "The MCP server wants the key of [admin], or a client key with mcp_scopes.")
    refused = browser_guard(http.headers, http.method, ground.snapshot.server.cors_allow_origins)
    if refused is not None:
        raise refused
    return Caller(LOCAL)


def known(name: str, scopes: frozenset[str], office: Office) -> Caller | None:
    """One that another worker has let in; None: a client key of which this one does not know."""
    if name in (ADMIN, LOCAL):
        return Caller(name, scopes)
    found = next((one for one in office.ground.keys.principals if f"mcp:{one.name}" == name), None)
    return Caller(name, scopes, found) if found is not None else None


def check_origin(http: BaseRequest, allowed: tuple[str, ...]) -> None:
    """A page of another site must not speak to us by a name that was rebound, whatever key it has. Raises forbidden."""
    origins, hosts = http.headers.getall("Origin", ()), http.headers.getall("Host", ())
    for origin in origins:
        host = _host(origin)
        if not ("*" in allowed or origin in allowed or len(hosts) == 1 and host == hosts[0].lower() or is_loopback(host)):
            raise GatewayError("forbidden", "Requests of web pages from other origins are refused; allow the origin in "
                               "server.cors_allow_origins.", code="origin_not_allowed")


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
