"""What does a Gemini client ask? Its body checked leniently, and the facts that routing, limits and the turn need.

The model and whether to stream stand in the path. Field names come in camelCase or snake_case; ``body`` of the request is a copy
with Google's own spelling, ``raw`` stays what the client sent. Fields that nobody here knows are nobody's business.
"""
import re
from typing import Any, Final

from gateway.core.errors import bad_request
from gateway.core.request import Format, Request, ToolChoice
from gateway.wire.gemini.keys import camel_keys
from gateway.wire.gemini.openapi import json_schema
from gateway.wire.gemini.schema import NAME, Json
from gateway.wire.lenient import dump, load
from gateway.wire.problems import invalid

ROLES: Final = frozenset({"user", "model", "function", "tool"})
MODES: Final = {"AUTO": "auto", "VALIDATED": "auto", "MODE_UNSPECIFIED": "auto", "ANY": "required", "NONE": "none"}
_NUMBER: Final = (int, float)
_CONFIG: Final[tuple[tuple[str, type | tuple[type, ...], str], ...]] = (
    ("temperature", _NUMBER, "a number"), ("topP", _NUMBER, "a number"), ("topK", _NUMBER, "a number"),
    ("maxOutputTokens", _NUMBER, "an integer"), ("candidateCount", _NUMBER, "an integer"), ("seed", _NUMBER, "an integer"),
    ("presencePenalty", _NUMBER, "a number"), ("frequencyPenalty", _NUMBER, "a number"), ("logprobs", _NUMBER, "an integer"),
    ("stopSequences", list, "a list of strings"), ("responseMimeType", str, "a string"), ("responseSchema", dict, "an object"),
    ("thinkingConfig", dict, "an object"), ("responseModalities", list, "a list of strings"),
)
_TOP: Final[tuple[tuple[str, type | tuple[type, ...], str], ...]] = (
    ("generationConfig", dict, "an object"), ("toolConfig", dict, "an object"), ("tools", (list, dict), "a list"),
    ("systemInstruction", (dict, str, list), "an object with parts"), ("safetySettings", list, "a list"),
    ("cachedContent", str, "a string"), ("labels", dict, "an object"),
)
MAX_CONTENTS: Final = 20_000
_SNAKE_KEY: Final = re.compile(rb'_\w*"\s*:')


def parse(raw: bytes, operation: str, model: str, stream: bool) -> Request:
    """Raises bad_request with the dotted path of the field."""
    body, prefix = _body(raw, operation)
    seen = _Survey()
    seen.contents(body.get("contents"), prefix + "contents")
    seen.system(body.get("systemInstruction"), prefix + "systemInstruction")
    tools = _tools(body, prefix)
    config: Json = body.get("generationConfig") or {}
    limit, n = config.get("maxOutputTokens"), int(config.get("candidateCount") or 1)
    if n < 1:
        raise invalid(prefix + "generationConfig.candidateCount", "must be at least 1")
    return Request(
        wire=NAME, raw=raw, body=body, model=model, stream=stream, tools=tools, tool_choice=_choice(body, prefix),
        format=format_of(config), max_tokens=int(limit) if limit is not None and limit > 0 else None, n=n,
        chars=seen.chars + (len(dump(body["tools"])) if body.get("tools") else 0), images=seen.images, include_usage=True,
        operation=operation)


def _body(raw: bytes, operation: str) -> tuple[Json, str]:
    """The body in Google's spelling. countTokens may wrap it: then ``prefix`` is where it lies."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise bad_request("The request body is empty; send a JSON object.")
    try:
        body, _ = load(raw)
    except ValueError as problem:
        raise bad_request(f"The request body is not valid JSON: {str(problem)[:120]}.") from None
    if not isinstance(body, dict):
        raise bad_request("The request body must be a JSON object.")
    if _SNAKE_KEY.search(raw) is not None:
        try:
            body = camel_keys(body)
        except RecursionError:
            raise bad_request("The request body is nested too deeply.") from None
    prefix = ""
    if operation == "count_tokens" and isinstance(body.get("generateContentRequest"), dict):
        body, prefix = body["generateContentRequest"], "generateContentRequest."
    _typed(body, _TOP, prefix)
    config = body.get("generationConfig") or {}
    _typed(config, _CONFIG, prefix + "generationConfig.")
    for i, word in enumerate(config.get("stopSequences") or ()):
        if not isinstance(word, str):
            raise invalid(f"{prefix}generationConfig.stopSequences.{i}", "expected a string")
    return body, prefix


def _typed(doc: Json, rows: tuple[tuple[str, Any, str], ...], prefix: str) -> None:
    """Null is as good as missing."""
    for name, kinds, wanted in rows:
        value = doc.get(name)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise invalid(prefix + name, f"expected {wanted}")


# ---------------------------------------------------------------- what the model must read
def listed(value: Any) -> list[Any]:
    """One object may stand where a list of them is meant; a text is a part."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


