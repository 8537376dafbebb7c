"""What of a dialogue is left out when it is too long for a model? Old tool results, then old thinking, then the oldest turns.

In the client's own format. Instructions and the user's last turn are kept as they were written, a call and its result stay or go
together, and a mark stands where something is missing. A *turn* begins with what the user says; a long one has *steps*: calls
with their results.
"""
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

Json = dict[str, Any]

LISTS: Final = {"openai-chat": "messages", "anthropic": "messages", "ollama": "messages", "openai-responses": "input",
                "gemini": "contents"}
LONG: Final = 2_000                              # characters of a tool's result that are kept in any case …
HEAD, TAIL = 1_200, 600                          # … and what is kept of one that is longer
MEDIA_CHARS: Final = 4_000                       # what a picture or a file is counted as
_SYSTEM: Final = frozenset({"system", "developer"})
_MEDIA: Final = frozenset({"image", "image_url", "input_image", "input_file", "input_audio", "document", "file"})
_BLOBS: Final = frozenset({"inlineData", "inline_data", "fileData", "file_data", "images", "data", "encrypted_content", "signature",
                           "thoughtSignature", "thought_signature"})
_THOUGHTS: Final = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_SEALED: Final = frozenset({"thinking", "redacted_thinking"})


class Cut(msgspec.Struct):
    """What was left out. ``missing``: characters that are still too many; above 0 the rest is of no use."""
    missing: int
    results: int = 0                             # tool results that were shortened
    thoughts: int = 0                            # messages without their thinking
    messages: int = 0                            # whole messages

    @property
    def words(self) -> str:
        told = (("messages", self.messages), ("tool results shortened", self.results), ("thoughts", self.thoughts))
        return ", ".join(f"{n} {name}" for name, n in told if n)


def cut(doc: Json, wire: str, excess: int) -> Cut:
    """Leave out ``excess`` characters of the document, which is changed."""
    found, field = Cut(excess), LISTS.get(wire)
    items = doc.get(field) if field is not None else None
    if field is None or not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return found
    turns = _turns(items)
    steps = _steps(items, turns[-1]) if turns else []
    newest = steps[-1][0] if steps else len(items)
    for item in items[:newest]:
        if found.missing > 0 and kind(item) == "result":
            _shorten(item, found)
    if found.missing > 0 and turns:
        _forget(items[:turns[-1][0]], wire, found)
    dropped: list[int] = []
    for unit in [*turns[:-1], *steps[:-1]]:
        if found.missing <= 0:
            break
        found.missing -= sum(size(items[at]) for at in unit)
        dropped += unit
    found.messages = len(dropped)
    if dropped:
        doc[field] = _without(items, frozenset(dropped), turns, found)
    elif found.thoughts:
        doc[field] = [item for item in items if not _hollow(item)]
    return found


# ---------------------------------------------------------------- how a dialogue is made up
def kind(item: Json) -> str:
    """Who says it: system, user, model, or result for what tools answered."""
    role, type_ = item.get("role"), str(item.get("type") or "")
    if role in _SYSTEM:
        return "system"
    if role in ("assistant", "model"):
        return "model"
    if role in ("tool", "function") or type_.endswith("_output"):
        return "result"
    if role is None and type_ not in ("", "message"):
        return "model"                           # calls, reasoning and other items of an answer
    return "result" if any(_answers(part) for part in _parts(item)) else "user"


def _answers(part: Json) -> bool:
    return part.get("type") == "tool_result" or "functionResponse" in part or "function_response" in part


def _parts(item: Json) -> Iterator[Json]:
    for name in ("content", "parts"):
        if isinstance(found := item.get(name), list):
            yield from (part for part in found if isinstance(part, dict))


def _turns(items: list[Json]) -> list[list[int]]:
    """Places of each turn's messages; instructions belong to none. What stands before the user's first word is a turn too."""
    turns: list[list[int]] = []
    last = ""
    for at, item in enumerate(items):
        who = kind(item)
        if who == "system":
            continue
        if not turns or (who == "user" and last != "user"):
            turns.append([])
        turns[-1].append(at)
        last = who
    return turns


def _steps(items: list[Json], turn: list[int]) -> list[list[int]]:
    """The steps of a turn, without what the user says in it."""
    steps: list[list[int]] = []
    last = ""
    for at in turn:
        who = kind(items[at])
        if who == "user":
            last = who
            continue
        if not steps or (who == "model" and last != "model"):
            steps.append([])
        steps[-1].append(at)
        last = who
    return steps


