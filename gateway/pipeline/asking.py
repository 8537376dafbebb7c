"""What do the words of a request tell routing? Its session, how its conversation began, what it is about, its tags.

Only what routing will use is looked at: a name with one candidate has nothing to choose, and words matter to ``auto`` alone. Each
wire keeps its body in its own way; one row each says where the turns are.
"""
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.config.schema import Routing
from gateway.core.request import Request
from gateway.pipeline.deliver import Client
from gateway.routing.affinity import HEADERS, session_key
from gateway.routing.ask import NOTHING, SCAN_CHARS, Ask
from gateway.routing.resolve import Resolution

if TYPE_CHECKING:
    from gateway.pipeline.ground import Ground
    from gateway.pipeline.prepare import Plan

Turns = list[tuple[str, Any]]                # (role, content), content as the wire has it
_DEPTH: Final = 4
_SYSTEM: Final = frozenset({"system", "developer"})
_READS: Final = frozenset({"auto"})          # strategies that go by the words


def ask(plan: "Plan", principal: str, client: Client, ground: "Ground") -> Ask:
    """What there is to know; NOTHING where nothing would come of it."""
    request, resolution, routing = plan.request, plan.resolution, ground.snapshot.routing
    if request.wire not in _TURNS or not resolution.several:
        return NOTHING
    reads = routing.intents.enabled and (resolution.strategy in _READS or any(
        leg.combo is not None and leg.combo.strategy in _READS for leg in resolution.legs))
    relay = relays(resolution, routing)
    if not (routing.sticky_ttl_s or reads or resolution.settings.context_pin or plan.tags or relay):
        return NOTHING
    said = turns(request)
    named = bool(request.session_hint) or any(name in client.headers for name in HEADERS)
    session = session_key(client.headers, request, principal)
    answered = named or any(role in ("assistant", "model") for role, _ in said)
    return Ask(session=session, prefix=session if not named else session_key({}, _unnamed(request), principal),
               text=newest(said) if reads else "", chars=request.chars, turns=len(said), tools=len(request.tools),
               max_tokens=request.max_tokens or 0, effort=_effort(request), answered=answered, tags=plan.tags,
               tags_all=plan.tags_all, relay=relay, intents=ground.intents)


def relays(resolution: Resolution, routing: Routing) -> bool:
    """Is a conversation under this name handed over to another model? The combo's own word, then its strategy, then everybody's."""
    own = resolution.settings.handoff
    if own is not None:
        return own == "on-switch"
    return resolution.strategy == "context-relay" or routing.handoff == "on-switch"


def system(request: Request) -> str:
    """The words of its instructions; bounded."""
    doc = _document(request)
    given = [doc.get(name) for name in ("system", "instructions", "systemInstruction")] + [getattr(request.body, "system", None)]
    return _joined([text(one) for one in given if one] + [text(content) for role, content in turns(request) if role in _SYSTEM])


def _unnamed(request: Request) -> Request:
    """The same request of a client that names no session: what its prompt begins with."""
    return msgspec.structs.replace(request, session_hint="")


def turns(request: Request) -> Turns:
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


def _ollama(body: Any) -> Turns:
    if getattr(body, "prompt", None) is not None:
        return [("user", body.prompt)]
    return [(message.role, message.content) for message in getattr(body, "messages", None) or ()]


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
    "openai-chat": _chat, "anthropic": _plain, "openai-responses": _responses, "gemini": _gemini, "ollama": _ollama,
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


def newest(said: Turns) -> str:
    return next((words for role, content in reversed(said) if role == "user" and (words := text(content))), "")


def _effort(request: Request) -> str:
    effort = getattr(request.body, "reasoning_effort", None)
    if effort is None:
        reasoning = _document(request).get("reasoning")
        effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    return effort if isinstance(effort, str) else ""


def tags_of(request: Request) -> tuple[frozenset[str], bool]:
    """``metadata.tags`` (a list, or words with commas) and whether all of them are wanted (``metadata.tag_match``)."""
    metadata = getattr(request.body, "metadata", None) or _document(request).get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("tags"):
        return frozenset(), False
    tags = metadata["tags"]
    words = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
    return frozenset(word.strip() for word in words if isinstance(word, str) and word.strip()), metadata.get("tag_match") == "all"
