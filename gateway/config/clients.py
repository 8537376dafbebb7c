"""Who are the clients that the operator wrote down? [[auth.keys]], their groups and the budget of all, compiled and checked."""
import hashlib
import re
from collections.abc import Mapping
from typing import Final

from gateway.config.problems import Problems, nearest
from gateway.config.schema import Config, Group, Key
from gateway.core.clock import moment
from gateway.core.keys import GroupRow
from gateway.policy import scopes
from gateway.policy.budget import OVERALL, Scope, scope
from gateway.policy.keys import ClientKey, Manner

_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")


def client_keys(config: Config, problems: Problems, now: float) -> tuple[ClientKey, ...]:
    """[[auth.keys]], compiled."""
    found: list[ClientKey] = []
    names: dict[str, str] = {}
    digests: dict[str, str] = {}
    for index, key in enumerate(config.auth.keys):
        path = f"auth.keys[{index}]"
        if key.name in names:
            problems.add(f"{path}.name", f"{key.name!r} is the name of {names[key.name]} already")
        digest = _digest(key, path, problems)
        if digest and digest in digests:
            problems.add(f"{path}.{'sha256' if key.sha256 else 'key'}", f"is the key of {digests[digest]} already")
        names.setdefault(key.name, path)
        digests.setdefault(digest, path)
        expires_at = _expiry(key, path, problems)
        if expires_at and expires_at <= now:
            problems.warn(f"{path}.expires", f"the key {key.name!r} has expired")
        if not key.models:
            problems.add(f"{path}.models", 'is empty, so the key could do nothing; leave it out or write ["*"]')
        for place, pattern in enumerate(key.models):
            if not pattern.strip():
                problems.add(f"{path}.models[{place}]", 'is empty; write a pattern such as "gpt-*"')
        found.append(ClientKey(name=key.name, sha256=digest, models=key.models, rpm=key.rpm, tpm=key.tpm,
                               rpd=key.rpd, concurrency=key.concurrency, budget_usd_day=key.budget_usd_day,
                               budget_usd_month=key.budget_usd_month, allow_unknown_price=key.allow_unknown_price,
                               group=key.group, expires_at=expires_at, mcp_scopes=_scopes(key, path, problems),
                               manner=_manner(key, path, problems)))
    return tuple(found)


def _digest(key: Key, path: str, problems: Problems) -> str:
    text = key.key.reveal()
    if text and key.sha256:
        problems.add(f"{path}.sha256", "stands beside key; write one of the two")
    if key.sha256:
        if not _SHA256.fullmatch(key.sha256):
            problems.add(f"{path}.sha256", "must be 64 hexadecimal digits")
            return ""
        return key.sha256.lower()
    if not text.strip():
        problems.add(f"{path}.key", "is missing or empty; write key or sha256")
        return ""
    if text != text.strip():
        problems.add(f"{path}.key", "must not begin or end with a space")
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _manner(key: Key, path: str, problems: Problems) -> Manner:
    if key.thinking == "cap" and not (key.thinking_max_tokens or key.thinking_max_effort):
        problems.add(f"{path}.thinking", "caps nothing; write thinking_max_tokens or thinking_max_effort as well")
    return Manner(instructions=key.instructions, thinking=key.thinking, thinking_max_tokens=key.thinking_max_tokens,
                  thinking_max_effort=key.thinking_max_effort, guards_off=frozenset(key.guards_off))


def _scopes(key: Key, path: str, problems: Problems) -> tuple[str, ...]:
    for place, pattern in enumerate(key.mcp_scopes):
        if not scopes.known(pattern):
            problems.add(f"{path}.mcp_scopes[{place}]", f"{pattern[:60]!r} is no scope{nearest(pattern, scopes.SCOPES)}; write "
                         f'one of {", ".join(scopes.SCOPES)}, or a pattern such as "read:*"')
    return key.mcp_scopes


def _expiry(key: Key, path: str, problems: Problems) -> float:
    if not key.expires:
        return 0.0
    try:
        return moment(key.expires)
    except ValueError:
        problems.add(f"{path}.expires", f'{key.expires[:40]!r} is no ISO date; write "2027-01-31" or "2027-01-31T18:00:00Z"')
        return 0.0


def groups(config: Config, problems: Problems) -> tuple[GroupRow, ...]:
    """[[auth.groups]], compiled: names that are unique, parents that exist and lead up to an end."""
    tables = {table.name: table for table in reversed(config.auth.groups)}
    found: list[GroupRow] = []
    for index, table in enumerate(config.auth.groups):
        path = f"auth.groups[{index}]"
        if any(group.name == table.name for group in found):
            problems.add(f"{path}.name", f"{table.name!r} is the name of another group already")
        if table.parent and table.parent not in tables:
            problems.add(f"{path}.parent", f"{table.parent!r} is no group; there are: {', '.join(tables)}")
        elif _circles(table, tables):
            problems.add(f"{path}.parent", f"{table.parent!r} leads back to {table.name!r}")
        found.append(GroupRow(name=table.name, parent=table.parent, budget_usd_day=table.budget_usd_day,
                              budget_usd_month=table.budget_usd_month))
    for index, key in enumerate(config.auth.keys):
        if key.group and key.group not in tables:
            problems.add(f"auth.keys[{index}].group", f"{key.group!r} is not below [[auth.groups]]{nearest(key.group, tables)}")
    return tuple(found)


def _circles(table: Group, tables: Mapping[str, Group]) -> bool:
    seen, above = {table.name}, tables.get(table.parent)
    while above is not None:
        if above.name == table.name:
            return True
        if above.name in seen:
            return False                         # somebody else's circle
        seen.add(above.name)
        above = tables.get(above.parent)
    return False


def overall(config: Config) -> Scope | None:
    """The budget of everybody together."""
    found = scope(OVERALL, "gateway as a whole", config.limits.budget_usd_day, config.limits.budget_usd_month)
    return found if found.limited else None
