"""OpenAI chat completions, towards clients and towards upstreams; legacy completions are a variant (operation ``completions``)."""
from gateway.core.errors import GatewayError, bad_request
from gateway.core.events import Event
from gateway.core.reply import Reply
from gateway.core.request import Conversation, Request
from gateway.wire import openai_legacy as legacy
from gateway.wire.base import Outbound, Shown
from gateway.wire.openai_chat import building, conversation, faults, outgoing
from gateway.wire.openai_chat import reply as answer
from gateway.wire.openai_chat import request as asking
from gateway.wire.openai_chat.encode import Encoder
from gateway.wire.openai_chat.stream import Decoder
from gateway.wire.sse import CONTENT_TYPE, KEEP_ALIVE


class OpenAIChat:
    """The chat wire (``wire.base.Wire``). Flags of a target that it knows:

    ``completions``        the model has /completions itself: legacy requests go there as they came
    ``developer_role``     the target knows the role ``developer``; elsewhere it is written as ``system``
    ``no_stream_options``  the target refuses ``stream_options``
    """
    name = "openai-chat"
    content_type = CONTENT_TYPE
    silence = KEEP_ALIVE

    def parse_request(self, raw: bytes, operation: str = "chat", path_model: str = "",
                      path_stream: bool | None = None) -> Request:
        return legacy.parse_completion(raw) if operation == "completions" else asking.parse_chat(raw)

    def open(self, request: Request) -> Conversation:
        if request.conversation is None:
            opened = legacy.open_completion if request.operation == "completions" else conversation.open_chat
            request.conversation = opened(request)
        return request.conversation

    def build_request(self, request: Request, to: Outbound) -> bytes:
        if request.wire != self.name:
            build = building.other_format
        else:
            build = legacy.build_completion if request.operation == "completions" else outgoing.same_format
        try:
            return build(request, to)
        except (ValueError, RecursionError):
            raise bad_request("The request body is nested too deeply.") from None

    def upstream_path(self, request: Request, to: Outbound) -> str:
        return "/completions" if request.operation == "completions" and legacy.native(to) else "/chat/completions"

    def speaks(self, request: Request, to: Outbound) -> bool:
        """Does this target answer in the very format that the client reads (``same``)?"""
        return request.wire == self.name and (request.operation != "completions" or legacy.native(to))

    def parse_reply(self, raw: bytes, same: bool) -> list[Event]:
        return answer.parse_reply(raw, same)

    def build_reply(self, reply: Reply, shown: Shown, raw: bytes | None) -> bytes:
        build = legacy.build_completion_reply if shown.operation == "completions" else answer.build_reply
        return build(reply, shown, raw)

    def decoder(self, same: bool, model: str, max_frame_bytes: int) -> Decoder:
        return Decoder(same, model, max_frame_bytes)

    def encoder(self, shown: Shown) -> Encoder:
        return legacy.CompletionEncoder(shown) if shown.operation == "completions" else Encoder(shown)

    def render_error(self, error: GatewayError, operation: str = "chat") -> bytes:
        return faults.render(error)

    def error_frame(self, error: GatewayError, shown: Shown) -> bytes:
        return faults.in_stream(error, shown)


OPENAI_CHAT = OpenAIChat()
