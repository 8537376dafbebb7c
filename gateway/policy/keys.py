"""Whose request is it? Client keys by digest, and what the holder of one may do.

Keys are kept as SHA-256 only (they are random and long, so no salt and no slow hash is needed). A presented key is hashed once
and looked up by its digest: what an attacker could learn from the timing of the look-up are digests, not keys.
"""
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.errors import GatewayError

_MISSING: Final = "A client key is needed: send it as 'Authorization: Bearer …' or 'x-api-key'."
_WRONG: Final = "This client key is not valid."
_EXPIRED: Final = "This client key has expired."


class ClientKey(msgspec.Struct, frozen=True, kw_only=True):
    """One row of [[auth.keys]], compiled. ``sha256`` in lower-case hex; ``expires_at`` epoch seconds, 0 = never; limits 0 = none."""
    name: str
    sha256: str
    models: tuple[str, ...] = ("*",)
    rpm: int = 0
    tpm: int = 0
    concurrency: int = 0
    expires_at: float = 0.0


class Principal:
    """Who asks. ``patterns`` () = every model. Compared by identity; limits are kept by ``name``."""

    __slots__ = ("_allowed", "anonymous", "concurrency", "digest", "expires_at", "limited", "name", "patterns", "rpm", "tpm")

    def __init__(self, key: ClientKey | None) -> None:
        self.anonymous = key is None
        key = key or ClientKey(name="anonymous", sha256="")
        self.name = key.name
        self.digest = bytes.fromhex(key.sha256)
        self.expires_at = key.expires_at
        self.rpm, self.tpm, self.concurrency = key.rpm, key.tpm, key.concurrency
        self.limited = bool(key.rpm or key.tpm or key.concurrency)
        self.patterns: tuple[str, ...] = () if "*" in key.models else key.models
        self._allowed = matcher(self.patterns)

    def __repr__(self) -> str:
        return f"Principal({self.name!r})"

    def allows(self, name: str) -> bool:
        """Does the allow-list name this model, literally or by a pattern?"""
        return not self.patterns or self._allowed(name) is not None


class KeyRing:
    """All client keys. Without any, everybody is the anonymous principal (open mode, loopback only: see access.py)."""

    __slots__ = ("_by_digest", "_wall", "anonymous", "principals")

    def __init__(self, keys: Sequence[ClientKey], wall: Callable[[], float] = time.time) -> None:
        self.principals = tuple(Principal(key) for key in keys)
        self.anonymous = Principal(None)
        self._by_digest = {principal.digest: principal for principal in reversed(self.principals)}
        self._wall = wall

    @property
    def open(self) -> bool:
        return not self.principals

    def authenticate(self, headers: Mapping[str, str], query_key: str | None = None) -> Principal:
        """The first credential that is right wins: Bearer, x-api-key, x-goog-api-key, then ``?key=`` where the caller passes
        it. ``headers`` is case-insensitive (or has lower-case names). Raises unauthorized; the message says nothing about
        what was sent."""
        if not self.principals:
            return self.anonymous
        told = _MISSING
        bearer = headers.get("authorization")
        if bearer is not None and bearer[:7].lower() == "bearer ":
            found = self._find(bearer[7:].strip())
            if isinstance(found, Principal):
                return found
            told = found
        for name in ("x-api-key", "x-goog-api-key"):
            token = headers.get(name)
            if token:
                found = self._find(token.strip())
                if isinstance(found, Principal):
                    return found
                told = found
        if query_key:
            found = self._find(query_key)
            if isinstance(found, Principal):
                return found
            told = found
        raise GatewayError("unauthorized", told)

    def _find(self, token: str) -> Principal | str:
        """The key's holder, or why there is none."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        principal = self._by_digest.get(digest)
        if principal is None or not hmac.compare_digest(principal.digest, digest):
            return _WRONG
        if principal.expires_at and self._wall() >= principal.expires_at:
            return _EXPIRED
        return principal


def digest(key: str) -> str:
    """What to keep of a key: its SHA-256 in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def matcher(patterns: Sequence[str]) -> Callable[[str], re.Match[str] | None]:
    """Whole-name match of any pattern; ``*`` is any run of characters, slashes too, and nothing else is special."""
    alternatives = (".*".join(re.escape(piece) for piece in pattern.split("*")) for pattern in patterns)
    return re.compile("|".join(f"(?:{one})" for one in alternatives) or r"(?!)", re.DOTALL).fullmatch
