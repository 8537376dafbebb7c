"""Whose request is it? Client keys by digest, and what the holder of one may do.

Keys are kept as SHA-256 only (they are random and long, so no salt and no slow hash is needed). A presented key is hashed once
and looked up by its digest: what an attacker could learn from the timing of the look-up are digests, not keys.

The ring holds the keys of the configuration and those of the store; either half is replaced in one step, and whoever asks next
is judged by the new ones. A ring that ever held a key of the store is never open again: revoking the last key closes the door.
"""
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.keys import Former, GroupRow, KeyRow
from gateway.policy.budget import Scope, chain, scope
from gateway.policy.scopes import granted

_MISSING: Final = "A client key is needed: send it as 'Authorization: Bearer …' or 'x-api-key'."
_WRONG: Final = "This client key is not valid."
_EXPIRED: Final = "This client key has expired."
_REVOKED: Final = "This client key was revoked."
_CLOSED: Final = "The client keys of this gateway cannot be read now."
CLOSED_RETRY_S: Final = 2.0


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a client's requests before they are sent. ``thinking``: "" = as for everybody; ``guards_off``: guards that do
    not look at them."""
    instructions: str = ""
    thinking: Literal["", "pass", "cap", "off"] = ""
    thinking_max_tokens: int = 0
    thinking_max_effort: str = ""
    guards_off: frozenset[str] = frozenset()

    @property
    def tells(self) -> bool:
        """Does a request say anything else than its client wrote?"""
        return bool(self.instructions or self.thinking)

    @property
    def mark(self) -> tuple[str, ...]:
        """All of it as texts: another manner may make another answer of the same request."""
        return () if self == PLAIN else (self.instructions, self.thinking, str(self.thinking_max_tokens), self.thinking_max_effort,
                                         *sorted(self.guards_off))


PLAIN: Final = Manner()


class ClientKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key, compiled. ``sha256`` in lower-case hex; ``expires_at`` epoch seconds, 0 = never; limits 0 = none. ``former``:
    secrets that were rotated away and are good for a while."""
    name: str
    sha256: str
    models: tuple[str, ...] = ("*",)
    rpm: int = 0
    tpm: int = 0
    rpd: int = 0
    concurrency: int = 0
    budget_usd_day: float = 0.0
    budget_usd_month: float = 0.0
    allow_unknown_price: bool = False
    group: str = ""
    expires_at: float = 0.0
    mcp_scopes: tuple[str, ...] = ()
    manner: Manner = PLAIN
    former: tuple[Former, ...] = ()


class Principal:
    """Who asks. ``patterns`` () = every model. Compared by identity; limits and budgets are kept by ``name``. ``mark``: what its
    answers are kept under besides.

    ``scopes``: whatever its spending counts against, its own budget first; ``budgeted``: one of them has a limit. ``mcp_scopes``:
    what it may do over MCP.
    """

    __slots__ = ("_allowed", "allow_unknown_price", "anonymous", "budgeted", "concurrency", "digest", "expires_at", "limited",
                 "manner", "mark", "mcp_scopes", "name", "patterns", "rpd", "rpm", "scopes", "tpm")

    def __init__(self, key: ClientKey | None, scopes: tuple[Scope, ...] = ()) -> None:
        self.anonymous = key is None
        key = key or ClientKey(name="anonymous", sha256="")
        self.name = key.name
        self.digest = bytes.fromhex(key.sha256)
        self.expires_at = key.expires_at
        self.rpm, self.tpm, self.rpd, self.concurrency = key.rpm, key.tpm, key.rpd, key.concurrency
        self.limited = bool(key.rpm or key.tpm or key.rpd or key.concurrency)
        self.patterns: tuple[str, ...] = () if "*" in key.models else key.models
        self._allowed = matcher(self.patterns)
        self.scopes = scopes
        self.budgeted = any(scope.limited for scope in scopes)
        self.allow_unknown_price = key.allow_unknown_price
        self.mcp_scopes = granted(key.mcp_scopes)
        self.manner = key.manner
        self.mark = (key.name, *self.patterns, "", *key.manner.mark)

    def __repr__(self) -> str:
        return f"Principal({self.name!r})"

    def allows(self, name: str) -> bool:
        """Does the allow-list name this model, literally or by a pattern?"""
        return not self.patterns or self._allowed(name) is not None


