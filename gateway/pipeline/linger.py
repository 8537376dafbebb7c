"""May the connection be used again? The last chunk of a body often comes a moment after the ``[DONE]`` that ended the turn.

Dropping the connection then costs the next request a new one (300 µs of CPU on loopback, a TLS handshake elsewhere), waiting
costs the client its end. So the end is waited for in the background: briefly, and only for so many at once.
"""
import asyncio
from typing import Final

from gateway.core.errors import GatewayError
from gateway.upstream.transport import Reply

LINGER_S: Final = 1.0
MAX_LINGERING: Final = 512

_lingering: set[asyncio.Task[None]] = set()


def linger(reply: Reply, whole: bool) -> None:
    """Give the reply back; ``whole``: its turn is complete, only framing can follow. Else it is closed now."""
    if reply.complete:
        return
    if not whole or len(_lingering) >= MAX_LINGERING:
        reply.close()
        return
    task = asyncio.ensure_future(_end(reply))
    _lingering.add(task)
    task.add_done_callback(_lingering.discard)


async def _end(reply: Reply) -> None:
    try:
        async with asyncio.timeout(LINGER_S):
            while await reply.chunk():
                pass
    except (GatewayError, TimeoutError):
        pass
    finally:
        reply.close()
