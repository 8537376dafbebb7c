"""To which session does a request belong? What the client says itself, else how its conversation began.

A session keeps prompt caches warm, brings thought signatures back, and is one caller's: the same words of another are another's.
"""
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gateway.core import request as rq
from gateway.core.request import Request

# A client's own word goes before the general one. Codex spells its header with an underscore.
HEADERS: Final = ("x-claude-code-session-id", "x-codex-session-id", "session-id", "session_id", "x-ollama-session-id",
                  "x-session-id")
MAX_NAME: Final = 256
MAX_OPENING: Final = 4_096                       # characters of the first message, and bytes where its words are not found


def session_key(headers: Mapping[str, str], request: Request, principal: str) -> str:
    """32 hex digits. ``headers`` is case-insensitive (or has lower-case names)."""
    named = next((value for name in HEADERS if (value := headers.get(name))), "") or request.session_hint
    said = f"n{named[:MAX_NAME]}" if named else f"o{opening(request)[:MAX_OPENING]}"
    return hashlib.blake2b(f"{principal}\0{said}".encode("utf-8", "replace"), digest_size=16).hexdigest()


def opening(request: Request) -> str:
    """The text of the first user message: what stays the same while the conversation grows."""
    find = _OPENINGS.get(request.wire)
    text = find(request.body) if find is not None else _opened(request.conversation)
    return text or request.raw[:MAX_OPENING].decode("utf-8", "replace")


def _chat(body: Any) -> str:
    prompt = getattr(body, "prompt", None)
    if prompt is not None:
        return str(prompt)
    return _first((message.role, message.content) for message in getattr(body, "messages", None) or ())


def _messages(body: Any) -> str:
    return _first((message.get("role"), message.get("content")) for message in body.get("messages") or ())


def _responses(body: Any) -> str:
    given = body.doc.get("input")
    if isinstance(given, str):
        return given
    return _first((item.get("role"), item.get("content")) for item in given or ())


def _gemini(body: Any) -> str:
    return _first((turn.get("role") or "user", turn.get("parts")) for turn in body.get("contents") or ())


def _opened(talk: rq.Conversation | None) -> str:
    return _first((message.role, message.parts) for message in talk.messages) if talk is not None else ""


_OPENINGS: Final[dict[str, Callable[[Any], str]]] = {
    "openai-chat": _chat, "openai-responses": _responses, "anthropic": _messages, "gemini": _gemini, "ollama": _chat,
}


def _first(turns: Iterable[tuple[Any, Any]]) -> str:
    return next((text for role, content in turns if role == "user" and (text := _text(content))), "")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join([said if isinstance(said, str) else "" for part in content
                    for said in [part if isinstance(part, str) else part.get("text") if isinstance(part, dict)
                                 else getattr(part, "text", "")]])
