"""Cohere's v2 chat API, for upstreams: ``{base_url}/chat`` with server-sent events.

request: what is asked · stream, reply: what it answers · schema: its words.
"""
from typing import Final

from gateway.core.errors import bad_request
from gateway.core.events import Event
from gateway.core.request import Request
from gateway.wire import sse
from gateway.wire.base import Outbound
from gateway.wire.cohere import reply, request, schema
from gateway.wire.cohere.stream import Decoder
from gateway.wire.lenient import dump
from gateway.wire.upstream_only import UpstreamOnly


class Cohere(UpstreamOnly):
    """The wire; it has no state."""

    name = schema.NAME
    content_type = sse.CONTENT_TYPE

    def build_request(self, asked: Request, to: Outbound) -> bytes:
        assert asked.conversation is not None, "a request of another format comes opened"
        try:
            return dump(request.build(asked.conversation, to))
        except (ValueError, RecursionError):
            raise bad_request("The request body is nested too deeply.") from None

    def upstream_path(self, request: Request, to: Outbound) -> str:
        return "/chat"

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        return reply.parse(raw)

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        return Decoder(max_frame_bytes)


COHERE: Final = Cohere()