def size(value: Any) -> int:
    """About how many characters a model has to read of this."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(size, value))
    if isinstance(value, dict):
        if value.get("type") in _MEDIA:
            return MEDIA_CHARS
        return sum(MEDIA_CHARS if name in ("inlineData", "inline_data", "images") else 0 if name in _BLOBS else size(inner)
                   for name, inner in value.items())
    return 0


# ---------------------------------------------------------------- what is left out
def _shorten(item: Json, found: Cut) -> None:
    before = found.missing
    for holder, key in _results(item):
        text = holder[key]
        if len(text) > LONG:
            made = f"{text[:HEAD]}\n[… {len(text) - HEAD - TAIL} characters left out …]\n{text[-TAIL:]}"
            holder[key] = made
            found.missing -= len(text) - len(made)
    found.results += found.missing != before


def _results(item: Json) -> Iterator[tuple[Any, Any]]:
    """(what holds it, where) of every text that a tool said."""
    if item.get("role") in ("tool", "function") and "parts" not in item:
        yield from _texts(item, "content")
    elif str(item.get("type") or "").endswith("_output"):
        yield from _texts(item, "output")
    for part in _parts(item):
        if part.get("type") == "tool_result":
            yield from _texts(part, "content")
        for name in ("functionResponse", "function_response"):
            if isinstance(answered := part.get(name), dict):
                yield from _texts(answered, "response")


def _texts(holder: Any, key: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    value = holder[key] if isinstance(holder, list) else holder.get(key)
    if isinstance(value, str):
        yield holder, key
    elif isinstance(value, (list, dict)) and depth < 8 and not (isinstance(value, dict) and value.get("type") in _MEDIA):
        for inner in (range(len(value)) if isinstance(value, list) else [name for name in value if name not in _BLOBS]):
            yield from _texts(value, inner, depth + 1)


def _forget(items: list[Json], wire: str, found: Cut) -> None:
    """Thinking of turns that are over; the last turn's may be part of calls that go on."""
    for item in items:
        if found.missing <= 0:
            return
        if kind(item) == "model" and (saved := _FORGETS[wire](item)) > 0:
            found.missing -= saved
            found.thoughts += 1


def _forget_fields(item: Json) -> int:
    return sum(size(item.pop(name)) for name in _THOUGHTS if name in item)


def _forget_parts(name: str, thinks: Callable[[Json], bool]) -> Callable[[Json], int]:
    def forget(item: Json) -> int:
        parts = item.get(name)
        if not isinstance(parts, list):
            return 0
        kept = [part for part in parts if not (isinstance(part, dict) and thinks(part))]
        saved = size(parts) - size(kept)
        item[name] = kept
        return saved
    return forget


def _forget_item(item: Json) -> int:
    """Of Responses: thinking is an item of its own, and what follows it names it by its id."""
    if item.get("type") != "reasoning":
        if item.get("type") != "item_reference":
            item.pop("id", None)
        return 0
    saved = size(item)
    item.clear()
    return saved


_FORGETS: Final[dict[str, Callable[[Json], int]]] = {
    "openai-chat": _forget_fields, "ollama": _forget_fields, "openai-responses": _forget_item,
    "anthropic": _forget_parts("content", lambda part: part.get("type") in _SEALED),
    "gemini": _forget_parts("parts", lambda part: bool(part.get("thought"))),
}


def _hollow(item: Json) -> bool:
    """Is nothing left of it?"""
    return not item or item.get("content") == [] and item.get("role") == "assistant" or item.get("parts") == []


# ---------------------------------------------------------------- what stays
def _without(items: list[Json], dropped: frozenset[int], turns: list[list[int]], found: Cut) -> list[Json]:
    """The rest, with a mark, and without results whose calls are gone."""
    gone = {id_ for at in dropped for id_ in _called(items[at])}
    kept = [item for at, item in enumerate(items) if at not in dropped]
    kept = [left for item in kept if (left := _paired(item, gone)) is not None and not _hollow(left)]
    inner = any(at in dropped for at in turns[-1])
    what = "steps and messages" if inner and len(turns) > 1 else "steps" if inner else "messages"
    first = next((item for item in kept if kind(item) == "user"), None)
    if first is not None:
        _mark(first, f"[Earlier {what} of this conversation were left out here, {found.messages} in all, since it is too long.]")
    return kept


def _called(item: Json) -> Iterator[str]:
    """Ids of the calls that it makes."""
    for call in [*(item.get("tool_calls") or ()), *_parts(item), item]:
        if isinstance(call, dict):
            inner = call.get("functionCall")
            yield from (str(id_) for id_ in (call.get("call_id"), call.get("id"), inner.get("id") if isinstance(inner, dict) else None)
                        if id_)


def _paired(item: Json, gone: set[str]) -> Json | None:
    """The message without answers to calls that are gone."""
    if kind(item) != "result":
        return item
    if str(item.get("tool_call_id") or item.get("call_id")) in gone:
        return None
    for name in ("content", "parts"):
        parts = item.get(name)
        if isinstance(parts, list):
            kept = [part for part in parts if not (isinstance(part, dict) and _answered(part) in gone)]
            if len(kept) != len(parts):
                return {**item, name: kept} if kept else None
    return item


def _answered(part: Json) -> str:
    inner = part.get("functionResponse")
    return str(part.get("tool_use_id") or (inner.get("id") if isinstance(inner, dict) else "") or "")


def _mark(item: Json, mark: str) -> None:
    """In front of what the user says, whose words stay as they are."""
    name = "parts" if "parts" in item else "content"
    content = item.get(name)
    if isinstance(content, str):
        item[name] = f"{mark}\n\n{content}"
    elif isinstance(content, list):
        part: Json = {"text": mark} if name == "parts" else {"type": "text", "text": mark}
        if any(isinstance(each, dict) and str(each.get("type")).startswith("input_") for each in content):
            part["type"] = "input_text"
        item[name] = [part, *content]
