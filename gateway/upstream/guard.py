"""What may go out, and where to? Headers by an allow-list in both directions.

Where to: ``gateway.upstream.reach``.
"""
import re
from collections.abc import Mapping
from typing import Final

from gateway.core.errors import GatewayError

# Contract 8: what a client may say to the upstream itself. Nothing else of its headers is ever sent.
FORWARDED: Final = frozenset({"anthropic-beta", "anthropic-version", "openai-beta"})
# A client's comma lists add to the operator's instead of losing against them.
_LISTS: Final = frozenset({"anthropic-beta", "openai-beta"})
# What describes the body that we pass on; its coding and length are ours, since it was decoded.
RETURNED: Final = frozenset({"content-type", "content-language", "content-disposition"})

# Even a configured header must not be one of these: they frame the message or belong to the connection (RFC 9110 7.6.1).
_FRAMING: Final = frozenset({"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer",
                             "transfer-encoding", "upgrade", "expect"})
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")         # RFC 9110 5.6.2
# No CR, LF, NUL or other controls; no bytes that are no UTF-8 either (readers give them as surrogates), since we write UTF-8
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\ud7ff\ue000-\U0010ffff]*")
USER_AGENT: Final = "gateway"

_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}
# A coding would make the upstream hold frames back until a block is full
_STREAM: Final = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}


def base_headers(configured: Mapping[str, str], credentials: Mapping[str, str]) -> dict[str, str]:
    """The headers that an account always sends, checked once when the configuration is compiled.

    Raises ValueError, naming the header and never its value. Credentials win over configured headers of the same name.
    """
    headers: dict[str, str] = {"User-Agent": USER_AGENT}
    for source in (configured, credentials):
        for name, value in source.items():
            if not _NAME.fullmatch(name):
                raise ValueError("a header name may only contain letters, digits and -_.")
            if name.lower() in _FRAMING:
                raise ValueError(f"the header {name} is the gateway's own")
            if not _VALUE.fullmatch(value):
                raise ValueError(f"the value of the header {name} contains a control character")
            _put(headers, name, value)
    return headers


def forwards(client: Mapping[str, str]) -> bool:
    """Does this client say anything that is for the upstream?"""
    for name in FORWARDED:                       # a loop: any() costs twice the look-ups
        if name in client:
            return True
    return False


def outgoing(base: Mapping[str, str], client: Mapping[str, str], *, stream: bool) -> dict[str, str]:
    """Complete headers of one call: ours, the account's (``base``), and of the client's (case-insensitive) the forwarded ones."""
    headers = {**(_STREAM if stream else _JSON), **base}
    for name in FORWARDED:
        value = client.get(name)
        if value is None:
            continue
        if not _VALUE.fullmatch(value):
            raise GatewayError("bad_request", f"the header {name} contains a control character, or bytes that are no text", param=name)
        own = next((own for own in base if own.lower() == name), None)
        if own is None:
            headers[name] = value
        elif name in _LISTS:
            headers[own] = _joined(base[own], value)
    return headers


def returned(headers: Mapping[str, str]) -> dict[str, str]:
    """Of an upstream's headers those that may reach the client."""
    return {name: value for name in RETURNED if (value := headers.get(name)) is not None and _VALUE.fullmatch(value)}


def _put(headers: dict[str, str], name: str, value: str) -> None:
    for own in headers:
        if own.lower() == name.lower():
            del headers[own]
            break
    headers[name] = value


def _joined(first: str, second: str) -> str:
    names = [name.strip() for name in f"{first},{second}".split(",")]
    return ",".join(dict.fromkeys(name for name in names if name))
