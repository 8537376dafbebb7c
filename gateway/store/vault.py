"""Where do rotated refresh tokens survive a restart? In a file of their own beside the database, which only we may read.

A provider that rotates voids the old token when it hands out the next: each is on the disk before it is used. One small file,
written whole, swapped in by rename. Where there is a master key, tokens lie there sealed; those that were not are sealed with the
next write, and what this key does not open is left as it is.
"""
import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Final

from gateway.store.seal import Sealer, is_sealed
from gateway.upstream.tokens import Vault

log = logging.getLogger("gateway.store")

NAME: Final = "tokens.json"
SIZE_LIMIT: Final = 4 << 20


class MemoryVault:
    """For ``memory:``: nothing survives, as with everything else there."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def load(self) -> dict[str, str]:
        return dict(self._kept)

    async def keep(self, name: str, value: str) -> None:
        self._kept[name] = value

    async def reseal(self) -> int:
        return 0


class FileVault:
    """One JSON object, readable by its owner only."""

    def __init__(self, path: Path, sealer: Sealer | None = None) -> None:
        self._path = path
        self._sealer = sealer or Sealer()
        self._lock = asyncio.Lock()

    async def load(self) -> dict[str, str]:
        found = await asyncio.to_thread(self._read)
        return {name: token for name, value in found.items() if (token := opened(self._sealer, name, value)) is not None}

    async def keep(self, name: str, value: str) -> None:
        async with self._lock:
            await asyncio.to_thread(self._write, name, value)

    async def reseal(self) -> int:
        """Seal everything under the current master key; how many. Raises ValueError where one does not open."""
        async with self._lock:
            kept = await asyncio.to_thread(self._read)
            plain = {name: opened(self._sealer, name, value, strict=True) or "" for name, value in kept.items()}
            if plain:
                await asyncio.to_thread(self._put, {name: sealed(self._sealer, name, value) for name, value in plain.items()})
        return len(kept)

    def _read(self) -> dict[str, str]:
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(SIZE_LIMIT))
        except FileNotFoundError:
            return {}
        return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}

    def _write(self, name: str, value: str) -> None:
        try:
            kept = self._read()
        except ValueError:
            kept = {}                                # half a file of somebody else's making holds nothing of ours
        kept[name] = value
        if self._sealer:
            kept = {name: sealed(self._sealer, name, value) for name, value in kept.items()}
        self._put(kept)

    def _put(self, kept: dict[str, str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


def vault_at(address: str, sealer: Sealer) -> Vault:
    """Beside the store of this address, or in it where it is a server."""
    if address.startswith("postgresql:"):
        from gateway.store.postgres_vault import PostgresVault
        return PostgresVault(address, sealer)
    if not address.startswith("sqlite:"):
        return MemoryVault()
    return FileVault(Path(address.removeprefix("sqlite:")).with_name(NAME), sealer)


def opened(sealer: Sealer, name: str, value: str, strict: bool = False) -> str | None:
    """The token; None where no key opens it, ``strict``: ValueError then."""
    if not is_sealed(value):
        return value
    try:
        return sealer.open_line(value, _place(name))
    except ValueError as error:
        if strict:
            raise
        log.error("a rotated token of %s %s; that of the configuration is used", name.rpartition(" ")[0], error)
        return None


def sealed(sealer: Sealer, name: str, value: str) -> str:
    return value if is_sealed(value) else sealer.seal_line(value, _place(name))


def _place(name: str) -> str:
    return f"token\0{name}"
