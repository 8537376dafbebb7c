"""How is a request told again with other instructions or fewer tools? In its client's own language, parsed anew: one row a format.

The request that was given stays as it is. What is told anew is a body like any other, so upstreams of every format get it.
"""
from collections.abc import Callable
from typing import Any, Final

from gateway.core.request import Request
from gateway.wire.base import Wire
from gateway.wire.effort import Ceiling, limited
from gateway.wire.gemini.keys import camel_keys
from gateway.wire.lenient import dump, load
from gateway.wire.openai_responses.schema import Asked

Json = dict[str, Any]
Keep = Callable[[str], bool]                     # a tool's name -> does it stay?
TAGS: Final = frozenset({"tags", "tag_match"})
_SYSTEM: Final = ("system", "developer")
_CHOICES: Final = ("tool_choice", "function_call", "toolConfig", "parallel_tool_calls")


def instructed(request: Request, wire: Wire, text: str, replace: bool) -> Request:
    """With ``text`` as its instructions (``replace``), or behind those that it has."""
    doc = _opened(request)
    _INSTRUCT[request.wire](doc, text, replace)
    return _told(request, wire, doc)


def with_tools(request: Request, wire: Wire, keep: Keep) -> Request:
    """With those tools only that are kept; the very same where all of them are."""
    doc, dropped = _opened(request), list[str]()

    def kept(name: str) -> bool:
        stays = keep(name)
        if not stays:
            dropped.append(name)
        return stays

    for field in ("tools", "functions"):
        if isinstance(doc.get(field), (list, dict)):
            given = doc[field] if isinstance(doc[field], list) else [doc[field]]
            doc[field] = [made for tool in given if (made := _kept(tool, kept)) is not None]
            if not doc[field]:
                del doc[field]
    if not dropped:
        return request
    choice = request.tool_choice
    if not (doc.get("tools") or doc.get("functions")) or (choice is not None and choice.mode == "named" and choice.name in dropped):
        for field in _CHOICES:
            doc.pop(field, None)
    return _told(request, wire, doc)


def without_tags(request: Request, wire: Wire) -> Request:
    """Without the tags in its metadata: they were meant for routing, and providers refuse fields there that they do not know."""
    doc = _opened(request)
    metadata = doc.get("metadata")
    if not isinstance(metadata, dict) or not TAGS & metadata.keys():
        return request
    left = {name: value for name, value in metadata.items() if name not in TAGS}
    doc |= {"metadata": left}
    if not left:
        del doc["metadata"]
    return _told(request, wire, doc)


def without_field(request: Request, wire: Wire, name: str) -> Request:
    """Without a top-level field that was meant for the gateway."""
    doc = _opened(request)
    doc.pop(name, None)
    return _told(request, wire, doc)


def with_thinking(request: Request, wire: Wire, ceiling: Ceiling) -> Request:
    """Asking for no more thinking than that; the very same where it does not."""
    doc = _opened(request)
    return _told(request, wire, doc) if limited(doc, request.wire, ceiling) else request


def _opened(request: Request) -> Json:
    doc, _ = load(request.raw)
    return camel_keys(doc) if request.wire == "gemini" else doc     # type: ignore[no-any-return]


def _told(request: Request, wire: Wire, doc: Json) -> Request:
    made = wire.parse_request(dump(doc), request.operation, request.model, request.stream)
    made.model, made.fetched = request.model, request.fetched
    if isinstance(request.body, Asked):
        before, now = request.body, made.body
        now.previous_response_id, now.replayed, now.makers = before.previous_response_id, before.replayed, before.makers
        now.store = before.store
        made.clean = made.clean and not before.replayed
    return made


