"""Where do rotated refresh tokens survive a restart? In a file of their own beside the database, which only we may read.

A provider that rotates voids the old token when it hands out the next: each is on the disk before it is used. One small file,
written whole, swapped in by rename.
"""
import asyncio
import json
import os
from pathlib import Path
from typing import Final

from gateway.upstream.tokens import Vault

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


class FileVault:
    """One JSON object, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()

    async def load(self) -> dict[str, str]:
        return await asyncio.to_thread(self._read)

    async def keep(self, name: str, value: str) -> None:
        async with self._lock:
            await asyncio.to_thread(self._write, name, value)

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
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


def vault_at(address: str) -> Vault:
    """Beside the store of this address."""
    if not address.startswith("sqlite:"):
        return MemoryVault()
    return FileVault(Path(address.removeprefix("sqlite:")).with_name(NAME))
