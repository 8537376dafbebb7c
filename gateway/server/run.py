"""How long does the process live? Start, signals, reload, hand-over, stop: ``gateway serve`` is this."""
import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.config.check import loopback
from gateway.config.problems import ConfigError, Problem
from gateway.config.snapshot import Snapshot
from gateway.server import handover, systemd
from gateway.server import listen as listening
from gateway.server.post import Post
from gateway.server.reload import Reloader
from gateway.server.sockets import Sockets, inherited
from gateway.shared.local import LocalHub

log = logging.getLogger("gateway.server")

SWITCH_S: Final = 0.001          # a thread that works on a large body lets the loop have the interpreter after so long, not after 5 ms


def settle_memory() -> None:
    """What start-up made lives for ever: the collector need not walk it again. A request makes some 300 short-lived objects,
    most without cycles, so the young generation is looked at every 50 requests or so instead of every other one."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(15_000, 20, 50)


def settle() -> None:
    """What holds for the whole process once it serves."""
    settle_memory()
    sys.setswitchinterval(SWITCH_S)


def together(reloader: Reloader, crew: LocalHub) -> Callable[[], Awaitable[list[Problem]]]:
    """What is reloaded on request of one worker is reloaded by all."""
    async def reload() -> list[Problem]:
        problems = await reloader.reload()
        if not problems:
            crew.reload()
        return problems
    return reload


async def serve(snapshot: Snapshot, *, host: str = "", port: int | None = None, on_ready: Callable[[str], None],
                reload: Callable[[], Snapshot] | None = None, post: Post | None = None) -> None:
    """Run until SIGTERM or SIGINT. ``on_ready`` is told the URL once connections are accepted; ``reload`` loads the
    configuration anew (SIGHUP, a changed file); ``post``: this is one of several workers. Raises OSError when the address cannot
    be bound, ConfigError when sockets that were opened for us are open to more than the configuration is."""
    given = inherited()
    check_exposure(snapshot, given)
    crew = LocalHub(post.hub, post.number) if post is not None else None
    listener = await listening.listen(snapshot, host, port, given=given, crew=crew)
    life = Life(listener)
    reloader = Reloader(listener, reload, snapshot.source) if reload is not None else None
    if reloader is not None:
        listener.office.reload, listener.office.read = reloader.reload if crew is None else together(reloader, crew), reload
        reloader.start()
    life.listen_to_signals(reloader)
    settle()
    where = listening.url(snapshot, listener, host or snapshot.server.host)
    if crew is not None:
        crew.orphaned = life.leave
        crew.ready(where)
    else:
        on_ready(where)
    systemd.notify(systemd.READY)
    handover.accepting()
    watchdog = systemd.Watchdog(systemd.watchdog_s())
    watchdog.start()
    try:
        await life.over.wait()
        log.info("stopping: %d requests under way", listener.parts.inflight.count)
    finally:
        if not life.succeeded:
            systemd.notify(systemd.STOPPING)
        if reloader is not None:
            reloader.stop()
        await listener.close(listener.desk.ground.snapshot.server.drain_s)
        watchdog.stop()


def check_exposure(snapshot: Snapshot, given: Sockets) -> None:
    """The configuration was judged by its own address; these sockets have addresses of somebody else's choice."""
    if snapshot.keys or snapshot.keys_required:
        return
    for one in given.tcp:
        if not loopback(address := one.getsockname()[0]):
            given.close()
            raise ConfigError([("auth.keys", f"the socket that was opened for the gateway accepts on {address}, which is not "
                                "loopback: without a client key anybody could spend your keys")])


class Life:
    """What signals do to a listener."""

    def __init__(self, listener: listening.Listener) -> None:
        self._listener = listener
        self._handing: asyncio.Task[None] | None = None
        self.over = asyncio.Event()
        self.succeeded = False                       # another process has our sockets

    def listen_to_signals(self, reloader: Reloader | None) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.leave)
        if reloader is not None:
            loop.add_signal_handler(signal.SIGHUP, reloader.poke)
        # Of several workers none is replaced alone: their supervisor is.
        loop.add_signal_handler(signal.SIGUSR2, self.hand_over if self._listener.parts.crew is None else lambda: None)

    def leave(self) -> None:
        """The first signal drains; a second one ends what is left now."""
        if self.over.is_set():
            self._listener.drain.hurry()
        self.over.set()

    def hand_over(self) -> None:
        """One successor at a time."""
        if self._handing is None and not self.over.is_set():
            self._handing = asyncio.create_task(self._hand_over())

    async def _hand_over(self) -> None:
        try:
            self.succeeded = await handover.hand_over(self._listener.descriptors())
        finally:
            self._handing = None
        if self.succeeded:
            self.over.set()
