"""Google's Gemini API, for both sides: ``/v1beta/models/{m}:generateContent`` towards clients, the same towards upstreams.

request, keys, conversation: what a client asks · same, build, turns, openapi, thinking: what an upstream is asked · stream, frames,
partial, reply: what it answers · encoder, reply: what the client is told · faults: errors, both ways · embed: embeddings.
"""
from typing import Final
from urllib.parse import quote

from gateway.core.errors import GatewayError, bad_request
from gateway.core.events import Event
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request
from gateway.wire import sse
from gateway.wire.base import Outbound, Shown
from gateway.wire.gemini import build, conversation, faults, reply, request, same, schema
from gateway.wire.gemini.encoder import Encoder
from gateway.wire.gemini.reply import build_count as build_count
from gateway.wire.gemini.stream import Decoder


class Gemini:
    """The wire (``wire.base.Wire``); it has no state. Operations: ``chat``, ``chat-array`` (a stream as one JSON array, to be
    sent as ``jsonl.ARRAY_TYPE``) and ``count_tokens``. The model and whether to stream come from the path. Flags of a target:

    ``call_ids``      it knows ids in functionCall and functionResponse (Vertex refuses unknown fields)
    ``json_schema``   it takes JSON Schema as it is (parametersJsonSchema, responseJsonSchema)
    ``server_tools``  it may search the web where the client asked another provider's server to
    """
    name = schema.NAME
    content_type = sse.CONTENT_TYPE
    silence = b""                                    # a comment is fatal to Google's own libraries

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "",
                      path_stream: bool | None = None) -> Request:
        return request.parse(raw, operation, path_model, path_stream is True)

    def open(self, request: Request) -> Conversation:
        if request.conversation is None:
            request.conversation = conversation.conversation(request)
        return request.conversation

    def build_request(self, request: Request, to: Outbound) -> bytes:
        try:
            return same.rebuild(request, to) if request.wire == schema.NAME else build.other_format(request, to)
        except (ValueError, RecursionError):
            raise bad_request("The request body is nested too deeply.") from None

    def upstream_path(self, request: Request, to: Outbound) -> str:
        model = to.model if to.model.startswith(("models/", "tunedModels/")) else f"models/{to.model}"
        verb = "countTokens" if request.operation == "count_tokens" else \
            "streamGenerateContent?alt=sse" if to.stream else "generateContent"
        return f"/{quote(model, safe='/:@')}:{verb}"

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
        return faults.in_stream(error, shown.operation, first=False)


GEMINI: Final = Gemini()
