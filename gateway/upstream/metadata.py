"""Where does nobody's URL lead, not even the operator's? To where a cloud hands this machine its own credentials.

A provider may be anywhere, in a private network and on this machine, too; but whoever may write an address (a file, the operator's
API, an agent by MCP) must not get to read what is said there. Asked when an address is written, for the sake of its words, and
again of each socket that is opened, whatever name led to it.
"""
import socket
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

_ADDRESSES: Final = frozenset(map(ip_address, (
    "169.254.169.254",                        # nearly all of them
    "169.254.170.2", "169.254.170.23",        # AWS: credentials of containers
    "169.254.0.23", "169.254.42.42",          # Tencent, Scaleway
    "100.100.100.200",                        # Alibaba
    "168.63.129.16",                          # Azure's host agent
    "192.0.0.192",                            # Oracle
    "fd00:ec2::254", "fd00:ec2::23",          # AWS
    "fd20:ce::254",                           # Google
    "fd00:42::42",                            # Scaleway
)))
_NAMES: Final = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"})
_NUMERIC: Final = frozenset("0123456789abcdefx.")
WORDS: Final = "leads to a cloud's metadata service, which hands out this machine's own credentials"


def held(host: str) -> bool:
    """Is this host, a name or an address in any spelling, such a place? Names are not resolved."""
    host = host.rstrip(".").lower()
    if host in _NAMES:
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        if not host or not _NUMERIC.issuperset(host):
            return False
        try:
            address = ip_address(socket.inet_aton(host))           # 2852039166, 0xa9fea9fe, 169.16689662: what resolvers take
        except (OSError, ValueError):
            return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address in _ADDRESSES


def opened(address: tuple[Any, ...]) -> socket.socket:
    """A socket for one address as ``getaddrinfo`` gives it. Raises PermissionError."""
    family, kind, proto, _, place = address
    if held(str(place[0])):
        raise PermissionError(13, "no provider is there")
    return socket.socket(family=family, type=kind, proto=proto)
