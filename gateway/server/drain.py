"""How does a gateway stop? No new connections, readiness gone, running answers finished, the rest told and ended."""
import asyncio

from aiohttp import web

from gateway.core.errors import GatewayError
from gateway.pipeline.ground import Inflight

GRACE_S = 2.0


async def drain(server: web.Server, inflight: Inflight, drain_s: float) -> None:
    """Wait until nothing is under way or ``drain_s`` is over, then cancel what is left."""
    inflight.draining = True
    server.pre_shutdown()                            # idle keep-alive connections close now
    empty = asyncio.Event()
    inflight.on_empty = empty.set
    if inflight.count and drain_s > 0:
        try:
            await asyncio.wait_for(empty.wait(), drain_s)
        except TimeoutError:
            pass
    if inflight.count:
        inflight.give_up(GatewayError("shed", "The gateway is shutting down."))
        try:
            await asyncio.wait_for(empty.wait(), GRACE_S)
        except TimeoutError:
            pass
    inflight.on_empty = None
    await server.shutdown(GRACE_S)
