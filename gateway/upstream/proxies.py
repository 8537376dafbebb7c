"""Which proxy does a call go through, and is one ever skipped silently? (No.)

The most specific wins: a provider's own ``proxy``, then ALL_PROXY, then HTTPS_PROXY or HTTP_PROXY of the environment. NO_PROXY
and loopback destinations exempt from the environment's proxies only: what the operator wrote into the configuration is used as
it stands. A proxy that does not answer fails the call; nothing goes out directly instead.
"""
import importlib.util
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from gateway.upstream import metadata

SCHEMES: Final = ("http", "https", "socks5", "socks5h", "socks4")


def is_socks(proxy: str) -> bool:
    return proxy.startswith("socks")


def problem(proxy: str) -> str | None:
    """What is wrong with a configured proxy, in words for the operator; None when it can be used. Never repeats the URL."""
    try:
        parts = urlsplit(proxy)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        return "is not a URL"
    if parts.scheme not in SCHEMES:
        return f"must begin with one of {', '.join(s + '://' for s in SCHEMES)}"
    if not parts.hostname or not port_ok:
        return "has no host"
    if metadata.held(parts.hostname):
        return metadata.WORDS
    if is_socks(proxy) and importlib.util.find_spec("aiohttp_socks") is None:
        return "needs a package for SOCKS: pip install aiohttp-socks"
    return None


def choose(url: str, configured: str, env: Mapping[str, str]) -> str:
    """The proxy for ``url``, or "" for none. Pure; asked once a provider when the configuration is compiled."""
    if configured:
        return configured
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    scheme = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = next((value for name in ("ALL_PROXY", scheme) if (value := _get(env, name))), "")
    if not proxy or _loopback(host) or exempt(host, parts.port, _get(env, "NO_PROXY")):
        return ""
    return proxy if "://" in proxy else "http://" + proxy


def _get(env: Mapping[str, str], name: str) -> str:
    # lower case first, as curl does: CGI lets a client set HTTP_PROXY (httpoxy)
    return (env.get(name.lower()) or env.get(name) or "").strip()


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def exempt(host: str, port: int | None, no_proxy: str) -> bool:
    """Does NO_PROXY name this host? Names match themselves and below; addresses, CIDR, ``host:port`` and ``*`` work too."""
    host = host.lower()
    for entry in no_proxy.lower().replace(" ", ",").split(","):
        name, _, wanted = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
        if not name or (wanted and wanted != str(port)):
            continue
        if name == "*" or _names(name.removeprefix("*").lstrip("."), host):
            return True
    return False


def _names(name: str, host: str) -> bool:
    if host == name or host.endswith("." + name):
        return bool(name)
    try:
        return ip_address(host) in ip_network(name.strip("[]"), strict=False)
    except ValueError:
        return False
