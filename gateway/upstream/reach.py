"""Which addresses may a URL inside a request lead to? Public ones; checked before, and again on what the name resolved to.

A client must not make the gateway read what only the gateway's host can reach: loopback, the local network, link-local and the
clouds' metadata services. Names are resolved once, by ``PublicResolver``, and the connection goes to the addresses that were
checked: a name that answers differently the second time (DNS rebinding) gains nothing. Redirects are followed by hand, each
target checked like the first.
"""
import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gateway.core.errors import GatewayError
from gateway.upstream import metadata
from gateway.upstream.failures import told

MAX_URL: Final = 8_192
MAX_REDIRECTS: Final = 3
_REFUSED_NAMES: Final = frozenset({"localhost", "metadata", "instance-data"})
_REFUSED_ENDINGS: Final = (".localhost", ".local", ".internal", ".localdomain", ".lan", ".home.arpa", ".onion")
_CARRIERS: Final = (                          # IPv6 ranges that carry an IPv4 address, and where
    (ip_network("::ffff:0:0/96"), 0),         # mapped, RFC 4291
    (ip_network("::/96"), 0),                 # compatible, RFC 4291 (deprecated)
    (ip_network("::ffff:0:0:0/96"), 0),       # translated, RFC 2765
    (ip_network("64:ff9b::/96"), 0),          # NAT64, RFC 6052
    (ip_network("2002::/16"), 80),            # 6to4, RFC 3056
)
_CLOSED: Final = tuple(map(ip_network, (
    "64:ff9b:1::/48",                         # local NAT64, RFC 8215
    "2001::/32",                              # Teredo, RFC 4380: embeds addresses of both ends
    "168.63.129.16/32",                       # Azure's host agent is a public number
    "192.0.0.0/24",                           # RFC 6890; Oracle's metadata; is_global says yes to parts of it before 3.12
    "192.88.99.0/24",                         # 6to4 relays, RFC 7526
)))
_NUMERIC: Final = frozenset("0123456789abcdefx.")


class Refused(GatewayError):
    """The URL leads where it must not. The message does not say what is there."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_request", message)


def public(address: str) -> bool:
    """May this literal address be connected to?"""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        for network, shift in _CARRIERS:
            if found in network:
                return public(str(IPv4Address(int(found) >> shift & 0xFFFFFFFF)))
    if any(found in network for network in _CLOSED if network.version == found.version):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def check_url(url: str) -> SplitResult:
    """The URL, if it may be fetched as far as can be told without resolving its name. Raises Refused."""
    if len(url) > MAX_URL or any(c <= " " or c in "\\\x7f" for c in url):
        raise Refused("the URL is too long or contains spaces")
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
        port = parts.port
    except ValueError:
        raise Refused("the URL is not valid") from None
    if parts.scheme not in ("http", "https"):
        raise Refused("only http:// and https:// URLs are fetched")
    if not host or port == 0:
        raise Refused("the URL has no host")
    if parts.username is not None or parts.password is not None:
        raise Refused("a URL with credentials is not fetched")
    if not _host_allowed(host):
        raise Refused("the URL does not lead to a public address")
    return parts


def _host_allowed(host: str) -> bool:
    if ":" in host:
        return public(host)
    host = host.translate({0x3002: ".", 0xFF0E: ".", 0xFF61: "."})            # other full stops, IDNA (UTS 46)
    if _NUMERIC.issuperset(host) and (host.split(".")[-1][:1].isdigit() or host.startswith("0x")):
        # an address, in whatever spelling (127.1, 0x7f.1, 2130706433): only the plain one is taken
        return public(host)
    try:
        name = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return False
    if name != host and not _host_allowed(name):
        return False                                                          # full-width digits are digits too
    return "." in name and name not in _REFUSED_NAMES and not name.endswith(_REFUSED_ENDINGS)


class PublicResolver(AbstractResolver):
    """Resolves a name and gives its addresses only when all of them are public: a mixed answer is a trick."""

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if not found or not all(public(result["host"]) for result in found):
            raise Refused("the URL does not lead to a public address")
        return found

    async def close(self) -> None:
        await self._inner.close()


class Fetcher:
    """Gets what a URL inside a request points to, within limits. One for the process; ``close`` it."""

    def __init__(self, *, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver or PublicResolver()
        self._session: aiohttp.ClientSession | None = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            # no DNS cache and no kept connections: what was checked is what is connected to
            connector = aiohttp.TCPConnector(resolver=self._resolver, use_dns_cache=False, force_close=True, limit=32,
                                             socket_factory=metadata.opened)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False,
                                                  headers={"User-Agent": "gateway"})
        return self._session

    async def fetch(self, url: str, *, limit: int, timeout_s: float) -> tuple[str, bytes]:
        """(content type, bytes). Raises Refused, or GatewayError("bad_request") that says in words what went wrong."""
        try:
            async with asyncio.timeout(timeout_s):
                for _ in range(MAX_REDIRECTS + 1):
                    check_url(url)
                    found = await self._get(url, limit)
                    if isinstance(found, tuple):
                        return found
                    url = found
        except TimeoutError:
            raise GatewayError("bad_request", f"the URL did not answer within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise GatewayError("bad_request", f"the URL could not be fetched: {told(exc).message}") from None
        raise GatewayError("bad_request", "the URL redirects too often")

    async def _get(self, url: str, limit: int) -> tuple[str, bytes] | str:
        """The content, or where to look instead."""
        async with self._client().get(URL(url), allow_redirects=False) as reply:
            location = reply.headers.get("Location")
            if reply.status in (301, 302, 303, 307, 308) and location:
                return urljoin(url, location)
            if reply.status != 200:
                raise GatewayError("bad_request", f"the URL answered {reply.status}")
            data = bytearray()
            async for piece in reply.content.iter_any():
                data += piece
                if len(data) > limit:
                    raise GatewayError("bad_request", f"the URL's content is larger than {limit} bytes")
            return reply.headers.get("Content-Type", "").partition(";")[0].strip().lower(), bytes(data)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
