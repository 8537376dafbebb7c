"""How is a compressed answer read piece by piece? What was not asked for yet stays compressed, so a bomb swells nobody's memory."""
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from gateway.core.errors import GatewayError
from gateway.upstream.encoding import Layers, codings

_NOTHING: Final[Iterator[bytes]] = iter(())


class Unpacked:
    """The codings of one body over its raw reads."""

    __slots__ = ("_layers", "_pieces", "_over")

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._pieces = _NOTHING
        self._over = False

    async def chunk(self, read: Callable[[], Awaitable[bytes]]) -> bytes:
        """The next piece; ``read`` gives the next raw bytes, b"" at their end."""
        while True:
            for piece in self._pieces:
                if piece:
                    return piece
            if self._over:
                return b""
            data = await read()
            self._over = not data
            self._pieces = self._layers.feed(data) if data else self._layers.close()


def unpacked(header: str) -> Unpacked | None:
    """For a Content-Encoding; None where there is nothing to open. Raises bad_reply for a coding that nobody asked for."""
    try:
        names = codings(header)
    except ValueError:
        raise GatewayError("bad_reply", "the answer has a content encoding that nobody asked for") from None
    return Unpacked(Layers(names)) if names else None
