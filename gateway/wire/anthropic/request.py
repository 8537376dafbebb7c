"""What does a Messages client ask? Its body checked leniently, and the facts that routing, limits and the turn need."""
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.core.errors import bad_request
from gateway.core.request import Format, Request, ToolChoice
from gateway.wire.anthropic.mend import sound
from gateway.wire.anthropic.schema import CLIENT_TOOLS, NAME, Json, dump
from gateway.wire.problems import decode

_body = msgspec.json.Decoder(dict[str, Any])

ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
CHOICES: Final = {"auto": "auto", "any": "required", "none": "none", "tool": "named"}

_NUMBER = (int, float)
# What a field must be. Null is as good as missing everywhere, and fields that are not here are nobody's business.
_FIELDS: Final[tuple[tuple[str, type | tuple[type, ...], str], ...]] = (
    ("model", str, "a string"), ("stream", bool, "a boolean"), ("max_tokens", int, "an integer"),
    ("temperature", _NUMBER, "a number"), ("top_p", _NUMBER, "a number"), ("top_k", int, "an integer"),
    ("stop_sequences", list, "a list of strings"), ("system", (str, list), "a string or a list of text blocks"),
    ("tools", list, "a list"), ("tool_choice", dict, "an object"), ("thinking", dict, "an object"),
    ("metadata", dict, "an object"), ("output_config", dict, "an object"), ("output_format", dict, "an object"),
)
# Claude Code's user_id names the session, as JSON or at the end of a string.
_SESSION: Final = re.compile(r"session(?:_id\"?\s*:\s*\"|_)([0-9A-Za-z-]{8,})")


def parse(raw: bytes, operation: str) -> Request:
    """Raises bad_request with the path of the field."""
    body, raw = decode(raw, _body)
    _check(body)
    counting = operation == "count_tokens"
    limit = body.get("max_tokens")
    if limit is None and not counting:
        raise bad_request("max_tokens: Field required", "max_tokens")
    if limit is not None and limit < 1:
        raise bad_request("max_tokens: Input should be greater than or equal to 1", "max_tokens")
    seen = _Survey()
    seen.messages(body)
    seen.system(body.get("system"))
    choice = _choice(body)
    metadata = body.get("metadata") or {}
    user = metadata.get("user_id")
    session = _SESSION.search(user) if isinstance(user, str) else None
    return Request(
        wire=NAME, raw=raw, body=body, model=body.get("model") or "auto", stream=not counting and body.get("stream") is True,
        tools=_tools(body), tool_choice=choice, format=format_of(body), max_tokens=limit,
        chars=seen.chars + (len(dump(body["tools"])) if body.get("tools") else 0), images=seen.images,
        include_usage=True, session_hint=session[1] if session else user if isinstance(user, str) else "",
        clean=_clean(body), operation=operation)


def _check(body: Json) -> None:
    for name, kinds, wanted in _FIELDS:
        value = body.get(name)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool) and kinds is not bool):
            raise bad_request(f"{name}: Input should be {wanted}", name)
    for i, word in enumerate(body.get("stop_sequences") or ()):
        if not isinstance(word, str):
            raise bad_request(f"stop_sequences.{i}: Input should be a string", f"stop_sequences.{i}")


