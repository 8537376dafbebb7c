"""What do the words of a request tell routing? Its session, how its conversation began, what it is about, its tags.

Only what routing will use is looked at: a name with one candidate has nothing to choose, and words matter to ``auto`` alone. Each
wire keeps its body in its own way; one row each says where the turns are.
"""
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from gateway.core.request import Request
from gateway.pipeline.deliver import Client
from gateway.routing.affinity import HEADERS, session_key
from gateway.routing.ask import NOTHING, SCAN_CHARS, Ask
from gateway.routing.resolve import Resolution

Turns = list[tuple[str, Any]]                # (role, content), content as the wire has it
_DEPTH: Final = 4
_READS: Final = frozenset({"auto"})          # strategies that go by the words


def ask(request: Request, resolution: Resolution, principal: str, client: Client, sticky: bool) -> Ask:
    """What there is to know; NOTHING where nothing would come of it."""
    if request.wire not in _TURNS or not resolution.several:
        return NOTHING
    reads = resolution.strategy in _READS or any(leg.combo is not None and leg.combo.strategy in _READS for leg in resolution.legs)
    if not (sticky or reads or resolution.settings.context_pin or _tagged(resolution)):
        return NOTHING
    turns = _turns(request)
    named = bool(request.session_hint) or any(name in client.headers for name in HEADERS)
    session = session_key(client.headers, request, principal)
    answered = named or any(role in ("assistant", "model") for role, _ in turns)
    tags, all_of = _tags(request)
    return Ask(session=session, prefix=session if not named else session_key({}, _unnamed(request), principal),
               text=_newest(turns) if reads else "", chars=request.chars, turns=len(turns), tools=len(request.tools),
               max_tokens=request.max_tokens or 0, effort=_effort(request), answered=answered, tags=tags, tags_all=all_of)


def _unnamed(request: Request) -> Request:
    """The same request of a client that names no session: what its prompt begins with."""
    return msgspec.structs.replace(request, session_hint="")


def _tagged(resolution: Resolution) -> bool:
    return resolution.combo is not None and any(leg.tags for leg in resolution.legs)


def _turns(request: Request) -> Turns:
    """Every turn of the dialogue, in the caller's own form."""
    read = _TURNS.get(request.wire)
    return read(request.body) if read is not None else []


def _chat(body: Any) -> Turns:
    prompt = getattr(body, "prompt", None)
    if prompt is not None:
        return [("user", prompt)]
    return [(message.role, message.content) for message in getattr(body, "messages", None) or ()]


def _plain(body: Any) -> Turns:
    messages = body.get("messages") if isinstance(body, dict) else None
    return [(str(each.get("role")), each.get("content")) for each in messages or () if isinstance(each, dict)]


def _responses(body: Any) -> Turns:
    given = body.doc.get("input") if hasattr(body, "doc") else None
    if isinstance(given, str):
        return [("user", given)]
    return [(str(each.get("role") or ("assistant" if "call" in str(each.get("type")) else "")), each.get("content"))
            for each in given or () if isinstance(each, dict)]


def _gemini(body: Any) -> Turns:
    contents = body.get("contents") if isinstance(body, dict) else None
    contents = contents if isinstance(contents, list) else [contents]
    return [(str(each.get("role") or "user"), each.get("parts")) for each in contents if isinstance(each, dict)]


_TURNS: Final[Mapping[str, Callable[[Any], Turns]]] = {
    "openai-chat": _chat, "anthropic": _plain, "openai-responses": _responses, "gemini": _gemini, "ollama": _plain,
}
def _document(request: Request) -> Mapping[str, Any]:
    body = getattr(request.body, "doc", request.body)
    return body if isinstance(body, dict) else {}


def text(content: Any, depth: int = 0) -> str:
    """The words of a content, of whatever shape; bounded."""
    if isinstance(content, str):
        return content[:SCAN_CHARS]
    if depth >= _DEPTH or content is None:
        return ""
    if isinstance(content, dict):
        return text(content.get("text") or content.get("parts") or content.get("content"), depth + 1)
    if isinstance(content, (list, tuple)):
        return _joined(text(part, depth + 1) for part in content)
    return text(getattr(content, "text", None), depth + 1)


def _joined(parts: Iterable[str]) -> str:
    found: list[str] = []
    length = 0
    for part in parts:
        found.append(part)
        length += len(part)
        if length >= SCAN_CHARS:
            break
    return " ".join(found)[:SCAN_CHARS]


def _newest(turns: Turns) -> str:
    return next((words for role, content in reversed(turns) if role == "user" and (words := text(content))), "")


def _effort(request: Request) -> str:
    effort = getattr(request.body, "reasoning_effort", None)
    if effort is None:
        reasoning = _document(request).get("reasoning")
        effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    return effort if isinstance(effort, str) else ""


def _tags(request: Request) -> tuple[frozenset[str], bool]:
    """``metadata.tags`` (a list, or words with commas) and whether all of them are wanted (``metadata.tag_match``)."""
    metadata = getattr(request.body, "metadata", None) or _document(request).get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("tags"):
        return frozenset(), False
    tags = metadata["tags"]
    words = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
    return frozenset(word.strip() for word in words if isinstance(word, str) and word.strip()), metadata.get("tag_match") == "all"
