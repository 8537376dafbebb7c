"""What is the same for all calls to one address? Whom to connect to, and the beginning of the head."""
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from yarl import URL

from gateway.core.errors import GatewayError
from gateway.upstream.h1.pool import Origin, Proxy
from gateway.upstream.proxies import problem
from gateway.upstream.transport import Outgoing

MAX_PREFIXES: Final = 64                     # accounts of one address whose header lines are remembered
_FRAMING: Final = ("content-length", "transfer-encoding", "host", "connection")


class Route:
    """``origin`` None: this client has no way there."""

    __slots__ = ("origin", "_start", "_known")

    def __init__(self, origin: Origin | None, start: str) -> None:
        self.origin = origin
        self._start = start
        self._known: dict[int, tuple[Mapping[str, str], bytes]] = {}

    def head(self, out: Outgoing) -> bytes:
        """Headers of an account are usually the very same mapping as the last time."""
        known = self._known.get(id(out.headers))
        prefix = known[1] if known is not None and known[0] is out.headers else self._prefix(out.headers)
        if out.body is None:
            return prefix + b"\r\n"
        return b"%bContent-Length: %d\r\n\r\n" % (prefix, len(out.body))

    def _prefix(self, headers: Mapping[str, str]) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
            raise GatewayError("internal", "a header for the upstream contains a line break")
        if any(name.lower() in _FRAMING for name in headers):
            raise GatewayError("internal", "a header for the upstream is the connection's own")
        prefix = f"{self._start}{lines}".encode("utf-8", "surrogateescape")
        if len(self._known) >= MAX_PREFIXES:
            self._known.clear()
        self._known[id(headers)] = headers, prefix
        return prefix


Key = tuple[str, int, bool, bool, Proxy | None]


def planned(out: Outgoing) -> tuple[Key | None, str]:
    """What tells the origin of a call from others (None: no way there), and the first lines of its head."""
    if out.proxy and (wrong := problem(out.proxy)):
        raise GatewayError("transport", f"the configured proxy {wrong}")
    try:
        url = URL(out.url, encoded=True)
        host, port = url.raw_host, url.port
        target = url.raw_path_qs
        if url.scheme not in ("http", "https") or not host or port is None or not _plain(target) or not _plain(out.method):
            raise ValueError
    except (ValueError, TypeError):
        raise GatewayError("transport", "the configured address is not an http:// or https:// URL") from None
    proxy, tls, words = None, url.scheme == "https", ""
    if out.proxy:
        if not out.proxy.startswith("http://"):
            return None, ""
        proxy = _proxy(URL(out.proxy))
        if not tls:
            # RFC 9112 3.2.2: a proxy is asked in absolute form, and its credentials travel with each request
            target = str(url.with_user(None).with_fragment(None))
            words = f"Proxy-Authorization: {proxy.login}\r\n" if proxy.login else ""
    start = f"{out.method} {target} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n{words}"
    if proxy is not None and not tls:
        return (proxy.host, proxy.port, False, True, proxy), start
    return (host, port, tls, out.tls_verify, proxy), start


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _proxy(url: URL) -> Proxy:
    login = ""
    if url.raw_user or url.raw_password:
        pair = f"{unquote(url.raw_user or '')}:{unquote(url.raw_password or '')}"
        login = "Basic " + b64encode(pair.encode()).decode()
    return Proxy(url.raw_host or "", url.port or 80, login)
