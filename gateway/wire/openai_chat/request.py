"""What does a chat client ask? Its body, checked leniently, as the facts of a Request.

Lenient means: what some client sends by habit and we can mend is mended (``Request.clean`` is False then, and ``outgoing.py``
writes the body anew); what no upstream could make sense of is refused here, with the field's dotted path. Unknown fields are
nobody's business. ``null`` is the same as absent everywhere.
"""
import re
from typing import Any, Final

import msgspec

from gateway.core.request import Format, Request, ToolChoice
from gateway.wire.openai_chat.schema import NO_TOOLS, Body, Json, Message, Options, Part, Tool
from gateway.wire.problems import decode, invalid, told
from gateway.wire.splice import SMALL, fields

_body = msgspec.json.Decoder(Body)
_tools = msgspec.json.Decoder(list[Tool])
_NULL: Final = re.compile(rb":\s*null")
ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
MAX_MESSAGES: Final = 20_000
MAX_TOOLS: Final = 2_000

# field -> (lowest, highest); https://platform.openai.com/docs/api-reference/chat/create
RANGES: Final[dict[str, tuple[float, float]]] = {
    "temperature": (0, 2), "top_p": (0, 1), "min_p": (0, 1), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20), "n": (1, 128), "repetition_penalty": (0, 1000),
}


class Findings:
    """What reading a body has brought to light."""

    __slots__ = ("clean", "chars", "images")

    def __init__(self) -> None:
        self.clean = True
        self.chars = 0
        self.images = 0


def parse_chat(raw: bytes) -> Request:
    body, raw = decode(raw, _body)
    found = Findings()
    _messages(body, found)
    tools = _tools_of(body, found)
    check_options(body)
    choice = _choice(body, found)
    check_top(raw, body, found)
    options = body.stream_options
    return Request(
        wire="openai-chat", raw=raw, body=body, model=body.model or "", stream=body.stream or False,
        tools=tools, tool_choice=choice, format=_format(body), max_tokens=_max_tokens(body), n=body.n or 1,
        chars=found.chars, images=found.images, include_usage=bool(options and options.include_usage and body.stream),
        session_hint=body.prompt_cache_key or "", clean=found.clean)


def check_options(body: Options) -> None:
    """Ranges and counts that every upstream has."""
    for name, (low, high) in RANGES.items():
        value = getattr(body, name, None)
        if value is not None and not low <= value <= high:
            raise invalid(name, f"must be between {low:g} and {high:g}")
    if isinstance(body.stop, list) and len(body.stop) > 64:
        raise invalid("stop", "holds more than 64 sequences")
    if body.model is not None and len(body.model) > 512:
        raise invalid("model", "is longer than 512 characters")


def check_top(raw: bytes, body: Options, found: Findings) -> None:
    """Top-level fields that some upstream refuses and that mean nothing."""
    if body.stream_options is not None and not body.stream:
        found.clean = False
    if (body.max_tokens is not None and body.max_tokens <= 0) or (getattr(body, "max_completion_tokens", None) or 1) <= 0:
        found.clean = False
    # a large body is taken apart in any case before it goes on, and its nulls are left out then
    if found.clean and len(raw) <= SMALL and b"null" in raw and _NULL.search(raw) is not None:
        found.clean = all(bytes(value) != b"null" for value in fields(raw).values())


def _max_tokens(body: Body) -> int | None:
    """≤ 0 is unset; max_completion_tokens is the newer name. Of two the larger: which one an upstream obeys is not known here."""
    return max((value for value in (body.max_tokens, body.max_completion_tokens) if value is not None and value > 0), default=None)


# ---------------------------------------------------------------- messages
def _messages(body: Body, found: Findings) -> None:
    messages = body.messages
    if messages is None:
        raise invalid("messages", "this field is required")
    if not messages:
        raise invalid("messages", "must hold at least one message")
    if len(messages) > MAX_MESSAGES:
        raise invalid("messages", f"holds more than {MAX_MESSAGES} messages")
    for i, message in enumerate(messages):
        role, content = message.role, message.content
        if role not in ROLES:
            raise invalid(f"messages.{i}.role", f"must be one of {', '.join(sorted(ROLES))}")
        if content.__class__ is str:
            found.chars += len(content)
        elif content is not None:
            _parts(content, f"messages.{i}.content", found)  # type: ignore[arg-type]
        elif role in ("user", "system", "developer"):
            raise invalid(f"messages.{i}.content", "this field is required")
        if role == "assistant":
            _assistant(message, f"messages.{i}", found)
        elif role == "tool":
            # a result of a call that the client has cut away is its upstream's business; its id is made up (outgoing.py)
            found.clean = found.clean and bool(message.tool_call_id) and content is not None
        elif role == "function":
            if not message.name:
                raise invalid(f"messages.{i}.name", "a function message needs the function's name")
            found.clean = found.clean and content is not None


def _parts(parts: list[str | Part], at: str, found: Findings) -> None:
    for i, part in enumerate(parts):
        if isinstance(part, str):
            found.clean = False
            found.chars += len(part)
            continue
        kind = part.type
        if kind is None:
            found.clean = False
            kind = "text" if part.text is not None else "image_url" if part.image_url is not None else None
        if kind == "text":
            if part.text is None:
                raise invalid(f"{at}.{i}.text", "this field is required")
            found.chars += len(part.text)
        elif kind == "image_url":
            _image(part, f"{at}.{i}.image_url", found)
        elif kind == "input_audio":
            if not isinstance((part.input_audio or {}).get("data"), str):
                raise invalid(f"{at}.{i}.input_audio.data", "must be a string of base64 data")
        elif kind == "file" and part.file is None:
            raise invalid(f"{at}.{i}.file", "this field is required")
        elif not kind:
            raise invalid(f"{at}.{i}.type", "this field is required")


