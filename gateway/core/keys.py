"""What is kept of client keys, of the groups that share a budget, of what was spent, and of provider keys? Rows and their ports.

Money is counted in nano-dollars (``NANOS`` a dollar): whole numbers add up the same in every order and on every machine.
"""
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

NANOS: Final = 1_000_000_000


class Former(msgspec.Struct, frozen=True):
    """A secret that was rotated away; it is good until then."""
    sha256: str
    until: float


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a client key may do. Limits of 0 are none; ``expires_at`` is epoch seconds, 0 = never."""
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
    mcp_scopes: tuple[str, ...] = ()             # what it may do over MCP (policy.scopes); () = nothing


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client key. ``hint`` is how its secret begins, to tell keys apart; the secret itself is nowhere."""
    id: str
    name: str
    sha256: str
    hint: str
    created: float
    rules: Rules = Rules()
    rotated: float = 0.0
    revoked: float = 0.0                         # 0 = it is not
    former: tuple[Former, ...] = ()
    note: str = ""


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """Keys, or groups of keys, that share a budget."""
    name: str
    parent: str = ""
    budget_usd_day: float = 0.0
    budget_usd_month: float = 0.0


class SpentRow(msgspec.Struct, frozen=True):
    """What one process has spent in all of a day (``2026-11-30``) or month (``2026-11``), UTC. Written whole, so that writing it
    twice does no harm."""
    scope: str
    period: str
    nanos: int


class AccountRow(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's key, sealed under the master key ``key_id``. ``table`` is what a [[providers]] table of the configuration
    would say besides, as JSON; it counts where no provider of that id is configured."""
    provider: str
    label: str
    key_id: str
    nonce: bytes
    sealed: bytes
    created: float
    table: str = "{}"


class KeyStore(Protocol):
    """Keeps client keys, groups and provider keys. Writing is durable when it returns; all of it may raise GatewayError."""

    async def revision(self) -> int:
        """Another number after every change, whoever made it: one cheap read."""
        ...

    async def keys(self) -> list[KeyRow]: ...

    async def put_key(self, row: KeyRow) -> None: ...

    async def groups(self) -> list[GroupRow]: ...

    async def put_group(self, row: GroupRow) -> None: ...

    async def drop_group(self, name: str) -> None: ...

    async def accounts(self) -> list[AccountRow]: ...

    async def put_accounts(self, rows: Sequence[AccountRow]) -> None:
        """All of them or none."""
        ...

    async def drop_account(self, provider: str, label: str) -> None: ...


class SpentStore(Protocol):
    """Keeps what was spent. ``keep`` is synchronous and never fails: rows wait until they can be written."""

    def keep(self, rows: Sequence[SpentRow]) -> None: ...

    async def spent(self, periods: Sequence[str], mine: bool) -> list[SpentRow]:
        """Sums by scope and period; without ``mine`` only what other processes wrote."""
        ...

    def forget(self, before: str) -> None:
        """Periods that are long over."""
        ...