class KeyRing:
    """All client keys. Without any, everybody is the anonymous principal (open mode, loopback only: see access.py)."""

    __slots__ = ("_built", "_by_digest", "_configured", "_groups", "_overall", "_rows", "_stored_groups", "_until", "_wall",
                 "anonymous", "closed", "principals", "required")

    def __init__(self, keys: Sequence[ClientKey] = (), wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._rows: tuple[KeyRow, ...] = ()
        self._stored_groups: tuple[GroupRow, ...] = ()
        self._built: dict[KeyRow, tuple[ClientKey, Principal]] = {}    # of the store's keys, what need not be made anew
        self.closed = False                      # nobody knows which keys the store holds
        self.configure(keys)

    @property
    def open(self) -> bool:
        return not (self._configured or self._rows or self.required or self.closed)

    # ------------------------------------------------------------------ what it holds
    def configure(self, keys: Sequence[ClientKey], groups: Sequence[GroupRow] = (), overall: Scope | None = None,
                  required: bool = False) -> None:
        """The configuration's half. ``overall``: the budget of everybody together; ``required``: closed without keys as well."""
        self._configured = tuple(keys)
        self._groups = tuple(groups)
        self._overall = (overall,) if overall is not None else ()
        self.required = required
        self._built = {}
        self._build()

    def stock(self, rows: Sequence[KeyRow], groups: Sequence[GroupRow] = ()) -> None:
        """The store's half. Names that the configuration has as well mean the configuration's."""
        self._rows = tuple(rows)
        if self._stored_groups != tuple(groups):
            self._stored_groups, self._built = tuple(groups), {}
        self.closed = False
        self._build()

    @property
    def names(self) -> frozenset[str]:
        """Of the configuration's keys."""
        return frozenset(key.name for key in self._configured)

    @property
    def groups(self) -> dict[str, GroupRow]:
        return {group.name: group for group in (*self._stored_groups, *self._groups)}

    @property
    def configured(self) -> tuple[ClientKey, ...]:
        return self._configured

    def _build(self) -> None:
        groups, taken = self.groups, self.names
        before, self._built = self._built, {}
        for row in self._rows:
            if not row.revoked and row.name not in taken:
                self._built[row] = before.get(row) or self._principal(client_key(row), groups)
        pairs = [*(self._principal(key, groups) for key in self._configured), *self._built.values()]
        self.principals = tuple([principal for _, principal in pairs])
        self.anonymous = Principal(None, self._overall if any(one.limited for one in self._overall) else ())
        self._by_digest: dict[bytes, Principal | None] = dict.fromkeys(
            bytes.fromhex(row.sha256) for row in self._rows if row.revoked)
        self._until: dict[bytes, float] = {}
        for key, principal in reversed(pairs):
            for former in key.former:
                self._until[bytes.fromhex(former.sha256)] = former.until
                self._by_digest[bytes.fromhex(former.sha256)] = principal
            self._by_digest[principal.digest] = principal

    def _principal(self, key: ClientKey, groups: Mapping[str, GroupRow]) -> tuple[ClientKey, Principal]:
        own = scope(f"key:{key.name}", f"client key {key.name!r}", key.budget_usd_day, key.budget_usd_month)
        return key, Principal(key, (own, *chain(groups, key.group), *self._overall))

    # ------------------------------------------------------------------ who asks
    def authenticate(self, headers: Mapping[str, str], query_key: str | None = None) -> Principal:
        """The first credential that is right wins: Bearer, x-api-key, x-goog-api-key, then ``?key=`` where the caller passes
        it. ``headers`` is case-insensitive (or has lower-case names). Raises unauthorized; the message says nothing about
        what was sent."""
        if self.open:
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
        if self.closed:
            raise GatewayError("shed", _CLOSED, retry_after_s=CLOSED_RETRY_S)
        raise GatewayError("unauthorized", told)

    def _find(self, token: str) -> Principal | str:
        """The key's holder, or why there is none."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        principal = self._by_digest.get(digest, self.anonymous)
        if principal is None:
            return _REVOKED
        if principal is self.anonymous:
            return _WRONG
        until = principal.expires_at
        if not hmac.compare_digest(principal.digest, digest):
            rotated = self._until.get(digest)
            if rotated is None:
                return _WRONG
            until = min(until or rotated, rotated)
        if until and self._wall() >= until:
            return _EXPIRED
        return principal


def client_key(row: KeyRow) -> ClientKey:
    """A key of the store, compiled."""
    rules = {name: getattr(row.rules, name) for name in row.rules.__struct_fields__}
    return ClientKey(name=row.name, sha256=row.sha256, former=row.former, **rules)


def digest(key: str) -> str:
    """What to keep of a key: its SHA-256 in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def matcher(patterns: Sequence[str]) -> Callable[[str], re.Match[str] | None]:
    """Whole-name match of any pattern; ``*`` is any run of characters, slashes too, and nothing else is special."""
    alternatives = (".*".join(re.escape(piece) for piece in pattern.split("*")) for pattern in patterns)
    return re.compile("|".join(f"(?:{one})" for one in alternatives) or r"(?!)", re.DOTALL).fullmatch
