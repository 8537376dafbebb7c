"""How is TLS spoken to upstreams: which certificates count, and how is a second handshake with the same host made short?

asyncio has no way to hand over a session, but it asks the context for each connection: so the context remembers them.
"""
import asyncio
import ssl
from typing import Final

from gateway.core.bounded import LruMap

MAX_SESSIONS: Final = 512
PROTOCOLS: Final = ["http/1.1"]


class Resuming(ssl.SSLContext):
    """A client's context that offers the last session of a host again (RFC 8446 2.2)."""

    sessions: LruMap[str, ssl.SSLSession]

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False,
                 server_hostname: str | bytes | None = None, session: ssl.SSLSession | None = None) -> ssl.SSLObject:
        if session is None and isinstance(server_hostname, str):
            session = self.sessions.get(server_hostname)
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def remember(transport: asyncio.BaseTransport) -> None:
    """Keep a connection's session. Its tickets come after the handshake, so this is done when an answer has been read."""
    spoken = transport.get_extra_info("ssl_object")
    if isinstance(spoken, ssl.SSLObject) and isinstance(spoken.context, Resuming) and spoken.server_hostname and spoken.session:
        spoken.context.sessions.put(spoken.server_hostname, spoken.session)


def resuming(verify: bool, cafile: str | None = None) -> Resuming:
    """A context as ``ssl.create_default_context`` makes it."""
    context = Resuming(ssl.PROTOCOL_TLS_CLIENT)
    context.sessions = LruMap(MAX_SESSIONS)
    context.set_alpn_protocols(PROTOCOLS)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cafile is not None:
        context.load_verify_locations(cafile)
    else:
        context.load_default_certs()
    return context
