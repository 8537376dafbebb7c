"""Amazon Bedrock's Converse API, for upstreams: ``{base_url}/model/{id}/converse`` and ``/converse-stream``.

request: what is asked · eventstream: the binary framing of streams · stream, reply: what it answers · schema: its words.
"""
from typing import Final
from urllib.parse import quote

from gateway.core.errors import bad_request
from gateway.core.events import Event
from gateway.core.request import Request
from gateway.wire.base import Outbound
from gateway.wire.bedrock_converse import reply, request, schema
from gateway.wire.bedrock_converse.eventstream import TYPE
from gateway.wire.bedrock_converse.stream import Decoder
from gateway.wire.lenient import dump
from gateway.wire.names import respelled
from gateway.wire.upstream_only import UpstreamOnly


class BedrockConverse(UpstreamOnly):
    """The wire; it has no state. Flag of a target: ``structured_outputs``, it keeps to a JSON schema by itself."""

    name = schema.NAME
    content_type = TYPE

    def build_request(self, asked: Request, to: Outbound) -> bytes:
        assert asked.conversation is not None, "a request of another format comes opened"
        try:
            return dump(request.build(respelled(asked.conversation, schema.NAME), to))
        except (ValueError, RecursionError):
            raise bad_request("The request body is nested too deeply.") from None

    def upstream_path(self, request: Request, to: Outbound) -> str:
        return f"/model/{quote(to.model, safe='')}/converse{'-stream' if to.stream else ''}"

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        return reply.parse(raw)

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        return Decoder(max_frame_bytes)


BEDROCK_CONVERSE: Final = BedrockConverse()
