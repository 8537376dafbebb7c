"""How do several processes serve one port? A supervisor binds, starts workers, starts them again, passes signals on, and is their hub.

Each worker has a listening socket of its own on the same address (SO_REUSEPORT), since the kernel then spreads connections evenly;
with one socket for all, whoever wakes first takes most of them. All are bound here and stay open here: connections that wait for a
worker that crashed are taken by the one that follows it, and none is refused. Where the kernel does not spread them (anything but
Linux), and on a UNIX socket, all share one.

Workers are new programs, not forks: each has its own event loop, and nothing that this process has open.
"""
import asyncio
import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.config.schema import Server
from gateway.config.snapshot import Snapshot
from gateway.observe.families import FAMILIES, Dump, merged
from gateway.server import handover, systemd
from gateway.server.post import VARIABLE, Post
from gateway.server.sockets import BACKLOG, INHERITED, Sockets, bound_unix, inherited
from gateway.shared.hub import Hub

log = logging.getLogger("gateway.workers")

FIRST_S: Final = 0.1                                 # before a worker that crashed is started again; then twice as long …
LONGEST_S: Final = 5.0                               # … at most: connections wait for it
STEADY_S: Final = 30.0                               # who lived so long begins anew
KILL_S: Final = 15.0                                 # after the drain: who has not ended by then, is ended
BAD_CONFIG: Final = 2
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
# What the service manager, or the supervisor before, says to this process alone.
_SUPERVISORS: Final = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", handover.TOLD_BY})


def count(server: Server) -> int:
    if server.workers != "auto":
        return server.workers
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:                           # not on this system
        cores = os.cpu_count() or 1
    return max(1, min(cores, math.ceil(quota(_QUOTA))))


def quota(file: Path) -> float:
    """Processors that a container may use; its affinity does not tell.
    https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files"""
    try:
        most, _, period = file.read_text().partition(" ")
        return int(most) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
        return 1e9


def bind(host: str, port: int, n: int) -> list[list[socket.socket]]:
    """Listening sockets for each of ``n`` workers, on every address of ``host``. Raises OSError."""
    spread = sys.platform == "linux"
    rows: list[list[socket.socket]] = [[] for _ in range(n)]
    try:
        found = {(family, address[:2]): address for family, _, _, _, address in
                 socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)}
        for (family, _), address in found.items():
            for row in rows:
                if row is not rows[0] and not spread:
                    row.append(rows[0][-1])
                    continue
                row.append(_bound(family, address if not port else (address[0], port, *address[2:]), spread))
                port = port or row[-1].getsockname()[1]
    except BaseException:
        close(rows)
        raise
    return rows


def _bound(family: int, address: Any, spread: bool) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if spread:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def free(host: str, port: int) -> None:
    """Does another gateway have this port? SO_REUSEPORT would let us share it without a word. Raises OSError."""
    if port:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE):
            _bound(family, address, spread=False).close()


def divided(given: Sockets, n: int) -> list[list[socket.socket]]:
    """Sockets that were opened for us: each is somebody's, or everybody's where there are too few."""
    few = len(given.tcp) < n
    return [[*(given.tcp if few else given.tcp[at::n]), *given.unix] for at in range(n)]


def opened(server: Server, n: int) -> list[list[socket.socket]]:
    """What each of ``n`` workers listens on. Raises OSError."""
    given = inherited()
    if given.given:
        return divided(given, n)
    free(server.host, server.port)
    rows = bind(server.host, server.port, n)
    try:
        unix = [bound_unix(server.unix)] if server.unix else []
    except BaseException:
        close(rows)
        raise
    return [[*row, *unix] for row in rows]


def close(rows: Sequence[Sequence[socket.socket]]) -> None:
    for row in rows:
        for each in row:
            each.close()


class Past:
    """What workers counted that are gone: a counter that falls would look like a new beginning of them all."""

    def __init__(self) -> None:
        self._dump: Dump = {}

    def take(self, last: Any) -> None:
        if last is not None:
            dump: Dump = msgspec.convert(last, Dump)
            self._dump = merged([self._dump, {name: rows for name, rows in dump.items() if FAMILIES[name].kind != "gauge"}])

    def give(self, what: str) -> list[Any]:
        return [self._dump] if what == "metrics" and self._dump else []


class Worker:
    """One place, and who has it now."""

    def __init__(self, post: Post, sockets: list[int]) -> None:
        self.post = post
        self.sockets = sockets
        self.process: asyncio.subprocess.Process | None = None
        self.where = ""                              # once it accepts
        self.crashes = 0

    def signal(self, name: int) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(name)


