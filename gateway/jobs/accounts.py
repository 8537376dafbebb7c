"""Which provider keys does the store hold, and how do they come into use? Sealed in the store, opened once for each configuration.

A key for a provider that the configuration has is one more account of it; one for another provider brings that provider along, as
the catalogue or the table beside the key describes it. Commands, admin API and MCP add and remove them here.
"""
import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.config import upstreams
from gateway.config.decode import Decoder
from gateway.config.problems import Problems
from gateway.config.schema import KeyTable, ProviderTable
from gateway.config.snapshot import Snapshot
from gateway.core.clock import Clock, iso
from gateway.core.errors import GatewayError, bad_request
from gateway.core.keys import AccountRow, KeyStore
from gateway.core.secret import Secret
from gateway.providers.presets import presets
from gateway.providers.registry import Account, Provider
from gateway.store.seal import Sealed, Sealer

log = logging.getLogger("gateway.accounts")

MAX_ACCOUNTS: Final = 10_000
# Of a [[providers]] table; what may hold secrets is not among them.
TABLE: Final = frozenset({"preset", "wire", "base_url", "auth", "vars", "models", "quirks", "limits", "timeouts"})
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY: Final = re.compile(r"[\x21-\x7e]{1,8192}")


class Kept(msgspec.Struct, frozen=True):
    """A key of the store, opened."""
    row: AccountRow
    key: Secret


