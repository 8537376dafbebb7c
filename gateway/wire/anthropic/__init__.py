"""Anthropic's Messages format, for both sides: ``/v1/messages`` towards clients, ``{base_url}/messages`` towards upstreams.

request, conversation: what a client asks · same, build: what an upstream is asked · stream, reply: what it answers ·
encoder, reply: what the client is told · mend: what messages must look like · faults: errors, both ways.
"""
from typing import Final

from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request
from gateway.wire import sse
from gateway.wire.anthropic import build, conversation, faults, hosted, reply, request, same, schema
from gateway.wire.anthropic.encoder import PING, Encoder
from gateway.wire.anthropic.reply import build_count as build_count
from gateway.wire.anthropic.stream import Decoder
from gateway.wire.base import Outbound, Shown
from gateway.wire.names import respelled


class Anthropic:
    """The wire; it has no state."""

    name = schema.NAME
    content_type = sse.CONTENT_TYPE
    silence = PING

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "",
                      path_stream: bool | None = None) -> Request:
        return request.parse(raw, operation)

    def open(self, request: Request) -> Conversation:
        return conversation.conversation(request)

    def build_request(self, request: Request, to: Outbound) -> bytes:
        made = self._built(request, to)
        return hosted.body(made) if hosted.VERTEX in to.flags else made

    def _built(self, request: Request, to: Outbound) -> bytes:
        if request.wire == schema.NAME:
            return same.rebuild(request, to)
        assert request.conversation is not None, "a request of another format comes opened"
        body = build.build(respelled(request.conversation, schema.NAME), to)
        return schema.dump({to.rename_params.get(name, name): value for name, value in body.items()
                            if name not in to.drop_params})

    def upstream_path(self, request: Request, to: Outbound) -> str:
        if hosted.VERTEX in to.flags:
            return hosted.path(to)
        return "/messages/count_tokens" if request.operation == "count_tokens" else "/messages"

    def speaks(self, request: Request, to: Outbound) -> bool:
        return request.wire == schema.NAME

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        return reply.parse(raw, same)

    def build_reply(self, reply_: Reply, shown: Shown, raw: bytes | None) -> bytes:
        return reply.build(reply_, shown, raw)

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        return Decoder(same, model, max_frame_bytes)

    def encoder(self, shown: Shown) -> Encoder:
        return Encoder(shown)

    def render_error(self, error: GatewayError, operation: str = "chat") -> bytes:
        return faults.render(error)

    def error_frame(self, error: GatewayError, shown: Shown) -> bytes:
        return faults.error_frame(error)


ANTHROPIC: Final = Anthropic()
