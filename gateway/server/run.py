"""How long does the process live? Start, signals, reload, stop: ``gateway serve`` is this."""
import asyncio
import gc
import logging
import signal
from collections.abc import Callable

from gateway.config.snapshot import Snapshot
from gateway.server import listen as listening
from gateway.server.reload import Reloader

log = logging.getLogger("gateway.server")


def settle_memory() -> None:
    """What start-up made lives for ever: the collector need not walk it again. A request makes some 300 short-lived objects,
    most without cycles, so the young generation is looked at every 50 requests or so instead of every other one."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(15_000, 20, 50)


async def serve(snapshot: Snapshot, *, host: str = "", port: int | None = None, on_ready: Callable[[str], None],
                reload: Callable[[], Snapshot] | None = None) -> None:
    """Run until SIGTERM or SIGINT. ``on_ready`` is told the URL once connections are accepted; ``reload`` loads the
    configuration anew (SIGHUP, a changed file). Raises OSError when the address cannot be bound."""
    listener = await listening.listen(snapshot, host, port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def leave() -> None:
        """The first signal drains; a second one ends what is left now."""
        if stop.is_set() and listener.parts.inflight.on_empty is not None:
            listener.parts.inflight.on_empty()
        stop.set()

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, leave)
    reloader = Reloader(listener, reload, snapshot.source) if reload is not None else None
    if reloader is not None:
        listener.office.reload, listener.office.read = reloader.reload, reload
        loop.add_signal_handler(signal.SIGHUP, reloader.poke)
        reloader.start()
    settle_memory()
    on_ready(listening.url(snapshot, listener, host or snapshot.server.host))
    try:
        await stop.wait()
        log.info("stopping: %d requests under way", listener.parts.inflight.count)
    finally:
        if reloader is not None:
            reloader.stop()
        await listener.close(listener.desk.ground.snapshot.server.drain_s)


