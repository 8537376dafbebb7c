"""Where does a body of each wire hold the texts of its conversation? Read as segments, and written back byte for byte around them.

Written back is what changed and nothing else: every value beside the path of a changed text keeps its bytes.
What is signed, cited by position, or an error is no segment.
"""
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson

from gateway.compress.segment import MAX_CHARS, Path, Segment, Talk
from gateway.wire import splice

Json = dict[str, Any]
Calls = dict[str, tuple[str, str]]               # id -> (tool, arguments)
_items = msgspec.json.Decoder(list[msgspec.Raw])

SYSTEM: Final = frozenset({"system", "developer"})


def read(wire: str, raw: bytes) -> Talk | None:
    """None where there is no conversation to be read."""
    reader = READERS.get(wire)
    if reader is None:
        return None
    try:
        doc = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(doc, dict):
        return None
    segments: list[Segment] = []
    marks: list[int] = []
    messages = 0
    for message, part, pinned in reader(doc):
        messages = max(messages, message + 1)
        if pinned:
            marks.append(message)
        if part is not None and part.text:
            segments.append(part)
    if "cache_control" in doc:                       # the client leaves the place to the provider: the end
        marks.append(messages)
    return _judged(segments, messages, max(marks, default=-2))


def _judged(segments: list[Segment], messages: int, mark: int) -> Talk:
    """Turns, and what nobody may change: systems, the first task, the last turn, the start of an answer to be gone on with."""
    starts = list(dict.fromkeys(s.message for s in segments if s.role == "user"))
    ends = {starts[0], starts[-1]} if starts else set()
    turn = -1
    known = set(starts)
    for segment in segments:
        if segment.message in known:
            known.discard(segment.message)
            turn += 1
        segment.turn = max(turn, 0)
        segment.pinned = segment.message <= mark
        segment.locked = (segment.role == "user" and segment.message in ends) or (
            segment.role == "assistant" and segment.message == messages - 1) or len(segment.text) > MAX_CHARS
    return Talk(segments, messages, max(len(starts), 1))


# ---------------------------------------------------------------- readers: (message, its text or None, is there a cache marker?)
Found = Iterator[tuple[int, Segment | None, bool]]


def _texts(content: Any, path: Path, keys: tuple[str, ...] = ("text",)) -> Iterator[tuple[Path, str, bool]]:
    """(path, text, marker?) of a content that is a text or a list of parts."""
    if isinstance(content, str):
        yield path, content, False
    elif isinstance(content, list):
        for index, part in enumerate(content):
            if isinstance(part, dict):
                plain = not (part.get("citations") or part.get("annotations"))
                text = next((part[key] for key in keys if isinstance(part.get(key), str)), "") if plain else ""
                yield (*path, index, "text"), text, "cache_control" in part


def _chat(doc: Json) -> Found:
    calls: Calls = {}
    names: list[tuple[str, str]] = []                # calls without ids, in their order (Ollama)
    for index, message in enumerate(_list(doc.get("messages"))):
        role = str(message.get("role"))
        for called in _list(message.get("tool_calls")):
            function = called.get("function")
            if isinstance(function, dict):
                known = str(function.get("name") or ""), _words(function.get("arguments"))
                calls[str(called.get("id"))] = known
                if "id" not in called:
                    names.append(known)
        tool, arguments = "", ""
        if role in ("tool", "function"):
            role, given = "tool", message.get("tool_call_id")
            tool, arguments = calls.get(str(given)) or _next(names, str(message.get("tool_name") or message.get("name") or ""))
        role = "system" if role in SYSTEM else role
        yield index, None, "cache_control" in message
        for path, text, marked in _texts(message.get("content"), ("messages", index, "content")):
            yield index, Segment(path, index, role, text, tool, arguments), marked


def _next(names: list[tuple[str, str]], name: str) -> tuple[str, str]:
    at = next((i for i, known in enumerate(names) if not name or known[0] == name), None)
    return names.pop(at) if at is not None else (name, "")


def _anthropic(doc: Json) -> Found:
    calls: Calls = {}
    for path, text, marked in _texts(doc.get("system"), ("system",)):
        yield -1, Segment(path, -1, "system", text), marked
    for index, message in enumerate(_list(doc.get("messages"))):
        role, content = str(message.get("role")), message.get("content")
        base: Path = ("messages", index, "content")
        yield index, None, False
        for path, text, marked in _texts(content, base):
            yield index, Segment(path, index, "system" if role in SYSTEM else role, text), marked
        for at, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use":
                calls[str(block.get("id"))] = str(block.get("name") or ""), _words(block.get("input"))
            elif block.get("type") == "tool_result" and not block.get("is_error"):
                tool, arguments = calls.get(str(block.get("tool_use_id")), ("", ""))
                for path, text, marked in _texts(block.get("content"), (*base, at, "content")):
                    yield index, Segment(path, index, "tool", text, tool, arguments), marked


