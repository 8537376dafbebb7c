"""When does a changed configuration take effect? On SIGHUP and when the file changes: validated whole, swapped in one step.

The file is polled by its stat, which survives editors that replace it and symlink swaps. A bad file is refused with its
problems and the old configuration stays. What a running listener cannot change (address, TLS) needs a restart and is said.
"""
import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config.check import loopback
from gateway.config.load import ConfigError
from gateway.config.snapshot import Snapshot
from gateway.mcp import door as mcp
from gateway.observe.telemetry import warm
from gateway.server import compose, systemd

if TYPE_CHECKING:
    from gateway.server.listen import Listener

log = logging.getLogger("gateway.reload")
POLL_S = 2.0


class Reloader:
    """Watches one configuration file for one listener."""

    def __init__(self, listener: "Listener", load: Callable[[], Snapshot], path: Path | None) -> None:
        self._listener = listener
        self._load = load
        self._path = path
        self._seen = signature(path)
        self._poke = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def poke(self) -> None:
        """Reload now, changed or not."""
        self._poke.set()

    async def _watch(self) -> None:
        while True:
            try:
                async with asyncio.timeout(POLL_S):
                    await self._poke.wait()
                self._poke.clear()
            except TimeoutError:
                if signature(self._path) == self._seen:
                    continue
            self._seen = signature(self._path)
            await self.reload()

    def _read(self) -> Snapshot:
        """In a thread, with whatever the new settings need for the first time."""
        snapshot = self._load()
        warm(snapshot.otel)
        mcp.warm(snapshot)
        return snapshot

    async def reload(self) -> list[tuple[str, str]]:
        """Load and swap; returns the problems of a refused file. The service manager hears of both ends."""
        systemd.reloading()
        try:
            return await self._reload()
        finally:
            systemd.notify(systemd.READY)

    async def _reload(self) -> list[tuple[str, str]]:
        try:
            snapshot = await asyncio.to_thread(self._read)
        except ConfigError as error:
            for path, message in error.problems:
                log.error("configuration not reloaded: %s: %s", path, message)
            return error.problems
        if not snapshot.keys and not snapshot.keys_required and not loopback(self._listener.host):
            problem = ("auth.keys", f"the gateway accepts on {self._listener.host}, which is not loopback: it cannot go on "
                       "without a client key")
            log.error("configuration not reloaded: %s: %s", *problem)
            return [problem]
        desk, old = self._listener.desk, self._listener.desk.ground.snapshot
        if (snapshot.server.host, snapshot.server.port) != (old.server.host, old.server.port):
            log.warning("server.host and server.port change with the next restart only")
        if snapshot.store != old.store:
            log.warning("store.url changes with the next restart only")
        desk.ground = compose.ground(snapshot, self._listener.parts)
        log.info("configuration reloaded")
        return []


def signature(path: Path | None) -> tuple[int, int, int] | None:
    """What changes when the file does; None without a file."""
    if path is None:
        return None
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
