"""What does a wire do that no client speaks to us? The client's half of ``wire.base.Wire``, refused in one place."""
from typing import NoReturn

from gateway.core.errors import GatewayError
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request
from gateway.wire.base import Encoder, Outbound, Shown


class UpstreamOnly:
    """Base of wires that only providers speak; no door of ours leads to the methods here."""
    name: str
    silence = b""

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "",
                      path_stream: bool | None = None) -> Request:
        self._nobody()

    def open(self, request: Request) -> Conversation:
        self._nobody()

    def speaks(self, request: Request, to: Outbound) -> bool:
        return False

    def build_reply(self, reply: Reply, shown: Shown, raw: bytes | None) -> bytes:
        self._nobody()

    def encoder(self, shown: Shown) -> Encoder:
        self._nobody()

    def render_error(self, error: GatewayError, operation: str = "chat") -> bytes:
        self._nobody()

    def error_frame(self, error: GatewayError, shown: Shown) -> bytes:
        self._nobody()

    def _nobody(self) -> NoReturn:
        raise GatewayError("internal", f"No client speaks {self.name} to the gateway.")
