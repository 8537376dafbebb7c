"""How are client keys made, listed, changed, rotated and revoked? The one place for it: commands, admin API and MCP ask here.

Secrets are 32 random bytes that are told once, by ``create`` and ``rotate``; whatever else is told of a key is safe to show and to
write into an audit log. A change is on the disk and in this process's ring when it returns; other processes see it within a second
or two (``refresh``).
"""
import asyncio
import hashlib
import math
import secrets
from typing import Any, Final

import msgspec

from gateway.core.clock import Clock, iso
from gateway.core.errors import GatewayError, bad_request
from gateway.core.ids import token
from gateway.core.keys import NANOS, Former, GroupRow, KeyRow, KeyStore, Rules
from gateway.policy.budget import Budgets
from gateway.policy.keys import ClientKey, KeyRing
from gateway.policy.scopes import SCOPES
from gateway.policy.scopes import known as is_scope

PREFIX: Final = "gw-"
HINT_CHARS: Final = 8
NAME_CHARS: Final = 100
NOTE_CHARS: Final = 1_000
MAX_ROWS: Final = 50_000
MAX_FORMER: Final = 4
MAX_GRACE_S: Final = 90 * 86_400.0
LIMIT: Final = 1_000_000_000
_COUNTS: Final = ("rpm", "tpm", "rpd", "concurrency")
_DOLLARS: Final = ("budget_usd_day", "budget_usd_month")
_TAKEN: Final = frozenset({"anonymous"})


class Made(msgspec.Struct, frozen=True):
    """A key with its secret, which is told now and never again."""
    row: KeyRow
    secret: str

    def __repr__(self) -> str:
        return f"Made({self.row.name!r})"


