"""How does a gateway stop? No new connections, readiness gone, running answers finished, the rest told and ended.

A client with a kept connection may be sending its next request in the very moment in which the connection would be closed. So each
connection may have one more answer, which says that it is the last one, and is closed only after it has been silent for a while.
"""
import asyncio
from typing import Final

from gateway.core.errors import GatewayError
from gateway.pipeline.ground import Inflight
from gateway.server.http import HttpProtocol, HttpServer

GRACE_S: Final = 2.0
LINGER_S: Final = 0.5                                # a kept connection that is silent for so long
LOOK_S: Final = 0.1


class Drain:
    """One server on its way out."""

    def __init__(self, server: HttpServer, inflight: Inflight) -> None:
        self._server = server
        self._inflight = inflight
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """What is left ends now."""
        self._hurried.set()

    async def run(self, drain_s: float) -> None:
        """Wait until nothing is under way or ``drain_s`` is over, then end what is left."""
        self._inflight.draining = True
        self._server.leaving = True
        try:
            async with asyncio.timeout(drain_s):
                await self._run_down()
        except TimeoutError:
            pass
        self._inflight.closed = True
        self._server.pre_shutdown()                  # kept connections close, others do after their answer
        await self._give_up()
        await self._server.shutdown(GRACE_S)

    async def _run_down(self) -> None:
        loop = asyncio.get_running_loop()
        silent: dict[HttpProtocol, float] = {}
        while (self._server.connections or self._inflight.count) and not self._hurried.is_set():
            now = loop.time()
            silent = {one: silent.get(one, now) for one in self._server.idle()}
            for one, since in silent.items():
                if now - since >= LINGER_S:
                    one.close()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._hurried.wait()
            except TimeoutError:
                pass

    async def _give_up(self) -> None:
        """Every client that still waits is told in its own format."""
        if not self._inflight.count:
            return
        empty = asyncio.Event()
        self._inflight.on_empty = empty.set
        self._inflight.give_up(GatewayError("shed", "The gateway is shutting down."))
        try:
            async with asyncio.timeout(GRACE_S):
                await empty.wait()
        except TimeoutError:
            pass
        self._inflight.on_empty = None
