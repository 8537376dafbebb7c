"""How are client keys, groups, provider keys and what was spent kept in SQLite? Plain statements that other databases have as well."""
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.ids import token
from gateway.core.keys import AccountRow, Former, GroupRow, KeyRow, Rules, SpentRow
from gateway.store.writer import Row, Writer

Read = Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]

MAX_KEYS: Final = 100_000
MAX_SPENT: Final = 200_000

KEYS: Final = """SELECT id, name, sha256, hint, created, rotated, revoked, note, rules, former FROM client_keys
ORDER BY created, id LIMIT ?"""
PUT_KEY: Final = """INSERT INTO client_keys (id, name, sha256, hint, created, rotated, revoked, note, rules, former)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, sha256 = excluded.sha256, hint = excluded.hint, rotated = excluded.rotated,
revoked = excluded.revoked, note = excluded.note, rules = excluded.rules, former = excluded.former"""
GROUPS: Final = "SELECT name, parent, budget_usd_day, budget_usd_month FROM key_groups ORDER BY name LIMIT ?"
PUT_GROUP: Final = """INSERT INTO key_groups (name, parent, budget_usd_day, budget_usd_month) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET parent = excluded.parent, budget_usd_day = excluded.budget_usd_day,
budget_usd_month = excluded.budget_usd_month"""
DROP_GROUP: Final = "DELETE FROM key_groups WHERE name = ?"
ACCOUNTS: Final = """SELECT provider, label, key_id, nonce, sealed, created, settings FROM provider_accounts
ORDER BY provider, created, label LIMIT ?"""
PUT_ACCOUNT: Final = """INSERT INTO provider_accounts (provider, label, key_id, nonce, sealed, created, settings)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (provider, label) DO UPDATE SET key_id = excluded.key_id, nonce = excluded.nonce, sealed = excluded.sealed,
settings = excluded.settings"""
DROP_ACCOUNT: Final = "DELETE FROM provider_accounts WHERE provider = ? AND label = ?"
REVISION: Final = "SELECT number FROM key_revision WHERE id = 1"
CHANGED: Final = "UPDATE key_revision SET number = number + 1 WHERE id = 1"
KEEP: Final = """INSERT INTO spent (scope, period, process, nanos) VALUES (?, ?, ?, ?)
ON CONFLICT (period, scope, process) DO UPDATE SET nanos = excluded.nanos"""
FORGET: Final = "DELETE FROM spent WHERE period < ?"
SPENT: Final = "SELECT scope, period, sum(nanos) FROM spent WHERE period = ? AND process <> ? GROUP BY scope, period LIMIT ?"


class SqliteKeys:
    """``core.keys.KeyStore``: changes go through the one writer and are on the disk when they return."""

    def __init__(self, writer: Writer, read: Read) -> None:
        self._writer = writer
        self._read = read

    async def revision(self) -> int:
        return next((int(number) for number, in await self._read(REVISION, ())), 0)

    async def keys(self) -> list[KeyRow]:
        """A file that is there and cannot be opened may hold keys: that is not the same as none."""
        if self._writer.place.blind:
            raise GatewayError("internal", "The client keys of this gateway cannot be read now.", status=503)
        return [key_of(row) for row in await self._read(KEYS, (MAX_KEYS,))]

    async def put_key(self, row: KeyRow) -> None:
        await self._change(Row(PUT_KEY, (row.id, row.name, row.sha256, row.hint, row.created, row.rotated, row.revoked, row.note,
                                         text(row.rules), text(row.former)), droppable=False))

    async def groups(self) -> list[GroupRow]:
        return [GroupRow(name=name, parent=parent, budget_usd_day=day, budget_usd_month=month)
                for name, parent, day, month in await self._read(GROUPS, (MAX_KEYS,))]

    async def put_group(self, row: GroupRow) -> None:
        await self._change(Row(PUT_GROUP, (row.name, row.parent, row.budget_usd_day, row.budget_usd_month), droppable=False))

    async def drop_group(self, name: str) -> None:
        await self._change(Row(DROP_GROUP, (name,), droppable=False))

    async def accounts(self) -> list[AccountRow]:
        return [AccountRow(provider=provider, label=label, key_id=key_id, nonce=nonce, sealed=sealed, created=created, table=table)
                for provider, label, key_id, nonce, sealed, created, table in await self._read(ACCOUNTS, (MAX_KEYS,))]

    async def put_accounts(self, rows: Sequence[AccountRow]) -> None:
        await self._change(*[Row(PUT_ACCOUNT, (row.provider, row.label, row.key_id, row.nonce, row.sealed, row.created, row.table),
                                 droppable=False) for row in rows])

    async def drop_account(self, provider: str, label: str) -> None:
        await self._change(Row(DROP_ACCOUNT, (provider, label), droppable=False))

    async def _change(self, *rows: Row) -> None:
        """Rows that are put together are written together."""
        for row in (*rows, Row(CHANGED, (), droppable=False)):
            if not self._writer.put(row):
                raise GatewayError("internal", "The store of this gateway is closed.", status=503)
        if not await self._writer.flush():
            raise GatewayError("internal", "The store of this gateway cannot be written now; the change takes effect when it can.",
                               status=503)


class SqliteSpent:
    """``core.keys.SpentStore``. Each process has rows of its own, so nobody overwrites what another one spent."""

    def __init__(self, writer: Writer, read: Read) -> None:
        self._writer = writer
        self._read = read
        self._process = token(12)

    def keep(self, rows: Sequence[SpentRow]) -> None:
        for row in rows:
            self._writer.put(Row(KEEP, (row.scope, row.period, self._process, row.nanos), droppable=False))

    async def spent(self, periods: Sequence[str], mine: bool) -> list[SpentRow]:
        but = "" if mine else self._process
        return [SpentRow(scope, period, int(nanos)) for wanted in periods
                for scope, period, nanos in await self._read(SPENT, (wanted, but, MAX_SPENT))]

    def forget(self, before: str) -> None:
        self._writer.put(Row(FORGET, (before,)))


def text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def key_of(row: Any) -> KeyRow:
    id_, name, sha256, hint, created, rotated, revoked, note, rules, former = row
    return KeyRow(id=id_, name=name, sha256=sha256, hint=hint, created=created, rotated=rotated, revoked=revoked, note=note,
                  rules=msgspec.json.decode(rules, type=Rules), former=msgspec.json.decode(former, type=tuple[Former, ...]))