def _image(part: Part, at: str, found: Findings) -> None:
    found.images += 1
    if isinstance(part.image_url, str):
        found.clean = False
    elif not isinstance((part.image_url or {}).get("url"), str):
        raise invalid(f"{at}.url", "must be a string: an address or a data: URL")


def _assistant(message: Message, at: str, found: Findings) -> None:
    calls = message.tool_calls
    if message.reasoning_content:
        found.chars += len(message.reasoning_content)
    if calls is None:
        if message.content is None and message.function_call is None and not message.refusal and not message.audio:
            found.clean = False
        return
    if not calls:
        found.clean = False
    for i, call in enumerate(calls):
        function = call.function
        if function is None:
            name = call.custom.get("name") if call.custom is not None else None
            if not isinstance(name, str) or not name:
                field = "custom.name" if call.custom is not None else "function"
                raise invalid(f"{at}.tool_calls.{i}.{field}", "this field is required")
        elif not function.name:
            raise invalid(f"{at}.tool_calls.{i}.function.name", "this field is required")
        elif isinstance(function.arguments, str):
            found.chars += len(function.arguments)
        else:
            found.clean = False
        if not call.id or call.type is None:
            found.clean = False


# ---------------------------------------------------------------- tools and format
def _tools_of(body: Body, found: Findings) -> dict[str, Json | None]:
    """What may be called, with its schema."""
    out: dict[str, Json | None] = {}
    for i, function in enumerate(body.functions or ()):
        if not function.name:
            raise invalid(f"functions.{i}.name", "must not be empty")
        out[function.name] = _schema(function.parameters)
    raw = bytes(body.tools)
    if raw == b"null":
        return out
    found.chars += len(raw)
    try:
        tools = _tools.decode(raw)
    except msgspec.ValidationError as problem:
        raise told(problem, "tools") from None
    except RecursionError:
        raise invalid("tools", "is nested too deeply") from None
    if len(tools) > MAX_TOOLS:
        raise invalid("tools", f"holds more than {MAX_TOOLS} tools")
    if not tools:
        found.clean = False
    for i, tool in enumerate(tools):
        _tool(tool, f"tools.{i}", out, found)
    return out


def _tool(tool: Tool, at: str, out: dict[str, Json | None], found: Findings) -> None:
    function = tool.function
    if function is not None:
        if not function.name:
            raise invalid(f"{at}.function.name", "must not be empty")
        if tool.type is None:
            found.clean = False
        out[function.name] = _schema(function.parameters)
    elif tool.custom is not None:
        name = tool.custom.get("name")
        if not isinstance(name, str) or not name:
            raise invalid(f"{at}.custom.name", "this field is required")
        out[name] = None
    elif tool.name and tool.type in (None, "function", "custom"):
        found.clean = False                      # the flat form of the Responses and Messages APIs
        out[tool.name] = _schema(tool.parameters or tool.input_schema)
    elif tool.type in (None, "function"):
        raise invalid(f"{at}.function", "this field is required")


def _schema(parameters: Json | bool | None) -> Json | None:
    return parameters if isinstance(parameters, dict) else None


def _choice(body: Body, found: Findings) -> ToolChoice | None:
    choice: Any = body.tool_choice
    if choice is None and body.function_call is not None:
        choice = body.function_call
        if isinstance(choice, dict):
            choice = {"type": "function", "function": choice}
    at = "tool_choice" if body.tool_choice is not None else "function_call"
    parallel = body.parallel_tool_calls
    if choice is None:
        return None if parallel is None else ToolChoice("auto", parallel=parallel)
    offered = bytes(body.tools) not in NO_TOOLS or bool(body.functions)
    if not offered and not isinstance(choice, dict):
        found.clean = False                      # OpenAI refuses a choice without tools
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required", "any"):
            raise invalid(at, "must be none, auto, required or an object that names a tool")
        found.clean = found.clean and choice != "any"
        return ToolChoice("required" if choice == "any" else choice, parallel=parallel)  # type: ignore[arg-type]
    kind = choice.get("type", "function")
    if kind not in ("function", "custom"):
        return ToolChoice("auto", parallel=parallel)         # allowed_tools and what may come: the upstream's business
    named = choice.get(kind)
    name = named.get("name") if isinstance(named, dict) else choice.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(f"{at}.{kind}.name" if at == "tool_choice" else f"{at}.name", "this field is required")
    if "type" not in choice or not isinstance(named, dict):
        found.clean = False
    return ToolChoice("named", name, parallel)


def _format(body: Body) -> Format | None:
    wanted = body.response_format
    if wanted is None:
        return None
    kind = wanted.get("type")
    if kind == "json_object":
        return Format("json_object")
    if kind == "json_schema":
        inner = wanted.get("json_schema")
        if not isinstance(inner, dict):
            raise invalid("response_format.json_schema", "this field is required")
        schema = inner.get("schema")
        if schema is not None and not isinstance(schema, dict):
            raise invalid("response_format.json_schema.schema", "must be an object")
        return Format("json_schema", schema, inner.get("strict") is True, str(inner.get("name") or ""))
    if not isinstance(kind, str):
        raise invalid("response_format.type", "must be text, json_object or json_schema")
    return None
