"""How does one get through an HTTP proxy to a host that speaks TLS? (RFC 9110 9.3.6: CONNECT.)"""
import asyncio
import re
import socket
from typing import Final

from gateway.core.errors import GatewayError
from gateway.upstream.failures import told

MAX_BYTES: Final = 16_384
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")


class Asking(asyncio.Protocol):
    """Waits for the head of the proxy's answer."""

    def __init__(self) -> None:
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._seen = b""

    def data_received(self, data: bytes) -> None:
        self._seen += data
        end = self._seen.find(b"\r\n\r\n") + 4
        if self.head.done():
            return
        if end > 3:
            # a tunnel is silent until we speak: what comes with the head already is not the other side's
            self.head.set_result(self._seen[:end] if len(self._seen) == end or _status(self._seen) != 200 else b"")
        elif len(self._seen) > MAX_BYTES:
            self.head.set_result(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.head.done():
            words = "connection closed before an answer came" if exc is None else told(exc).message
            self.head.set_exception(GatewayError("transport", f"proxy: {words}"))


async def opened(sock: socket.socket, host: str, port: int, login: str) -> asyncio.Transport:
    """The tunnel. Raises OSError, and GatewayError("transport") if the proxy refuses."""
    transport, asking = await asyncio.get_running_loop().create_connection(Asking, sock=sock)
    try:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        words = f"Proxy-Authorization: {login}\r\n" if login else ""
        transport.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{words}\r\n".encode())
        status = _status(await asking.head)
        if status != 200:
            raise GatewayError("transport", f"proxy answered {status}" if status else "proxy: the answer is not HTTP")
    except BaseException:
        transport.abort()
        raise
    return transport


def _status(head: bytes) -> int:
    found = _STATUS.match(head)
    return int(found[1]) if found else 0