class _Survey:
    """Walks the contents: checks their shape, counts characters and pictures."""

    __slots__ = ("chars", "images")

    def __init__(self) -> None:
        self.chars = 0
        self.images = 0

    def contents(self, contents: Any, at: str) -> None:
        if contents is None:
            raise invalid(at, "this field is required")
        turns = listed(contents)
        if not turns:
            raise invalid(at, "must hold at least one content")
        if len(turns) > MAX_CONTENTS:
            raise invalid(at, f"holds more than {MAX_CONTENTS} contents")
        for i, turn in enumerate(turns):
            if not isinstance(turn, dict):
                raise invalid(f"{at}.{i}", "expected an object with parts")
            role = turn.get("role")
            if role is not None and role != "" and (not isinstance(role, str) or role not in ROLES):
                raise invalid(f"{at}.{i}.role", "must be user or model")
            self.parts(turn.get("parts"), f"{at}.{i}.parts")

    def system(self, system: Any, at: str) -> None:
        if isinstance(system, str):
            self.chars += len(system)
        elif isinstance(system, dict):
            self.parts(system.get("parts"), f"{at}.parts")
        else:
            self.parts(system, at)

    def parts(self, parts: Any, at: str) -> None:
        for i, part in enumerate(listed(parts)):
            if isinstance(part, str):
                self.chars += len(part)
            elif isinstance(part, dict):
                self._part(part, f"{at}.{i}")
            else:
                raise invalid(f"{at}.{i}", "expected an object")

    def _part(self, part: Json, at: str) -> None:
        for name, value in part.items():
            wanted = _PARTS.get(name)
            if value is None or wanted is None:
                continue
            fits = isinstance(value, wanted[0])
            if not fits:
                raise invalid(f"{at}.{name}", f"expected {wanted[1]}")
            if name == "text":
                self.chars += len(value)
            elif name in ("inlineData", "fileData"):
                self._file(name, value, f"{at}.{name}")
            elif name in ("functionCall", "functionResponse"):
                self._function(name, value, f"{at}.{name}")
            elif name != "thoughtSignature":
                self.chars += len(dump(value))

    def _file(self, name: str, value: Json, at: str) -> None:
        field = "data" if name == "inlineData" else "fileUri"
        if not isinstance(value.get(field), str):
            raise invalid(f"{at}.{field}", "expected a string")
        if str(value.get("mimeType") or "image/").startswith("image/"):
            self.images += 1

    def _function(self, name: str, value: Json, at: str) -> None:
        if not isinstance(value.get("name"), str) or not value["name"]:
            raise invalid(f"{at}.name", "this field is required")
        field = "args" if name == "functionCall" else "response"
        inner = value.get(field)
        if inner is not None and not isinstance(inner, dict):
            raise invalid(f"{at}.{field}", "expected an object")
        self.chars += len(value["name"]) + (len(dump(inner)) if inner else 2)
        self.parts(value.get("parts"), f"{at}.parts")


_PARTS: Final[dict[str, tuple[type, str]]] = {
    "text": (str, "a string"), "inlineData": (dict, "an object"), "fileData": (dict, "an object"),
    "functionCall": (dict, "an object"), "functionResponse": (dict, "an object"), "executableCode": (dict, "an object"),
    "codeExecutionResult": (dict, "an object"), "thoughtSignature": (str, "a string"),
}


# ---------------------------------------------------------------- tools and format
def declarations(body: Json) -> list[Json]:
    """The function declarations of all tools."""
    return [function for tool in listed(body.get("tools")) for function in listed(tool.get("functionDeclarations"))]


def _tools(body: Json, prefix: str) -> dict[str, Json | None]:
    """What may be called, with its JSON Schema."""
    out: dict[str, Json | None] = {}
    for i, tool in enumerate(listed(body.get("tools"))):
        if not isinstance(tool, dict):
            raise invalid(f"{prefix}tools.{i}", "expected an object")
        for j, function in enumerate(listed(tool.get("functionDeclarations"))):
            at = f"{prefix}tools.{i}.functionDeclarations.{j}"
            if not isinstance(function, dict):
                raise invalid(at, "expected an object")
            if not isinstance(function.get("name"), str) or not function["name"]:
                raise invalid(f"{at}.name", "this field is required")
            for field in ("parameters", "parametersJsonSchema"):
                if function.get(field) is not None and not isinstance(function[field], dict):
                    raise invalid(f"{at}.{field}", "expected an object")
            out[function["name"]] = schema_of(function)
    return out


def schema_of(function: Json) -> Json | None:
    """The JSON Schema of a function's arguments."""
    plain = function.get("parametersJsonSchema")
    if isinstance(plain, dict):
        return plain
    own = function.get("parameters")
    return json_schema(own) if isinstance(own, dict) else None


def _choice(body: Json, prefix: str) -> ToolChoice | None:
    """Without declared functions it means nothing."""
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig")
    if not calling:
        return None
    at = prefix + "toolConfig.functionCallingConfig"
    if not isinstance(calling, dict):
        raise invalid(at, "expected an object")
    mode = MODES.get(str(calling.get("mode") or "AUTO").upper())
    if mode is None:
        raise invalid(f"{at}.mode", f"must be one of {', '.join(MODES)}")
    if not declarations(body):
        return None
    names = calling.get("allowedFunctionNames")
    if names is not None and not isinstance(names, list):
        raise invalid(f"{at}.allowedFunctionNames", "expected a list of strings")
    if mode == "required" and names and len(names) == 1:
        return ToolChoice("named", str(names[0]))
    return ToolChoice(mode)  # type: ignore[arg-type]


def format_of(config: Json) -> Format | None:
    """What the answer must look like. Not ``strict``: that word means more to other providers than a schema promises here."""
    if config.get("responseMimeType") != "application/json":
        return None
    plain, own = config.get("responseJsonSchema"), config.get("responseSchema")
    if isinstance(plain, dict):
        return Format("json_schema", plain, False, str(plain.get("title") or ""))
    if isinstance(own, dict):
        return Format("json_schema", json_schema(own), False, str(own.get("title") or ""))
    return Format("json_object") if plain is None and own is None else None
