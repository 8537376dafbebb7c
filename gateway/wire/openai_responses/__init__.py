"""OpenAI's Responses format, for both sides: ``/v1/responses`` towards clients, ``{base_url}/responses`` towards upstreams.

request, tools, conversation: what a client asks · outgoing, building, items: what an upstream is asked · stream, straight, reading,
frames, told, reply: what it answers · encode, paper, parts, calls, response: what the client is told · faults: errors.
For stored state: ``with_history``, ``input_items``, ``output_items``, and ``Encoder.final`` or the whole answer's body.
"""
from typing import Final

from gateway.core.errors import GatewayError, bad_request
from gateway.core.events import Event, Fault
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request
from gateway.wire.base import Outbound, Shown
from gateway.wire.openai_chat import faults as chat_faults
from gateway.wire.openai_responses import building, conversation, outgoing
from gateway.wire.openai_responses import reply as answer
from gateway.wire.openai_responses import request as asking
from gateway.wire.openai_responses.encode import Encoder
from gateway.wire.openai_responses.items import input_items as input_items
from gateway.wire.openai_responses.items import output_items as output_items
from gateway.wire.openai_responses.items import with_history as with_history
from gateway.wire.openai_responses.items import without_reasoning as without_reasoning
from gateway.wire.openai_responses.schema import WIRE
from gateway.wire.openai_responses.stream import Decoder
from gateway.wire.sse import CONTENT_TYPE, KEEP_ALIVE


class OpenAIResponses:
    """The wire (``wire.base.Wire``); it has no state."""

    name: str = WIRE
    content_type: str = CONTENT_TYPE
    silence: bytes = KEEP_ALIVE

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "",
                      path_stream: bool | None = None) -> Request:
        return asking.parse(raw)

    def open(self, request: Request) -> Conversation:
        if request.conversation is None:
            request.conversation = conversation.open_responses(request)
        return request.conversation

    def build_request(self, request: Request, to: Outbound) -> bytes:
        build = outgoing.same_format if request.wire == WIRE else building.other_format
        try:
            return build(request, to)
        except (ValueError, RecursionError):
            raise bad_request("The request body is nested too deeply.") from None

    def speaks(self, request: Request, to: Outbound) -> bool:
        return request.wire == WIRE

    def upstream_path(self, request: Request, to: Outbound) -> str:
        return "/responses"

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        return answer.parse_reply(raw, same)

    def build_reply(self, reply: Reply, shown: Shown, raw: bytes | None) -> bytes:
        return answer.build_reply(reply, shown, raw)

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        return Decoder(same, model, max_frame_bytes)

    def encoder(self, shown: Shown) -> Encoder:
        return Encoder(shown)

    def render_error(self, error: GatewayError, operation: str = "chat") -> bytes:
        return chat_faults.render(error)

    def error_frame(self, error: GatewayError, shown: Shown) -> bytes:
        return Encoder(shown).encode([Fault(error)])


OPENAI_RESPONSES: Final = OpenAIResponses()
