"""Which addresses does a host name have? Asked of the system in a thread, remembered for a minute, asked once by all who wait."""
import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import aiohappyeyeballs

from gateway.core.bounded import LruMap

TTL_S: Final = 60.0
MAX_NAMES: Final = 1_024

Addresses = list[aiohappyeyeballs.AddrInfoType]


async def system(host: str, port: int) -> Addresses:
    return [*await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)]


class Names:
    """``lookup``: whom to ask."""

    __slots__ = ("_known", "_asking", "_lookup", "_ttl_s")

    def __init__(self, lookup: Callable[[str, int], Awaitable[Addresses]] = system, ttl_s: float = TTL_S) -> None:
        self._lookup = lookup
        self._ttl_s = ttl_s
        self._known: LruMap[tuple[str, int], tuple[float, Addresses]] = LruMap(MAX_NAMES)
        self._asking: dict[tuple[str, int], asyncio.Task[Addresses]] = {}

    async def find(self, host: str, port: int) -> Addresses:
        """Raises OSError (gaierror) when there are none."""
        key = (host, port)
        loop = asyncio.get_running_loop()
        known = self._known.get(key)
        if known is not None and known[0] > loop.time():
            return known[1]
        if (literal := _literal(host, port)) is not None:
            return literal
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = loop.create_task(self._ask(host, port))
            task.add_done_callback(lambda task: self._told(key, task))
        # shielded: who gives up must not take the answer away from the others
        return await asyncio.shield(task)

    def forget(self, host: str, port: int) -> None:
        """Nobody answered there: next time the system is asked again."""
        self._known.pop((host, port), None)

    async def _ask(self, host: str, port: int) -> Addresses:
        found = await self._lookup(host, port)
        self._known.put((host, port), (asyncio.get_running_loop().time() + self._ttl_s, found))
        return found

    def _told(self, key: tuple[str, int], task: "asyncio.Task[Addresses]") -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()                                      # seen, even if everybody who asked has gone


def _literal(host: str, port: int) -> Addresses | None:
    """An address in digits: nobody has to be asked."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]
    if address.scope_id is not None:                              # which interface that is, the system knows
        return None
    return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))]
