"""Which API languages are there? One row each; a wire serves both sides, the client's and the upstream's."""
from typing import Final

from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.base import Wire
from gateway.wire.bedrock_converse import BEDROCK_CONVERSE
from gateway.wire.cohere import COHERE
from gateway.wire.gemini import GEMINI
from gateway.wire.ollama import OLLAMA
from gateway.wire.openai_chat import OPENAI_CHAT
from gateway.wire.openai_responses import OPENAI_RESPONSES

WIRES: Final[dict[str, Wire]] = {
    "openai-chat": OPENAI_CHAT,
    "openai-responses": OPENAI_RESPONSES,
    "gemini": GEMINI,
    "anthropic": ANTHROPIC,
    "ollama": OLLAMA,
    "bedrock-converse": BEDROCK_CONVERSE,
    "cohere": COHERE,
}
