"""How is something posted to an address that the operator named? Through the guard, without redirects, within a time.

Public addresses only, checked before and on what the name resolved to (``reach``), unless this address was allowed to be private.
"""
import asyncio
from collections.abc import Mapping
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from gateway.core.errors import GatewayError
from gateway.upstream import metadata
from gateway.upstream.failures import told
from gateway.upstream.reach import PublicResolver, check_url

MAX_ANSWER: Final = 4_096


class Poster:
    """One for the process; ``close`` it."""

    def __init__(self, *, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool, timeout_s: float) -> int:
        """The status of the answer. Raises Refused, or GatewayError("transport") in words that hold no address."""
        return (await self.ask(url, body, headers, private=private, timeout_s=timeout_s, limit=MAX_ANSWER))[0]

    async def ask(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool, timeout_s: float,
                  limit: int) -> tuple[int, bytes]:
        """(status, what it said, cut off behind ``limit`` bytes). Raises as ``post`` does."""
        if not private:
            check_url(url)
        try:
            async with asyncio.timeout(timeout_s):
                async with self._session(private).post(URL(url), data=body, headers=headers, allow_redirects=False) as reply:
                    said = bytearray()
                    async for piece in reply.content.iter_any():
                        said += piece
                        if len(said) >= limit:
                            break
                    return reply.status, bytes(said[:limit])
        except TimeoutError:
            raise GatewayError("timeout", f"no answer within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise GatewayError("transport", told(exc).message) from None

    def _session(self, private: bool) -> aiohttp.ClientSession:
        found = self._sessions.get(private)
        if found is None:
            resolver = self._resolver or aiohttp.ThreadedResolver()
            # no DNS cache and no kept connections: what was checked is what is connected to
            connector = aiohttp.TCPConnector(resolver=resolver if private else PublicResolver(resolver), use_dns_cache=False,
                                             force_close=True, limit=16, socket_factory=metadata.opened)
            found = self._sessions[private] = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, headers={"User-Agent": "gateway"})
        return found

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