class Supervisor:
    """``command`` starts a worker; ``said`` is told the URL once all accept."""

    def __init__(self, command: Sequence[str], rows: Sequence[Sequence[socket.socket]], folder: str, drain_s: float,
                 said: Callable[[str], None]) -> None:
        self.hub = Hub(self._ready, self._reload, expected=len(rows))
        self._past = Past()
        self.hub.left, self.hub.besides = self._past.take, self._past.give
        self._command = command
        self._rows = rows
        self._drain_s = drain_s
        self._said = said
        self._told = False
        self._stopping = asyncio.Event()
        self._path = os.path.join(folder, "hub.sock")
        self._code = 0
        self._workers = [Worker(Post(number=n, of=len(rows), hub=self._path), [each.fileno() for each in row])
                         for n, row in enumerate(rows)]
        self._handing: asyncio.Task[None] | None = None
        self.succeeded = False                       # another supervisor has our sockets

    async def run(self) -> int:
        """Until all workers have ended; their exit status."""
        await self.hub.open(self._path)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._read_anew)
        loop.add_signal_handler(signal.SIGUSR2, self._hand_over)
        watchdog = systemd.Watchdog(systemd.watchdog_s())
        watchdog.start()
        lives = [asyncio.create_task(self._live(worker)) for worker in self._workers]
        try:
            await self._stopping.wait()
            if not self.succeeded:
                systemd.notify(systemd.STOPPING)
            await asyncio.wait(lives, timeout=self._drain_s + KILL_S)
        finally:
            self._pass(signal.SIGKILL)
            await asyncio.gather(*lives, return_exceptions=True)
            await self.hub.close()
            watchdog.stop()
        return self._code

    def stop(self) -> None:
        """No new connections; the workers drain. A second time: they end what is left."""
        self._stopping.set()
        close(self._rows)
        self._pass(signal.SIGTERM)

    def _pass(self, name: int) -> None:
        for worker in self._workers:
            worker.signal(name)

    def _read_anew(self) -> None:
        systemd.reloading()
        self._pass(signal.SIGHUP)
        systemd.notify(systemd.READY)

    def _hand_over(self) -> None:
        if self._handing is None and not self._stopping.is_set():
            self._handing = asyncio.create_task(self._succeed())

    async def _succeed(self) -> None:
        """A supervisor with workers of its own takes the sockets over; ours drain once it accepts."""
        try:
            descriptors = dict.fromkeys(number for worker in self._workers for number in worker.sockets)
            self.succeeded = await handover.hand_over(list(descriptors))
        finally:
            self._handing = None
        if self.succeeded:
            self.stop()

    # ------------------------------------------------------------------ one worker
    async def _live(self, worker: Worker) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._once(worker)
            if self._stopping.is_set():
                self._code = self._code or (code if code > 0 else 1 if code and -code != signal.SIGTERM else 0)
                return
            if code == BAD_CONFIG and not self._told:
                self._code = code                    # it has said why
                self.stop()
                return
            worker.crashes = 1 if time.monotonic() - began >= STEADY_S else worker.crashes + 1
            pause_s = min(FIRST_S * 2 ** (worker.crashes - 1), LONGEST_S)
            log.error("worker %d ended (%s); another one starts in %.1f s", worker.post.number, _why(code), pause_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()

    async def _once(self, worker: Worker) -> int:
        env = {name: value for name, value in os.environ.items() if name not in _SUPERVISORS}
        env |= {VARIABLE: msgspec.json.encode(worker.post).decode(), INHERITED: ",".join(map(str, worker.sockets))}
        # A group of its own: Ctrl-C at a terminal is for this process, which passes it on once.
        worker.process = await asyncio.create_subprocess_exec(*self._command, env=env, pass_fds=worker.sockets,
                                                              start_new_session=True)
        if self._stopping.is_set():
            worker.signal(signal.SIGTERM)
        return await worker.process.wait()

    # ------------------------------------------------------------------ what workers say
    def _ready(self, number: int, where: Any) -> None:
        self._workers[number].where = str(where)
        if not self._told and all(worker.where for worker in self._workers):
            self._told = True
            self._said(self._workers[0].where)
            systemd.notify(systemd.READY)
            handover.accepting()

    def _reload(self, number: int) -> None:
        for worker in self._workers:
            if worker.post.number != number:
                worker.signal(signal.SIGHUP)


def _why(code: int) -> str:
    return f"status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


async def supervise(snapshot: Snapshot, n: int, command: Sequence[str], said: Callable[[str], None]) -> int:
    """Serve with ``n`` workers until SIGTERM or SIGINT; the exit status. Raises OSError when an address cannot be bound."""
    server = snapshot.server
    rows = opened(server, n)
    folder = tempfile.mkdtemp(prefix="gateway-")     # 0700: only this user reaches the hub
    try:
        if snapshot.store == "memory:":
            log.warning("store.url is memory: with %d workers; keys, combos and records made while running are known to one of "
                        "them", n)
        supervisor = Supervisor(command, rows, folder, server.drain_s, said)
        return await supervisor.run()
    finally:
        close(rows)
        shutil.rmtree(folder, ignore_errors=True)