# ---------------------------------------------------------------- instructions
def _chat(doc: Json, text: str, replace: bool) -> None:
    """Into the last leading system message: templates of local models often take one only, and only at the beginning."""
    messages = doc.get("messages")
    if messages is None:
        doc["prompt"] = _prompted(doc.get("prompt"), text)
        return
    n = _leading(messages)
    if replace or not n:
        doc["messages"] = [{"role": "system", "content": text}, *(messages[n:] if replace else messages)]
        return
    last = messages[n - 1]
    doc["messages"] = [*messages[:n - 1], {**last, "content": _joined(last.get("content"), text, "text")}, *messages[n:]]


def _leading(messages: list[Any]) -> int:
    """How many system messages stand before everything else."""
    return next((n for n, each in enumerate(messages) if not isinstance(each, dict) or each.get("role") not in _SYSTEM), len(messages))


def _prompted(prompt: Any, text: str) -> Any:
    """Completions have no instructions: they stand before the prompt, where that is text."""
    if isinstance(prompt, str):
        return f"{text}\n\n{prompt}"
    return [f"{text}\n\n{one}" if isinstance(one, str) else one for one in prompt] if isinstance(prompt, list) else prompt


def _joined(content: Any, text: str, kind: str) -> Any:
    """Texts or parts, with one more."""
    if isinstance(content, list):
        return [*content, {"type": kind, "text": text}]
    return f"{content}\n\n{text}" if content else text


def _anthropic(doc: Json, text: str, replace: bool) -> None:
    doc["system"] = text if replace else _joined(doc.get("system"), text, "text")


def _responses(doc: Json, text: str, replace: bool) -> None:
    given, items = doc.get("instructions"), doc.get("input")
    if replace:
        doc["instructions"] = text
        if isinstance(items, list):
            doc["input"] = items[_leading(items):] or items
    elif isinstance(given, list):
        doc["instructions"] = [*given, {"type": "message", "role": "system", "content": [{"type": "input_text", "text": text}]}]
    else:
        doc["instructions"] = _joined(given, text, "input_text")


def _gemini(doc: Json, text: str, replace: bool) -> None:
    given = doc.get("systemInstruction")
    parts = given.get("parts") if isinstance(given, dict) else given
    before = parts if isinstance(parts, list) else [] if parts is None else [parts]
    said = [{"text": part} if isinstance(part, str) else part for part in before]
    doc["systemInstruction"] = {"parts": [*([] if replace else said), {"text": text}]}


def _ollama(doc: Json, text: str, replace: bool) -> None:
    if doc.get("messages") is None:
        doc["system"] = text if replace else _joined(doc.get("system"), text, "text")
    else:
        _chat(doc, text, replace)


_INSTRUCT: Final[dict[str, Callable[[Json, str, bool], None]]] = {
    "openai-chat": _chat, "anthropic": _anthropic, "openai-responses": _responses, "gemini": _gemini, "ollama": _ollama,
}


# ---------------------------------------------------------------- tools
def _kept(tool: Any, keep: Keep) -> Any:
    """The declaration, or what is left of one that holds several; None when nothing is."""
    if not isinstance(tool, dict):
        return tool
    if isinstance(tool.get("functionDeclarations"), (list, dict)):
        return _declared(tool, keep)
    if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
        inner = [made for one in tool["tools"] if (made := _kept(one, keep)) is not None]
        return {**tool, "tools": inner} if inner else None
    return tool if keep(_name(tool)) else None


def _declared(tool: Json, keep: Keep) -> Json | None:
    """Gemini's: functions in a list, and what Google runs itself beside them by name."""
    given = tool["functionDeclarations"]
    functions = [one for one in (given if isinstance(given, list) else [given])
                 if not isinstance(one, dict) or keep(str(one.get("name")))]
    made = {name: value for name, value in tool.items() if name != "functionDeclarations" and keep(name)}
    if functions:
        made["functionDeclarations"] = functions
    return made or None


def _name(tool: Json) -> str:
    """A tool without a name is one that its provider runs: its type, or in Gemini's language its only key, is its name."""
    for inner in (tool, tool.get("function"), tool.get("custom")):
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            return str(inner["name"])
    return str(tool.get("type") or next(iter(tool), ""))