class Accounts:
    """The provider keys of one store; lives on when the configuration is reloaded."""

    def __init__(self, store: KeyStore, sealer: Sealer, clock: Clock) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._rows: tuple[AccountRow, ...] = ()
        self._told: set[str] = set()
        self._changing = asyncio.Lock()
        self.changed: Callable[[], Awaitable[None]] | None = None      # what puts a change into force in this process

    async def refresh(self) -> bool:
        """Take over what the store holds; is anything new? Raises GatewayError: what was known stands."""
        rows = tuple(await self._store.accounts())
        if rows == self._rows:
            return False
        self._rows = rows
        return True

    # ------------------------------------------------------------------ use
    def apply(self, snapshot: Snapshot) -> Snapshot:
        """The configuration with the keys of the store."""
        kept = self._opened()
        if not kept:
            return snapshot
        providers = [self._with_more(provider, kept.pop(provider.id, [])) for provider in snapshot.providers]
        order = max((provider.order for provider in providers), default=-1)
        for id, accounts in kept.items():
            if (made := self._made(id, accounts, order + 1, snapshot)) is not None:
                providers.append(made)
                order += 1
        secrets = tuple(dict.fromkeys((*snapshot.secrets, *(key for provider in providers for key in provider.keys if key))))
        return msgspec.structs.replace(snapshot, providers=tuple(providers), secrets=secrets)

    def _opened(self) -> dict[str, list[Kept]]:
        found: dict[str, list[Kept]] = {}
        for row in self._rows:
            try:
                key = self._sealer.open(Sealed(row.key_id, row.nonce, row.sealed), place(row.provider, row.label))
            except ValueError as error:
                self._say(f"the stored key {row.label!r} of {row.provider} {error}; it is not used")
            else:
                found.setdefault(row.provider, []).append(Kept(row, Secret(key)))
        return found

    def _with_more(self, provider: Provider, more: list[Kept]) -> Provider:
        known = set(provider.keys)
        own = [account for account in provider.accounts if account.key or account.grant is not None or not more]
        own += [Account(len(own) + n, one.key, label=one.row.label)
                for n, one in enumerate((one for one in more if one.key.reveal() not in known), 1)]
        return msgspec.structs.replace(provider, accounts=tuple(own)) if more else provider

    def _made(self, id: str, kept: list[Kept], order: int, snapshot: Snapshot) -> Provider | None:
        problems = Problems()
        table = provider_table(id, kept[0].row.table, problems)
        table = msgspec.structs.replace(table, api_keys=tuple(KeyTable(key=one.key, label=one.row.label) for one in kept))
        provider = upstreams.build(table, id, order, {}, problems, timeouts=snapshot.timeouts, routing=snapshot.routing)
        if problems.found:
            self._say(f"the stored provider {id} cannot be used: " + "; ".join(f"{path}: {text}" for path, text in problems.found))
            return None
        return provider

    def _say(self, text: str) -> None:
        """Once."""
        if text not in self._told:
            self._told.add(text)
            log.error("%s", text)

    # ------------------------------------------------------------------ change
    async def listed(self) -> list[dict[str, Any]]:
        """Every stored key as data; the keys themselves are told to nobody."""
        found = []
        for row in await self._store.accounts():
            try:
                self._sealer.open(Sealed(row.key_id, row.nonce, row.sealed), place(row.provider, row.label))
                state = "ok"
            except ValueError as error:
                state = str(error)
            found.append({"provider": row.provider, "label": row.label, "state": state, "master_key": row.key_id,
                          "created": iso(row.created), "table": msgspec.json.decode(row.table)})
        return found

    async def add(self, provider: str, key: str, label: str = "", table: Mapping[str, Any] | None = None, *,
                  configured: bool = False) -> dict[str, Any]:
        """Seal a key and keep it. ``configured``: the configuration has this provider; else the catalogue or ``table`` must say
        what it is. Raises bad_request naming the field."""
        if not _ID.fullmatch(provider):
            raise bad_request("provider: may hold letters, digits, '.', '_' and '-' only, at most 64", "provider")
        if not _KEY.fullmatch(key):
            raise bad_request("key: must be printable ASCII without spaces", "key")
        text = msgspec.json.encode(dict(table or {})).decode()
        if not configured:
            _usable(provider, text)
        async with self._changing:
            rows = await self._store.accounts()
            taken = {row.label for row in rows if row.provider == provider}
            label = label or next(name for n in range(1, len(taken) + 2) if (name := f"stored{n}") not in taken)
            if not _ID.fullmatch(label):
                raise bad_request("label: may hold letters, digits, '.', '_' and '-' only, at most 64", "label")
            if label not in taken and len(rows) >= MAX_ACCOUNTS:
                raise bad_request(f"There are {len(rows)} stored keys, and there may not be more.", "key")
            sealed = self._sealer.seal(key, place(provider, label))
            await self._store.put_accounts([AccountRow(provider=provider, label=label, key_id=sealed.key_id, nonce=sealed.nonce,
                                                       sealed=sealed.data, created=self._clock.wall(), table=text)])
            await self._told_all()
        return {"provider": provider, "label": label}

    async def remove(self, provider: str, label: str) -> None:
        async with self._changing:
            if not any((row.provider, row.label) == (provider, label) for row in await self._store.accounts()):
                raise GatewayError("not_found", f"The store holds no key {label[:64]!r} of {provider[:64]!r}.", param="label")
            await self._store.drop_account(provider, label)
            await self._told_all()

    async def _told_all(self) -> None:
        if self.changed is not None:
            await self.changed()

    async def reencrypt(self) -> int:
        """Seal every key under the current master key, all or none; how many. Raises bad_request where one does not open."""
        async with self._changing:
            rows: list[AccountRow] = []
            for row in await self._store.accounts():
                where = place(row.provider, row.label)
                try:
                    sealed = self._sealer.seal(self._sealer.open(Sealed(row.key_id, row.nonce, row.sealed), where), where)
                except ValueError as error:
                    raise bad_request(f"The stored key {row.label!r} of {row.provider} {error}; nothing was changed.") from None
                rows.append(msgspec.structs.replace(row, key_id=sealed.key_id, nonce=sealed.nonce, sealed=sealed.data))
            if rows:
                await self._store.put_accounts(rows)
        return len(rows)


def place(provider: str, label: str) -> str:
    """What a sealed key is bound to."""
    return f"provider\0{provider}\0{label}"


def provider_table(id: str, text: str, problems: Problems) -> ProviderTable:
    """What the row says of its provider; nothing in it is looked up in files or the environment."""
    raw = msgspec.json.decode(text, type=dict[str, Any])
    for name in sorted(raw.keys() - TABLE):
        problems.add(name, f"may not be stored; there are: {', '.join(sorted(TABLE))}")
    if "${" in text:
        problems.add("table", "may not hold ${…}")
        raw = {}
    values = {name: value for name, value in raw.items() if name in TABLE}
    if not values.get("preset") and id in presets():
        values["preset"] = id
    return Decoder({}, problems).table({**values, "id": id}, ProviderTable, "")


def _usable(provider: str, text: str) -> None:
    problems = Problems()
    table = msgspec.structs.replace(provider_table(provider, text, problems), api_keys=(KeyTable(key=Secret("probe")),))
    defaults = Snapshot()
    upstreams.build(table, "table", 0, {}, problems, timeouts=defaults.timeouts, routing=defaults.routing)
    if problems.found:
        path, what = problems.found[0]
        raise bad_request(f"{path}: {what}", path)