class _Survey:
    """Walks everything that the model must read: checks its shape, counts its characters and pictures."""

    __slots__ = ("chars", "images")

    def __init__(self) -> None:
        self.chars = 0
        self.images = 0

    def messages(self, body: Json) -> None:
        turns = body.get("messages")
        if turns is None:
            raise bad_request("messages: Field required", "messages")
        if not isinstance(turns, list):
            raise bad_request("messages: Input should be a list", "messages")
        if not turns:
            raise bad_request("messages: at least one message is required", "messages")
        for i, turn in enumerate(turns):
            if not isinstance(turn, dict):
                raise bad_request(f"messages.{i}: Input should be an object", f"messages.{i}")
            if not isinstance(turn.get("role"), str) or turn["role"] not in ROLES:
                raise bad_request(f"messages.{i}.role: Input should be 'user' or 'assistant'", f"messages.{i}.role")
            self.content(turn.get("content"), "messages", i)

    def system(self, system: Any) -> None:
        if isinstance(system, str):
            self.chars += len(system)
        else:
            self.blocks(system or [], "system")

    def content(self, content: Any, at: str, i: int) -> None:
        if isinstance(content, str):
            self.chars += len(content)
        elif isinstance(content, list):
            self.blocks(content, f"{at}.{i}.content")
        elif content is not None:
            raise bad_request(f"{at}.{i}.content: Input should be a string or a list of blocks", f"{at}.{i}.content")

    def blocks(self, blocks: list[Any], at: str) -> None:
        for i, block in enumerate(blocks):
            if not isinstance(block, dict):
                raise bad_request(f"{at}.{i}: Input should be an object", f"{at}.{i}")
            kind = block.get("type")
            if not isinstance(kind, str):
                raise bad_request(f"{at}.{i}.type: Field required", f"{at}.{i}.type")
            count = _COUNT.get(kind)
            if count is not None:
                count(self, block, at, i)

    def _text(self, block: Json, at: str, i: int) -> None:
        text = block.get("text")
        if not isinstance(text, str):
            raise bad_request(f"{at}.{i}.text: Input should be a string", f"{at}.{i}.text")
        self.chars += len(text)

    def _thinking(self, block: Json, at: str, i: int) -> None:
        self.chars += len(str(block.get("thinking") or ""))

    def _call(self, block: Json, at: str, i: int) -> None:
        if not isinstance(block.get("name"), str):
            raise bad_request(f"{at}.{i}.name: Input should be a string", f"{at}.{i}.name")
        self.chars += len(dump(block.get("input")))

    def _result(self, block: Json, at: str, i: int) -> None:
        if not isinstance(block.get("tool_use_id"), str):
            raise bad_request(f"{at}.{i}.tool_use_id: Input should be a string", f"{at}.{i}.tool_use_id")
        self.content(block.get("content"), at, i)

    def _image(self, block: Json, at: str, i: int) -> None:
        if not isinstance(block.get("source"), dict):
            raise bad_request(f"{at}.{i}.source: Field required", f"{at}.{i}.source")
        self.images += 1

    def _document(self, block: Json, at: str, i: int) -> None:
        source = block.get("source")
        if not isinstance(source, dict):
            raise bad_request(f"{at}.{i}.source: Field required", f"{at}.{i}.source")
        if source.get("type") == "text":
            self.chars += len(str(source.get("data") or ""))
        else:
            self.content(source.get("content"), f"{at}.{i}", 0) if source.get("type") == "content" else None

    def _other(self, block: Json, at: str, i: int) -> None:
        self.chars += len(dump(block))


_COUNT: Final = {
    "text": _Survey._text, "thinking": _Survey._thinking, "tool_use": _Survey._call, "tool_result": _Survey._result,
    "image": _Survey._image, "document": _Survey._document, "search_result": _Survey._other,
    "server_tool_use": _Survey._other, "web_search_tool_result": _Survey._other,
}


def _tools(body: Json) -> dict[str, Json | None]:
    """What the model may call: the client's own tools, and Anthropic's that the client runs."""
    out: dict[str, Json | None] = {}
    for i, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict):
            raise bad_request(f"tools.{i}: Input should be an object", f"tools.{i}")
        kind, name = tool.get("type"), tool.get("name")
        if own(tool):
            if not isinstance(name, str) or not name:
                raise bad_request(f"tools.{i}.name: Field required", f"tools.{i}.name")
            schema = tool.get("input_schema")
            if schema is not None and not isinstance(schema, dict):
                raise bad_request(f"tools.{i}.input_schema: Input should be an object", f"tools.{i}.input_schema")
            out[name] = schema
        elif isinstance(name, str) and isinstance(kind, str) and kind.startswith(CLIENT_TOOLS):
            out[name] = None
    return out


def own(tool: Json) -> bool:
    """A tool of the client's, whether or not it says so."""
    return tool.get("type") in (None, "", "custom", "function") or "input_schema" in tool


def _choice(body: Json) -> ToolChoice | None:
    choice = body.get("tool_choice")
    if not choice:
        return None
    kind = choice.get("type", "auto")
    mode = CHOICES.get(kind) if isinstance(kind, str) else None
    if mode is None:
        raise bad_request("tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'", "tool_choice.type")
    name = choice.get("name")
    if mode == "named" and not (isinstance(name, str) and name):
        mode, name = "required", ""
    single = choice.get("disable_parallel_tool_use")
    return ToolChoice(mode=mode, name=name if mode == "named" else "",  # type: ignore[arg-type]
                      parallel=None if single is None else not single)


def format_of(body: Json) -> Format | None:
    """``output_config.format``, or ``output_format`` as its beta called it."""
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format")
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return None
    schema = wanted.get("schema")
    return Format(kind="json_schema", schema=schema if isinstance(schema, dict) else None, strict=True,
                  name=str(wanted.get("name") or ""))


def _clean(body: Json) -> bool:
    return not any(True for _ in problems(body)) and sound(body["messages"])


def problems(body: Json) -> Iterator[str]:
    """What around the messages the API would refuse although it is easily mended."""
    system = body.get("system")
    if isinstance(system, list) and any(not str(block.get("text") or "").strip() for block in system
                                        if block["type"] == "text"):
        yield "system"
    if any(not word.strip() for word in body.get("stop_sequences") or ()):
        yield "stop_sequences"
    if body.get("tool_choice") and not body.get("tools"):
        yield "tool_choice"
    if any(turn["role"] == "developer" for turn in body["messages"]):
        yield "messages"
    for tool in body.get("tools") or ():
        if own(tool) and (tool.get("input_schema") or {}).get("type") != "object":
            yield "tools"
            return
