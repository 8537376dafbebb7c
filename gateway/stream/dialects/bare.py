"""Is a whole answer, without any marker, one tool call? And what did a provider throw away as ``failed_generation``?"""
import re
from typing import Any, Final

from gateway.stream.dialects.reader import Dead, Parsed, Reader, Tools, value_of

_CALL_KEYS: Final = frozenset(("name", "arguments", "parameters", "type", "id"))
_NAMED = re.compile(r"\s*+([\w.\-]++)[\s=>(]*+(?=\{)")
_REST = re.compile(r"[\s)>]*+(?:</function>)?\s*+")


def whole_json(text: str, tools: Tools) -> Parsed | None:
    """The answer is one JSON object, bare or in a fence, whose name is a declared tool; any other JSON is an answer.

    An object with more keys than a call has is data that happens to have a name.
    """
    bare = unfenced(text)
    if not tools or not bare.startswith("{") or not bare.endswith("}") or '"name"' not in bare:
        return None
    return _calls(bare, tools, _is_call)


def failed_generation(body: dict[str, Any], tools: Tools) -> Parsed | None:
    """The call that a provider refused to pass on (Groq: 400 ``tool_use_failed``, also as an error frame in a stream).

    https://console.groq.com/docs/tool-use (error handling). Besides every dialect these came: ``name{json}</function>`` without its
    opening, an array of calls, and an object with ``tool_calls``.
    """
    from gateway.stream.dialects import parse, scan
    error = body.get("error")
    text = error.get("failed_generation") if isinstance(error, dict) else None
    if not isinstance(text, str) or not tools:
        return None
    if scan(text) >= 0:
        return parse(text, tools)
    bare = unfenced(text)
    if bare[:1] in ("{", "["):
        return _calls(bare, tools, lambda value: True)
    return _unopened(bare, tools)


def unfenced(text: str) -> str:
    """The content of the one fence that the text consists of, or the text, without blanks around."""
    bare = text.strip()
    if not (bare.startswith("```") and bare.endswith("```") and len(bare) > 6):
        return bare
    language, line, content = bare[3:-3].partition("\n")
    return content.strip() if line and language.strip() in ("", "json") else bare


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and "name" in value and value.keys() <= _CALL_KEYS


def _calls(text: str, tools: Tools, fits: Any) -> Parsed | None:
    reader = Reader(text, tools)
    try:
        value = value_of(text)
        if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
            value = value["tool_calls"]
        if not fits(value):
            return None
        reader.values(value)
    except Dead:
        return None
    return Parsed(reader.calls, "") if reader.calls else None


def _unopened(text: str, tools: Tools) -> Parsed | None:
    reader = Reader(text, tools)
    try:
        reader.call(reader.match(_NAMED)[1], reader.container())
        reader.match(_REST)
    except Dead:
        return None
    return Parsed(reader.calls, "") if reader.at == len(text) else None
