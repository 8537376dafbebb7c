"""How does a gateway stop? No new connections, readiness gone, running answers finished, the rest ended."""
import asyncio

from aiohttp import web

from gateway.pipeline.ground import Inflight

GRACE_S = 2.0


async def drain(server: web.Server, inflight: Inflight, drain_s: float) -> None:
    """Wait until nothing is under way or ``drain_s`` is over, then cancel what is left."""
    inflight.draining = True
    server.pre_shutdown()                            # idle keep-alive connections close now
    if inflight.count and drain_s > 0:
        empty = asyncio.Event()
        inflight.on_empty = empty.set
        try:
            await asyncio.wait_for(empty.wait(), drain_s)
        except TimeoutError:
            pass
        inflight.on_empty = None
    await server.shutdown(GRACE_S)
