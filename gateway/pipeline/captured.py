"""What was asked and what left, word for word, where the operator wants bodies kept (log.capture_bodies).

A client of its own: where bodies are not kept, nothing of this is anywhere near a request.
"""
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.pipeline.deliver import Client

BODY_LIMIT: Final = 262_144      # of each of both


class Bodies(msgspec.Struct):
    """The first ``BODY_LIMIT`` bytes of both, and how many there were. ``secrets`` are masked before anything is kept."""
    secrets: tuple[str, ...]
    request: bytes = b""
    n_request: int = 0
    response: bytes = b""
    n_response: int = 0


class CapturingClient(Client):
    """A caller whose request and answer are kept."""

    __slots__ = ("_pieces", "_n_kept", "_bodies")

    def capture(self, secrets: tuple[str, ...]) -> None:
        """From here on."""
        self._pieces: list[bytes] = []
        self._n_kept = 0
        self._bodies = self.call.bodies = Bodies(secrets)

    async def body(self, limit: int) -> bytes:
        raw = await super().body(limit)
        self._bodies.request, self._bodies.n_request = raw[:BODY_LIMIT], len(raw)
        return raw

    async def write(self, data: bytes, now: float) -> None:
        self._keep(data)
        await super().write(data, now)

    async def end(self, data: bytes = b"") -> None:
        self._keep(data)
        await super().end(data)

    async def answer(self, body: bytes, status: int = 200, content_type: str = "application/json",
                     more: Mapping[str, str] | None = None) -> None:
        self._keep(body)
        await super().answer(body, status, content_type, more)

    def close(self) -> None:
        super().close()
        self._bodies.response, self._pieces = b"".join(self._pieces), []

    def _keep(self, data: bytes) -> None:
        room = BODY_LIMIT - self._n_kept
        if room > 0 and data:
            self._pieces.append(data[:room])
            self._n_kept += len(self._pieces[-1])
        self._bodies.n_response += len(data)
