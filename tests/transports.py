"""Both transports, for tests that hold for either. GATEWAY_TEST_TRANSPORT=aiohttp runs the whole gateway's tests over aiohttp."""
import os
import ssl
from collections.abc import Callable

from gateway.upstream.aiohttp_transport import AiohttpTransport
from gateway.upstream.h1.tls import resuming
from gateway.upstream.h1.transport import H1Transport

Either = AiohttpTransport | H1Transport
MAKERS: dict[str, Callable[..., Either]] = {"fast": H1Transport, "aiohttp": AiohttpTransport}
CHOSEN = os.environ.get("GATEWAY_TEST_TRANSPORT", "fast")


def trusting(name: str, cafile: str) -> Either:
    """A transport that believes one certificate."""
    return MAKERS[name](tls=resuming(True, cafile) if name == "fast" else ssl.create_default_context(cafile=cafile))
