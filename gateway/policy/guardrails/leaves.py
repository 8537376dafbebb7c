"""Which texts of a request's body does a model read, and who said them? Every one of them, in the bodies of all surfaces.

Declarations of tools are the program's own, not its users', and stay; so do ids, types, data in base64 and what is signed.
"""
from collections.abc import Iterator
from typing import Any, Final

import msgspec

Path = tuple[str | int, ...]
DEPTH: Final = 100
LONG_NUMBER: Final = 10**8                       # a number with so many digits may be somebody's; what is changed becomes a text

_TOP: Final = frozenset({"messages", "system", "instructions", "input", "prompt", "suffix", "contents", "content", "systemInstruction",
                         "system_instruction", "user", "metadata", "query", "documents", "prediction", "requests", "texts"})
_SKIPPED: Final = frozenset({"id", "type", "role", "call_id", "tool_call_id", "tool_use_id", "tool_name", "status", "format", "detail",
                             "media_type", "mimeType", "mime_type", "data", "b64_json", "file_data", "file_id", "image", "images",
                             "url", "image_url", "fileUri", "file_uri", "signature", "encrypted_content", "thoughtSignature",
                             "thought_signature", "reasoning_content", "reasoning", "reasoning_details", "cache_control", "model",
                             "previous_response_id", "embedding"})
_SEALED: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
_ROLES: Final = {"system": "system", "developer": "system", "assistant": "assistant", "model": "assistant", "tool": "tool",
                 "function": "tool", "user": "user"}
_WHOSE: Final = {"system": "system", "instructions": "system", "systemInstruction": "system", "system_instruction": "system"}


class Leaf(msgspec.Struct, frozen=True):
    """One text. ``role``: system, user, assistant or tool; ``json``: it is JSON itself (arguments of a call)."""
    path: Path
    text: str
    role: str
    json: bool = False


def leaves(doc: Any) -> Iterator[Leaf]:
    """In the order of the body. Raises ValueError where it is nested too deeply."""
    if isinstance(doc, dict):
        for name, value in doc.items():
            if name in _TOP:
                yield from _below(value, (name,), _WHOSE.get(name, "user"), 1)


def _below(value: Any, path: Path, role: str, depth: int) -> Iterator[Leaf]:
    if isinstance(value, str):
        if value and not value.startswith("data:"):
            yield Leaf(path, value, role, path[-1] == "arguments")
    elif isinstance(value, int) and value >= LONG_NUMBER:
        yield Leaf(path, str(value), role)
    elif depth >= DEPTH:
        raise ValueError("nested too deeply")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _below(item, (*path, at), role, depth + 1)
    elif isinstance(value, dict):
        kind = str(value.get("type") or "")
        if kind in _SEALED or value.get("thought") is True or "thoughtSignature" in value or "encrypted_content" in value:
            return
        role = _whose(value, kind, role)
        for name, inner in value.items():
            if name not in _SKIPPED:
                yield from _below(inner, (*path, name), role, depth + 1)


def _whose(value: dict[str, Any], kind: str, role: str) -> str:
    if kind == "tool_result" or kind.endswith("_output") or "functionResponse" in value or "function_response" in value:
        return "tool"
    if kind == "tool_use" or kind.endswith("_call") or "functionCall" in value:
        return "assistant"
    return _ROLES.get(str(value.get("role")), role) if isinstance(value.get("role"), str) else role


def pointer(path: Path) -> str:
    """As errors name a field: ``messages.1.content``."""
    return ".".join(map(str, path))