class KeyBook:
    """The keys of one store, and the ring that answers for them in this process."""

    def __init__(self, store: KeyStore, ring: KeyRing, clock: Clock, budgets: Budgets | None = None) -> None:
        self._store = store
        self.ring = ring
        self._clock = clock
        self._budgets = budgets
        self._seen = 0
        self._changing = asyncio.Lock()

    async def refresh(self) -> bool:
        """Take over what anybody changed since; False where nothing did. Raises GatewayError: what was known stands."""
        revision = await self._store.revision()
        if revision == self._seen:
            return False
        await self._load()
        self._seen = revision
        return True

    async def open(self) -> None:
        """At the start: keys that cannot be read are not the same as no keys."""
        try:
            await self.refresh()
            if not self._seen:
                await self._load()
        except GatewayError:
            self.ring.closed = True
            raise

    async def _load(self) -> None:
        self.ring.stock(await self._store.keys(), await self._store.groups())

    # ------------------------------------------------------------------ keys
    async def listed(self) -> list[dict[str, Any]]:
        """Every key as data, the configuration's first. No secret, no digest."""
        own = [self._configured(key) for key in self.ring.configured]
        return own + [self.view(row) for row in await self._store.keys()]

    async def create(self, name: str, rules: Rules | None = None, note: str = "") -> Made:
        """Raises bad_request naming the field."""
        rules = rules or Rules()
        async with self._changing:
            rows = await self._store.keys()
            self._free(name.strip(), rows)
            await self._sound(rules, note)
            if len(rows) >= MAX_ROWS:
                raise bad_request(f"There are {len(rows)} keys, and there may not be more.", "name")
            secret = new_secret()
            row = KeyRow(id="key_" + token(16), name=name.strip(), sha256=digest(secret), hint=secret[:HINT_CHARS],
                         created=self._clock.wall(), rules=rules, note=note)
            await self._put(row)
        return Made(row, secret)

    async def rotate(self, ref: str, grace_s: float = 0.0) -> Made:
        """A new secret; the old one is good for ``grace_s`` more."""
        if not 0 <= grace_s <= MAX_GRACE_S:
            raise bad_request(f"grace: must be between 0 and {MAX_GRACE_S:.0f} seconds", "grace")
        async with self._changing:
            row, now, secret = await self._active(ref), self._clock.wall(), new_secret()
            former = (Former(row.sha256, now + grace_s), *(one for one in row.former if one.until > now)) if grace_s else ()
            row = msgspec.structs.replace(row, sha256=digest(secret), hint=secret[:HINT_CHARS], rotated=now,
                                          former=former[:MAX_FORMER])
            await self._put(row)
        return Made(row, secret)

    async def revoke(self, ref: str) -> KeyRow:
        """At once and for good."""
        async with self._changing:
            row = msgspec.structs.replace(await self._active(ref), revoked=self._clock.wall(), former=())
            await self._put(row)
        return row

    async def update(self, ref: str, note: str | None = None, **changes: Any) -> KeyRow:
        """``changes``: fields of ``Rules``. The name stays: limits, budgets and stored responses belong to it."""
        unknown = next((name for name in changes if name not in Rules.__struct_fields__), None)
        if unknown is not None:
            raise bad_request(f"{unknown}: is not known", unknown)
        async with self._changing:
            row = await self._active(ref)
            row = msgspec.structs.replace(row, rules=msgspec.structs.replace(row.rules, **changes),
                                          note=row.note if note is None else note)
            await self._sound(row.rules, row.note)
            await self._put(row)
        return row

    async def _put(self, row: KeyRow) -> None:
        """Written, read back and in force."""
        await self._store.put_key(row)
        if not any(kept.id == row.id and kept.sha256 == row.sha256 for kept in await self._store.keys()):
            raise GatewayError("internal", "The key could not be stored.", status=503)
        await self._load()

    async def find(self, ref: str) -> KeyRow:
        """By id or by name: the one that is not revoked, else the newest. Raises not_found."""
        rows = [row for row in await self._store.keys() if ref in (row.id, row.name)]
        if not rows:
            where = "; it stands in the configuration, and is changed there" if ref in self.ring.names else ""
            raise GatewayError("not_found", f"There is no client key {ref[:NAME_CHARS]!r} in the store{where}.", param="key")
        return next((row for row in rows if not row.revoked), rows[-1])

    async def _active(self, ref: str) -> KeyRow:
        row = await self.find(ref)
        if row.revoked:
            raise bad_request(f"The client key {row.name!r} was revoked at {iso(row.revoked)}.", "key")
        return row

    # ------------------------------------------------------------------ groups
    async def put_group(self, group: GroupRow) -> GroupRow:
        """Make or change a group. Raises bad_request naming the field."""
        _named(group.name)
        for field in _DOLLARS:
            _money(field, getattr(group, field))
        async with self._changing:
            await self._load()
            known = self.ring.groups
            if group.parent and group.parent not in known:
                raise bad_request(f"parent: there is no group {group.parent[:NAME_CHARS]!r}", "parent")
            above, seen = group.parent, {group.name}
            while above:
                if above in seen:
                    raise bad_request(f"parent: {group.parent!r} is below {group.name!r} already", "parent")
                seen.add(above)
                above = known[above].parent if above in known else ""
            await self._store.put_group(group)
            await self._load()
        return group

    async def drop_group(self, name: str) -> None:
        """Raises bad_request where a key or a group still belongs to it."""
        async with self._changing:
            await self._load()
            if name not in {group.name for group in await self._store.groups()}:
                raise GatewayError("not_found", f"There is no group {name[:NAME_CHARS]!r} in the store.", param="group")
            users = [row.name for row in await self._store.keys() if row.rules.group == name and not row.revoked]
            users += [group.name for group in self.ring.groups.values() if group.parent == name]
            if users:
                raise bad_request(f"group: {', '.join(users[:5])} still belong to it", "group")
            await self._store.drop_group(name)
            await self._load()

    def listed_groups(self) -> list[dict[str, Any]]:
        return [{"name": group.name, "parent": group.parent, "budget_usd_day": group.budget_usd_day,
                 "budget_usd_month": group.budget_usd_month, **self._spent(f"group:{group.name}")}
                for group in self.ring.groups.values()]

    # ------------------------------------------------------------------ what may be shown
    def view(self, row: KeyRow) -> dict[str, Any]:
        """A key as data, without anything that opens a door."""
        now = self._clock.wall()
        state = "revoked" if row.revoked else "expired" if 0 < row.rules.expires_at <= now else \
            "shadowed" if row.name in self.ring.names else "active"
        until = max((former.until for former in row.former if former.until > now), default=0.0)
        return {"id": row.id, "name": row.name, "source": "store", "state": state, "hint": row.hint + "…", "created": iso(row.created),
                "rotated": iso(row.rotated), "old_secret_until": iso(until), "revoked": iso(row.revoked), "note": row.note,
                **_rules(row.rules), **self._spent(f"key:{row.name}")}

    def _configured(self, key: ClientKey) -> dict[str, Any]:
        expired = 0 < key.expires_at <= self._clock.wall()
        return {"id": "", "name": key.name, "source": "config", "state": "expired" if expired else "active", "hint": "", "created": "",
                "rotated": "", "old_secret_until": "", "revoked": "", "note": "", **_rules(key), **self._spent(f"key:{key.name}")}

    def _spent(self, scope: str) -> dict[str, float]:
        day, month = self._budgets.spent(scope) if self._budgets is not None else (0, 0)
        return {"spent_usd_day": day / NANOS, "spent_usd_month": month / NANOS}

    # ------------------------------------------------------------------ what is refused
    def _free(self, name: str, rows: list[KeyRow]) -> None:
        _named(name)
        if name in self.ring.names or any(row.name == name and not row.revoked for row in rows):
            raise bad_request(f"name: there is a client key {name!r} already", "name")
        # Responses, cached answers, records and spending are kept by name: whoever got it next would get those as well.
        if any(row.name == name for row in rows):
            raise bad_request(f"name: {name!r} was the name of a revoked key, and what is kept under it is not another's", "name")

    async def _sound(self, rules: Rules, note: str) -> None:
        if not rules.models or not all(pattern.strip() for pattern in rules.models):
            raise bad_request('models: name at least one pattern, such as "*" or "gpt-*"', "models")
        for field in _COUNTS:
            if not 0 <= getattr(rules, field) <= LIMIT:
                raise bad_request(f"{field}: must be between 0 and {LIMIT}", field)
        for field in _DOLLARS:
            _money(field, getattr(rules, field))
        if not math.isfinite(rules.expires_at) or rules.expires_at < 0:
            raise bad_request("expires_at: must be a time", "expires_at")
        if (unknown := next((one for one in rules.mcp_scopes if not is_scope(one)), None)) is not None:
            raise bad_request(f"mcp_scopes: {unknown[:60]!r} is no scope; there are {', '.join(SCOPES)}", "mcp_scopes")
        if len(note) > NOTE_CHARS:
            raise bad_request(f"note: must be at most {NOTE_CHARS} characters long", "note")
        if rules.group:
            known = self.ring.groups | {group.name: group for group in await self._store.groups()}
            if rules.group not in known:
                raise bad_request(f"group: there is no group {rules.group[:NAME_CHARS]!r}; make it first", "group")


def _rules(rules: Rules | ClientKey) -> dict[str, Any]:
    found = {name: getattr(rules, name) for name in Rules.__struct_fields__ if name != "expires_at"}
    return {**found, "models": list(rules.models), "mcp_scopes": list(rules.mcp_scopes), "expires": iso(rules.expires_at)}


def _named(name: str) -> None:
    if not 0 < len(name) <= NAME_CHARS or not name.isprintable() or name != name.strip():
        raise bad_request(f"name: must be 1 to {NAME_CHARS} printable characters", "name")
    if name in _TAKEN:
        raise bad_request(f"name: {name!r} means whoever comes without a key", "name")


def _money(field: str, usd: float) -> None:
    if not (math.isfinite(usd) and 0 <= usd <= LIMIT):
        raise bad_request(f"{field}: must be an amount of dollars, 0 for none", field)


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