def _responses(doc: Json) -> Found:
    calls: Calls = {}
    if isinstance(doc.get("instructions"), str):
        yield -1, Segment(("instructions",), -1, "system", doc["instructions"]), False
    if isinstance(doc.get("input"), str):
        yield 0, Segment(("input",), 0, "user", doc["input"]), False
        return
    for index, item in enumerate(_list(doc.get("input"))):
        kind, base = str(item.get("type") or "message"), ("input", index)
        yield index, None, False
        if kind == "message":
            role = str(item.get("role"))
            for path, text, _ in _texts(item.get("content"), (*base, "content")):
                yield index, Segment(path, index, "system" if role in SYSTEM else role, text), False
        elif kind.endswith("_call"):
            calls[str(item.get("call_id"))] = (str(item.get("name") or kind.removesuffix("_call")),
                                               _words(item.get("arguments") or item.get("input") or item.get("action")))
        elif kind.endswith("_call_output"):
            tool, arguments = calls.get(str(item.get("call_id")), ("", ""))
            for path, text, _ in _texts(item.get("output"), (*base, "output")):
                yield index, Segment(path, index, "tool", text, tool, arguments), False


def _gemini(doc: Json) -> Found:
    calls: Calls = {}
    key = "systemInstruction" if "systemInstruction" in doc else "system_instruction"
    system = doc.get(key)
    if isinstance(system, dict):
        for path, text, _ in _texts(system.get("parts"), (key, "parts")):
            yield -1, Segment(path, -1, "system", text), False
    for index, turn in enumerate(_list(doc.get("contents"))):
        role = {"model": "assistant", "function": "tool"}.get(str(turn.get("role")), "user")
        yield index, None, False
        for at, part in enumerate(_list(turn.get("parts"))):
            base: Path = ("contents", index, "parts", at)
            called, answered = part.get("functionCall"), part.get("functionResponse")
            if isinstance(called, dict):
                known = str(called.get("name") or ""), _words(called.get("args"))
                calls[str(called.get("id"))] = calls[f"name {called.get('name')}"] = known
            elif isinstance(answered, dict) and isinstance(answered.get("response"), dict):
                name = str(answered.get("name") or "")
                tool, arguments = calls.get(str(answered.get("id"))) or calls.get(f"name {name}", (name, ""))
                for field, text in answered["response"].items():
                    if isinstance(text, str) and field != "error":
                        yield index, Segment((*base, "functionResponse", "response", field), index, "tool", text, tool,
                                             arguments), False
            elif isinstance(part.get("text"), str) and not part.get("thought") and not part.get("thoughtSignature"):
                yield index, Segment((*base, "text"), index, role, part["text"]), False


READERS: Final[Mapping[str, Callable[[Json], Found]]] = {
    "openai-chat": _chat,
    "ollama": _chat,
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "gemini": _gemini,
}


def _list(value: Any) -> list[Json]:
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def _words(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return orjson.dumps(arguments).decode() if arguments is not None else ""


# ---------------------------------------------------------------- written back
Tree = dict[str | int, Any]


def write(raw: bytes, changed: list[Segment]) -> bytes:
    """The body with these texts. Raises ValueError where a text is no Unicode."""
    tree: Tree = {}
    for segment in changed:
        here = tree
        for step in segment.path[:-1]:
            here = here.setdefault(step, {})
        here[segment.path[-1]] = segment.text
    return _spliced(raw, tree)


def _spliced(raw: bytes, tree: Tree) -> bytes:
    if any(isinstance(step, int) for step in tree):
        items: list[bytes | msgspec.Raw] = [*_items.decode(raw)]
        for at, below in tree.items():
            items[int(at)] = _leaf(items[int(at)], below)
        return b"[" + b",".join(items) + b"]"
    top: dict[str, bytes | msgspec.Raw] = {**splice.fields(raw)}
    for key, below in tree.items():
        top[str(key)] = _leaf(top[str(key)], below)
    return splice.join(top)


def _leaf(raw: bytes | msgspec.Raw, below: Any) -> bytes:
    return msgspec.json.encode(below) if isinstance(below, str) else _spliced(bytes(raw), below)
