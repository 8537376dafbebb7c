"""What must a list of messages look like so that the API takes it, and how is one brought into that form?

Each call is answered in the very next user turn, results first; ids are unique and of a small alphabet; text is never blank;
thinking carries its signature; pictures are what they say. The same pass serves requests of Anthropic clients that need it and
those translated from other formats. Blocks that need nothing are kept as they are, unknown fields included.
https://docs.anthropic.com/en/docs/build-with-claude/tool-use
"""
from typing import Any, Final

from gateway.wire.anthropic.schema import Json, image_type, safe_id

NO_RESULT: Final = "No result was returned for this call."
OPENING: Final = "Continue."


# ---------------------------------------------------------------- is anything wrong?
def sound(messages: list[Json]) -> bool:
    """Would the API take these messages? Then the caller's bytes may go on as they are."""
    waiting: set[str] = set()
    seen: set[str] = set()
    last = len(messages) - 1
    for position, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        if waiting and role != "user":
            return False
        if not isinstance(content, list):
            if waiting or not (content and content.strip()) and (position != last or role != "assistant"):
                return False
            continue
        answered = _answers(content)
        if answered != waiting or not content and position != last:
            return False
        waiting = set()
        for block in content:
            if not _block_sound(block):
                return False
            if block["type"] == "tool_use":
                name = block.get("id")
                if not isinstance(name, str) or name in seen or role != "assistant":
                    return False
                waiting.add(name)
                seen.add(name)
    return not waiting


def _answers(content: list[Json]) -> set[str] | None:
    """The calls that a turn answers; None where results do not come first or answer twice."""
    found: set[str] = set()
    others = False
    for block in content:
        if block["type"] != "tool_result":
            others = True
            continue
        name = block.get("tool_use_id")
        if others or not isinstance(name, str) or name in found:
            return None
        found.add(name)
    return found


def _block_sound(block: Json) -> bool:
    kind = block["type"]
    if kind == "text":
        return not _blank(block)
    if kind == "thinking":
        return bool(block.get("signature"))
    if kind == "tool_use":
        name = block.get("id")
        return isinstance(block.get("input"), dict) and isinstance(name, str) and safe_id(name) == name
    if kind == "image":
        return _image(block) is block
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return all(isinstance(part, dict) and isinstance(part.get("type"), str) and _block_sound(part)
                   for part in block["content"])
    return True


# ---------------------------------------------------------------- then mend it
def mend(messages: list[Json], *, merge: bool, unsigned: bool = False) -> list[Json]:
    """Messages that the API takes. ``merge``: turns must alternate and begin with the user's (a translation's do);
    ``unsigned``: the target accepts thinking without a signature."""
    turns = _Turns(unsigned)
    for message in messages:
        turns.add(message)
    out = turns.settled()
    if not merge:
        return out
    merged: list[Json] = []
    for turn in out:
        if merged and merged[-1]["role"] == turn["role"]:
            merged[-1] = {**merged[-1], "content": _blocks(merged[-1]["content"]) + _blocks(turn["content"])}
        else:
            merged.append(turn)
    if merged and merged[0]["role"] != "user":
        merged.insert(0, {"role": "user", "content": OPENING})
    return [_slim(turn) for turn in merged]


class _Turns:
    """The turns so far, and the calls in them that wait for a result."""

    def __init__(self, unsigned: bool) -> None:
        self._unsigned = unsigned
        self._out: list[Json] = []
        self._used: set[str] = set()
        # The client's id of a call -> its id at the API, and the results of its turn in the order of the calls.
        self._waiting: dict[str, tuple[str, dict[str, Json | None]]] = {}
        self._slots: list[tuple[Json, dict[str, Json | None]]] = []

    def add(self, message: Json) -> None:
        role = message["role"]
        blocks = [kept for block in _blocks(message.get("content")) if (kept := self._keep(block, role)) is not None]
        slots: dict[str, Json | None] = {}
        if role == "assistant":
            slots = {block["id"]: None for block in blocks if block["type"] == "tool_use"}
        if not blocks:
            return
        if role == "user" and self._slots and self._out and self._out[-1] is self._slots[-1][0] \
                and not self._out[-1]["content"]:
            self._out[-1]["content"] = blocks
        else:
            self._out.append(message if isinstance(message["content"], str) else {**message, "content": blocks})
        if slots:
            self._await(blocks, slots)

    def _await(self, blocks: list[Json], slots: dict[str, Json | None]) -> None:
        """The turn after calls: results go there, and what the user said with them."""
        turn: Json = {"role": "user", "content": []}
        self._out.append(turn)
        self._slots.append((turn, slots))
        for block in blocks:
            if block["type"] == "tool_use":
                self._waiting[block.pop("_was")] = (block["id"], slots)

    def settled(self) -> list[Json]:
        for turn, slots in self._slots:
            missing = {name: {"type": "tool_result", "tool_use_id": name, "content": NO_RESULT, "is_error": True}
                       for name in slots}
            turn["content"] = [slots[name] or missing[name] for name in slots] + turn["content"]
        return self._out

    def _keep(self, block: Json, role: str) -> Json | None:
        """The block as it may stay where it is; None for one that may not, or that has moved."""
        kind = block["type"]
        if kind == "text":
            return None if _blank(block) else block
        if kind == "thinking":
            return block if block.get("signature") or self._unsigned and block.get("thinking") else None
        if kind == "image":
            return _image(block)
        if kind == "tool_use":
            return self._call(block) if role == "assistant" else None
        if kind == "tool_result":
            self._result(block)
            return None
        return block

    def _call(self, block: Json) -> Json:
        was = str(block.get("id") or "call")
        name = safe_id(was)
        n = 1
        while name in self._used:
            n += 1
            name = f"{safe_id(was)}_{n}"
        self._used.add(name)
        given = block.get("input")
        return {**block, "id": name, "input": given if isinstance(given, dict) else {}, "_was": was}

    def _result(self, block: Json) -> None:
        """Into the slot of its call; a result that answers no call, or answers again, is dropped."""
        found = self._waiting.get(str(block.get("tool_use_id")))
        if found is None or found[1][found[0]] is not None:
            return
        name, slots = found
        content = block.get("content")
        if isinstance(content, list):
            parts = [part for part in content if isinstance(part, dict) and isinstance(part.get("type"), str)]
            block = {**block, "content": [_image(p) if p["type"] == "image" else p for p in parts if not _blank(p)]}
            if not block["content"]:
                del block["content"]
        slots[name] = {**block, "tool_use_id": name}


def _blocks(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or [])


def _slim(turn: Json) -> Json:
    """A single plain text is a string, as everybody writes it."""
    content = turn["content"]
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        return {**turn, "content": content[0]["text"]}
    return turn


def _blank(block: Json) -> bool:
    if block["type"] != "text":
        return False
    text = block.get("text")
    return not isinstance(text, str) or not text.strip()


def _image(block: Json) -> Json:
    """With the type that its bytes have; the block itself where that is what it says."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64" or not isinstance(source.get("data"), str):
        return block
    declared = str(source.get("media_type") or "")
    kind = image_type(source["data"], declared)
    return block if kind == declared else {**block, "source": {**source, "media_type": kind}}
