"""What do exceptions of the network, and aiohttp's, mean in our words? No URL, no host, no address: these texts reach clients.

``told`` before the answer's headers, ``cut`` inside its body.
"""
import errno
import logging
import os
import re
import socket
import ssl
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from gateway.core.errors import GatewayError

log = logging.getLogger("gateway.upstream")

RETRY_S: Final = 1.0

_BY_ERRNO: Final = {
    errno.EACCES: "connection not allowed",
    errno.EPERM: "connection not allowed",
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection reset",
    errno.ECONNABORTED: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ETIMEDOUT: "connection timed out",
}
# What this machine has run out of: no provider is to blame, and none would fare better.
_OURS: Final = {
    errno.EMFILE: "file descriptors", errno.ENFILE: "file descriptors", errno.EADDRNOTAVAIL: "local ports",
    errno.ENOBUFS: "buffers for sockets", errno.ENOMEM: "memory",
}
_TOO_LARGE: Final = re.compile(r"Got more than \d+ bytes|Too many headers|Header (?:value|name) is too large", re.I).search
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")


def told(exc: BaseException, connecting: bool = False) -> GatewayError:
    """A failure before the answer began."""
    if isinstance(exc, GatewayError):
        return exc
    if isinstance(exc, OSError) and (lacking := _lacking(exc)):
        log.warning("no connection could be made: this machine has run out of %s", lacking)
        return GatewayError("shed", f"The gateway has run out of {lacking}.", retry_after_s=RETRY_S)
    if isinstance(exc, TimeoutError):
        return GatewayError("timeout", "connection timed out")
    if isinstance(exc, aiohttp.ClientHttpProxyError):
        return GatewayError("transport", f"proxy answered {exc.status}")
    if isinstance(exc, aiohttp.ClientProxyConnectionError):
        return GatewayError("transport", "proxy: " + _words(exc.os_error))
    if isinstance(exc, (aiohttp.ClientConnectorDNSError, socket.gaierror)):
        return GatewayError("transport", "name not resolved")
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return GatewayError("transport", f"TLS: certificate not accepted{_certificate(exc.certificate_error)}")
    if isinstance(exc, ssl.SSLCertVerificationError):
        return GatewayError("transport", f"TLS: certificate not accepted{_certificate(exc)}")
    if isinstance(exc, (aiohttp.ClientSSLError, ssl.SSLError)):
        return GatewayError("transport", "TLS: no secure connection could be made")
    if isinstance(exc, aiohttp.ServerDisconnectedError):
        return GatewayError("transport", "connection closed before an answer came")
    if isinstance(exc, LineTooLong) or _TOO_LARGE(str(exc)):
        return GatewayError("transport", "the answer's headers are too large")
    if isinstance(exc, HttpProcessingError):
        return GatewayError("transport", "the answer is not HTTP")
    if isinstance(exc, aiohttp.ClientConnectorError):
        return GatewayError("transport", _words(exc.os_error))
    if isinstance(exc, OSError):
        return GatewayError("transport", _words(exc))
    return GatewayError("transport", "no connection could be made" if connecting else "the connection failed")


def cut(exc: BaseException) -> GatewayError:
    """A failure inside the body: something was said, but not to the end."""
    reason = exc
    while not isinstance(reason, OSError) and reason.__cause__ is not None:
        reason = reason.__cause__
    reset = isinstance(reason, OSError) or "Connection lost" in str(exc) or "reset" in str(exc)
    return GatewayError("truncated", "connection reset inside the answer" if reset else "the answer ended before it was complete")


def _words(exc: OSError) -> str:
    if isinstance(exc, ssl.SSLError):
        return "TLS: no secure connection could be made"
    return _BY_ERRNO.get(_number(exc), "connection failed")


def _lacking(exc: OSError) -> str:
    """What of our own is used up; "" where something else is wrong. A name may stay unresolved for want of a file, too."""
    if isinstance(exc, ssl.SSLError):
        return ""
    if isinstance(exc, (aiohttp.ClientConnectorDNSError, socket.gaierror)):
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as our_own:
            exc = our_own
    inner = getattr(exc, "os_error", None)
    return _OURS.get(_number(inner if isinstance(inner, OSError) else exc), "")


def _number(exc: OSError) -> int:
    number = exc.errno
    if number is None and (found := _ERRNO.search(str(exc))):
        number = int(found.group(1))                  # several addresses failed: one exception without a number tells of all
    return number or 0


def _certificate(exc: Exception) -> str:
    # "Hostname mismatch, certificate is not valid for 'x'": the part before the comma is enough
    text = str(getattr(exc, "verify_message", "") or "").split(",")[0].split(" for ")[0].strip().lower()
    return f" ({text[:80]})" if text else ""
