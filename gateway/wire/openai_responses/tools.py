"""Which tools does a Responses client offer, and what are they called elsewhere?

Other formats know functions only: a freeform (``custom``) tool becomes a function with the one string ``input``, tools of a
namespace get names that are unique without it, ``local_shell`` becomes a function. ``Origin`` tells the way back.
https://platform.openai.com/docs/guides/function-calling#custom-tools
"""
import hashlib
from collections.abc import Iterator
from typing import Any, Final

from gateway.core.request import Tool, ToolChoice
from gateway.wire.openai_responses.schema import CUSTOM_SCHEMA, SHELL, SHELL_SCHEMA, WIRE, Asked, Json, Origin
from gateway.wire.problems import invalid

MAX_TOOLS: Final = 2_000
MAX_NAME: Final = 64
_KNOWN: Final = frozenset({"type", "name", "description", "parameters", "strict"})


class Offer:
    """The declarations of one request, read."""

    __slots__ = ("tools", "origins", "schemas", "clean")

    def __init__(self) -> None:
        self.tools: list[Tool] = []
        self.origins: dict[str, Origin] = {}
        self.schemas: dict[str, Json | None] = {}
        self.clean = True

    def read(self, tools: Any, at: str, namespace: str = "") -> None:
        """Every entry of a list of tools. Raises bad_request."""
        if not isinstance(tools, list):
            raise invalid(at, "expected an array")
        if len(tools) + len(self.tools) > MAX_TOOLS:
            raise invalid(at, f"holds more than {MAX_TOOLS} tools")
        for i, tool in enumerate(tools):
            self._tool(tool, f"{at}.{i}", namespace)

    def _tool(self, tool: Any, at: str, namespace: str) -> None:
        if not isinstance(tool, dict):
            raise invalid(at, "expected an object")
        kind = tool.get("type") or "function"
        if not isinstance(kind, str):
            raise invalid(f"{at}.type", "expected a string")
        if kind == "namespace":
            name = _named(tool, at)
            self.read(tool.get("tools") or [], f"{at}.tools", name)
        elif kind == "function":
            nested = tool.get("function")
            if isinstance(nested, dict) and "name" not in tool:
                self.clean = False                           # the form of chat completions
                tool, at = nested, f"{at}.function"
            elif "type" not in tool:
                self.clean = False
            self._function(tool, at, namespace)
        elif kind == "custom":
            self._custom(tool, at, namespace)
        elif kind == SHELL:
            self._add(Tool(SHELL, "Run a command in the user's shell.", SHELL_SCHEMA), Origin(SHELL, SHELL))
        else:
            self.tools.append(Tool(str(tool.get("name") or kind), kind="server", payload=tool, extra={"wire": WIRE}))

    def _function(self, tool: Json, at: str, namespace: str) -> None:
        name = _named(tool, at)
        parameters = tool.get("parameters")
        if parameters is not None and not isinstance(parameters, dict):
            raise invalid(f"{at}.parameters", "expected an object")
        strict = tool.get("strict")
        extra = {key: value for key, value in tool.items() if key not in _KNOWN}
        made = Tool(flat(name, namespace), str(tool.get("description") or ""), parameters,
                    strict if isinstance(strict, bool) else None, extra={WIRE: extra} if extra else {})
        self._add(made, Origin(name, "function", namespace) if namespace else None)

    def _custom(self, tool: Json, at: str, namespace: str) -> None:
        name = _named(tool, at)
        description = str(tool.get("description") or "")
        form = tool.get("format")
        if isinstance(form, dict) and form.get("definition"):
            told = f"The string `input` must follow this {form.get('syntax') or ''} grammar:\n{form['definition']}"
            description = f"{description}\n\n{told}" if description else told
        self._add(Tool(flat(name, namespace), description, CUSTOM_SCHEMA), Origin(name, "custom", namespace))

    def _add(self, tool: Tool, origin: Origin | None) -> None:
        self.tools.append(tool)
        self.schemas[tool.name] = tool.parameters
        if origin is not None:
            self.origins[tool.name] = origin
            self.schemas.setdefault(origin.name, tool.parameters)      # what an upstream of this format calls it


def _named(tool: Json, at: str) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(f"{at}.name", "this field is required")
    return name


def flat(name: str, namespace: str) -> str:
    """A tool's name where namespaces are unknown; ``functions`` is the one that everything without a namespace is in."""
    if not namespace or namespace == "functions":
        return name
    full = "".join([c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in f"{namespace}__{name}"])
    if len(full) <= MAX_NAME:
        return full
    return full[:MAX_NAME - 9] + "_" + hashlib.blake2s(full.encode(), digest_size=4).hexdigest()


def choice_of(doc: Json) -> ToolChoice | None:
    """``tool_choice`` and ``parallel_tool_calls``. Raises bad_request."""
    parallel = doc.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        raise invalid("parallel_tool_calls", "expected true or false")
    choice = doc.get("tool_choice")
    if choice is None:
        return None if parallel is None else ToolChoice("auto", parallel=parallel)
    if isinstance(choice, str):
        mode = {"any": "required"}.get(choice, choice)
        if mode not in ("none", "auto", "required"):
            raise invalid("tool_choice", "must be none, auto, required or an object that names a tool")
        return ToolChoice(mode, parallel=parallel)  # type: ignore[arg-type]
    if not isinstance(choice, dict):
        raise invalid("tool_choice", "expected a string or an object")
    kind = choice.get("type", "function")
    if kind == "allowed_tools":
        return ToolChoice("required" if choice.get("mode") == "required" else "auto", parallel=parallel)
    if kind in ("function", "custom"):
        nested = choice.get(kind)
        name = choice.get("name") or (nested.get("name") if isinstance(nested, dict) else None)
        if not isinstance(name, str) or not name:
            raise invalid("tool_choice.name", "this field is required")
        return ToolChoice("named", flat(name, str(choice.get("namespace") or "")), parallel)
    return ToolChoice("named", SHELL, parallel) if kind == SHELL else ToolChoice("auto", parallel=parallel)


def offered(asked: Asked) -> list[Tool]:
    """The tools that another format is told of: those that ``allowed_tools`` leaves."""
    choice = asked.doc.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools" or not isinstance(choice.get("tools"), list):
        return asked.tools
    allowed = set(_allowed(choice["tools"]))
    return [tool for tool in asked.tools if tool.name in allowed or tool.kind == "server" and tool.payload is not None
            and tool.payload.get("type") in allowed]


def _allowed(tools: list[Any]) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool, dict):
            name = tool.get("name")
            yield flat(name, str(tool.get("namespace") or "")) if isinstance(name, str) else str(tool.get("type"))
