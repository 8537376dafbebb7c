"""Ollama's own API: ``/api/chat`` and ``/api/generate`` towards clients and servers, newline-delimited JSON.

request, conversation: what a client asks · build: what a server is asked · reply, stream: answers, both ways · embed: vectors.
"""
from gateway.core.errors import GatewayError, bad_request
from gateway.core.events import Event
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request
from gateway.wire.base import Outbound, Shown
from gateway.wire.jsonl import LINES_TYPE
from gateway.wire.ollama import build, conversation, faults, reply, request
from gateway.wire.ollama.schema import GENERATE, NAME
from gateway.wire.ollama.stream import Decoder, Encoder


class Ollama:
    """The wire; it has no state. Operations: ``chat`` and ``generate``."""
    name = NAME
    content_type = LINES_TYPE
    silence = b""                                    # an empty line is no JSON to its clients

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "",
                      path_stream: bool | None = None) -> Request:
        return request.parse(raw, operation)

    def open(self, request: Request) -> Conversation:
        if request.conversation is None:
            request.conversation = conversation.conversation(request)
        return request.conversation

    def build_request(self, request: Request, to: Outbound) -> bytes:
        try:
            return build.same_format(request, to) if request.wire == NAME else build.other_format(request, to)
        except (ValueError, RecursionError):
            raise bad_request("The request body is nested too deeply.") from None

    def speaks(self, request: Request, to: Outbound) -> bool:
        return request.wire == NAME

    def upstream_path(self, request: Request, to: Outbound) -> str:
        return "/api/generate" if request.wire == NAME and request.operation == GENERATE else "/api/chat"

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        return reply.parse(raw)

    def build_reply(self, reply_: Reply, shown: Shown, raw: bytes | None) -> bytes:
        return reply.build(reply_, shown, raw)

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        return Decoder(same, model, max_frame_bytes)

    def encoder(self, shown: Shown) -> Encoder:
        return Encoder(shown)

    def render_error(self, error: GatewayError, operation: str = "chat") -> bytes:
        return faults.render(error)

    def error_frame(self, error: GatewayError, shown: Shown) -> bytes:
        return faults.in_stream(error)


OLLAMA = Ollama()
