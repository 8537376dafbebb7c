"""How does a call go out whose credentials must be made for it? Signed or with a fresh token, then like any other.

Stands before the real transport for such accounts only; all others have headers that were made once. A token that the upstream
refuses is replaced and the call made once more (spec of OAuth: 401 may mean that it was revoked early).
"""
from typing import Protocol

import msgspec

from gateway.core.clock import Clock
from gateway.core.redact import Scrubber, worth_hiding
from gateway.providers.auth import BEARER
from gateway.providers.registry import Account, Provider
from gateway.providers.sigv4 import AwsKeys, sign
from gateway.upstream.tokens import Holder, Tokens
from gateway.upstream.transport import Outgoing, Reply, Transport


class Signer(Protocol):
    """Makes the credentials of one call."""

    async def sign(self, out: Outgoing) -> tuple[Outgoing, str]:
        """The call with its credentials, and what of them must never be seen."""
        ...

    def again(self, secret: str) -> bool:
        """The upstream refused these. Will others be made?"""
        ...


class Bearer:
    """A token that is refreshed in time."""

    __slots__ = ("_tokens", "_holder")

    def __init__(self, tokens: Tokens, holder: Holder) -> None:
        self._tokens = tokens
        self._holder = holder

    async def sign(self, out: Outgoing) -> tuple[Outgoing, str]:
        token = await self._tokens.get(self._holder)
        name, prefix = BEARER
        return msgspec.structs.replace(out, headers={**out.headers, name: prefix + token}), token

    def again(self, secret: str) -> bool:
        return self._tokens.refused(self._holder, secret)


class Aws:
    """A signature over the call."""

    __slots__ = ("_keys", "_clock")

    def __init__(self, keys: AwsKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    async def sign(self, out: Outgoing) -> tuple[Outgoing, str]:
        typed = {name: value for name, value in out.headers.items() if name.lower() == "content-type"}
        made = sign(self._keys, out.method, out.url, out.body or b"", self._clock.wall(), typed)
        return msgspec.structs.replace(out, headers={**out.headers, **made}), self._keys.session.reveal()

    def again(self, secret: str) -> bool:
        return False


class Signing:
    """``transport.Transport`` for one account."""

    __slots__ = ("_inner", "_signer")

    def __init__(self, inner: Transport, signer: Signer) -> None:
        self._inner = inner
        self._signer = signer

    async def send(self, out: Outgoing) -> Reply:
        signed, secret = await self._signer.sign(out)
        reply = await self._inner.send(signed)
        if reply.status == 401 and self._signer.again(secret):
            reply.close()
            signed, secret = await self._signer.sign(out)
            reply = await self._inner.send(signed)
        return Hidden(reply, secret) if secret else reply

    async def close(self) -> None:
        """The inner one belongs to somebody else."""

    def open_connections(self) -> int:
        return self._inner.open_connections()


class Hidden:
    """A reply without the token that it was asked with, whatever the upstream repeats (contract 8). Cut over several pieces of a
    stream it is not seen in the bytes: who reads the turn hides it there, and finds it in ``secret``."""

    __slots__ = ("_inner", "_scrubber", "secret", "status", "headers", "__weakref__")

    def __init__(self, inner: Reply, secret: str) -> None:
        self._inner = inner
        self._scrubber = Scrubber((secret,))
        self.secret = secret if worth_hiding(secret) else ""
        self.status = inner.status
        self.headers = inner.headers

    @property
    def complete(self) -> bool:
        return self._inner.complete

    async def chunk(self) -> bytes:
        while data := await self._inner.chunk():
            if clean := self._scrubber.feed(data):
                return clean
        return self._scrubber.flush()

    async def read(self, limit: int) -> bytes:
        return self._scrubber.feed(await self._inner.read(limit)) + self._scrubber.flush()

    def close(self) -> None:
        self._inner.close()


def signed(transport: Transport, provider: Provider, account: Account, tokens: Tokens, clock: Clock) -> Transport:
    """The transport that this account's calls go through."""
    grant = account.grant
    if grant is None:
        return transport
    if isinstance(grant, AwsKeys):
        return Signing(transport, Aws(grant, clock))
    return Signing(transport, Bearer(tokens, holder(provider, account)))


def holder(provider: Provider, account: Account) -> Holder:
    """Whose tokens an account's are."""
    assert account.grant is not None and not isinstance(account.grant, AwsKeys)
    return Holder(f"{provider.id}/{account.label or account.ordinal}", account.grant, account.proxy or provider.proxy)
