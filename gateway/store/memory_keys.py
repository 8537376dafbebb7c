"""Which client keys and what spending does ``memory:`` keep? Those of this process, for as long as it lives."""
from collections.abc import Sequence

from gateway.core.keys import AccountRow, GroupRow, KeyRow, SpentRow


class MemoryKeys:
    """``core.keys.KeyStore``."""

    def __init__(self) -> None:
        self._revision = 1
        self._keys: dict[str, KeyRow] = {}
        self._groups: dict[str, GroupRow] = {}
        self._accounts: dict[tuple[str, str], AccountRow] = {}

    async def revision(self) -> int:
        return self._revision

    async def keys(self) -> list[KeyRow]:
        return list(self._keys.values())

    async def put_key(self, row: KeyRow) -> None:
        self._keys[row.id] = row
        self._revision += 1

    async def groups(self) -> list[GroupRow]:
        return list(self._groups.values())

    async def put_group(self, row: GroupRow) -> None:
        self._groups[row.name] = row
        self._revision += 1

    async def drop_group(self, name: str) -> None:
        self._groups.pop(name, None)
        self._revision += 1

    async def accounts(self) -> list[AccountRow]:
        return list(self._accounts.values())

    async def put_accounts(self, rows: Sequence[AccountRow]) -> None:
        for row in rows:
            self._accounts[row.provider, row.label] = row
        self._revision += 1

    async def drop_account(self, provider: str, label: str) -> None:
        self._accounts.pop((provider, label), None)
        self._revision += 1


class MemorySpent:
    """``core.keys.SpentStore``: nobody else writes here, and the process itself knows what it spent."""

    def keep(self, rows: Sequence[SpentRow]) -> None:
        """Nothing outlives the process."""

    async def spent(self, periods: Sequence[str], mine: bool) -> list[SpentRow]:
        return []

    def forget(self, before: str) -> None:
        """Nothing is kept."""
