"""Which programs can be pointed at a gateway? One row a client; its file says how: variables, lines of its settings, arguments."""
from collections.abc import Callable
from typing import Final

from gateway.cli.clients import aider, claude_code, codex, crush, gemini_cli, goose, opencode, qwen_code
from gateway.cli.clients.place import Place, Setup

CLIENTS: Final[dict[str, Callable[[Place], Setup]]] = {
    "claude-code": claude_code.setup,
    "codex": codex.setup,
    "gemini-cli": gemini_cli.setup,
    "opencode": opencode.setup,
    "aider": aider.setup,
    "qwen-code": qwen_code.setup,
    "goose": goose.setup,
    "crush": crush.setup,
}
