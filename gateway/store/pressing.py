"""What becomes of a kept body? Masked and compressed for its row, and opened again."""
import zlib
from typing import Any, Final, Protocol

from gateway.core.redact import mask_body
from gateway.store.records import insert

LEVEL: Final = 6
ARTIFACT: Final = ("request_id", "kind", "encoding", "n_bytes", "cut", "n_kept", "data")
PUT_ARTIFACT: Final = insert("artifacts", ARTIFACT)


class Bodies(Protocol):
    """What a taped request brings (pipeline.captured)."""
    secrets: tuple[str, ...]
    request: bytes
    n_request: int
    response: bytes
    n_response: int


def pressed(id_: int, bodies: Bodies) -> list[tuple[Any, ...]]:
    """In the order of ``ARTIFACT``; a body that is empty is none."""
    out: list[tuple[Any, ...]] = []
    for kind, data, n_bytes in (("request", bodies.request, bodies.n_request), ("response", bodies.response, bodies.n_response)):
        if data:
            cut = n_bytes > len(data)
            kept = zlib.compress(mask_body(whole(data, bodies.secrets) if cut else data, bodies.secrets), LEVEL)
            out.append((id_, kind, "zlib", n_bytes, int(cut), len(kept), kept))
    return out


def whole(data: bytes, secrets: tuple[str, ...]) -> bytes:
    """Without the beginning of a secret at its end: what was cut within one is no longer known as it."""
    begun = (begin for secret in secrets for begin in _begins(secret.encode()) if data.endswith(begin))
    longest = max(map(len, begun), default=0)
    return data[:len(data) - longest]


def _begins(secret: bytes) -> list[bytes]:
    return [secret[:n] for n in range(1, len(secret))]


def opened(encoding: str, data: bytes) -> bytes:
    return zlib.decompress(data) if encoding == "zlib" else data
