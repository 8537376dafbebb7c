"""What does Google's Gemini API look like to us? Its words for endings, token counts, names, base64, calls' arguments.

https://ai.google.dev/api/generate-content · .../api/caching#Schema · https://cloud.google.com/vertex-ai/docs/reference/rest
"""
import re
from typing import Any, Final

from gateway.core.events import Usage
from gateway.wire.lenient import dump, load

NAME: Final = "gemini"
Json = dict[str, Any]

# ---------------------------------------------------------------- why a candidate ended
# https://ai.google.dev/api/generate-content#FinishReason; the numbers are what Vertex sends for them in some languages.
_NUMBERS: Final = {"1": "STOP", "2": "MAX_TOKENS", "3": "SAFETY", "4": "RECITATION", "5": "OTHER", "6": "BLOCKLIST",
                   "7": "PROHIBITED_CONTENT", "8": "SPII", "9": "MALFORMED_FUNCTION_CALL"}
FINISH_IN: Final = {
    "STOP": "stop", "OTHER": "stop", "MAX_TOKENS": "length", **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "IMAGE_SAFETY",
         "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content_filter"),
}
FINISH_OUT: Final = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "refusal": "SAFETY"}
# The model stumbled over its own output: another try, or another target, may well succeed.
FAILED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE",
                           "MISSING_THOUGHT_SIGNATURE"})


def finish_word(value: Any) -> str:
    """The upstream's reason by its name; "" where there is none."""
    word = "" if value is None or value is False else str(value)
    word = _NUMBERS.get(word, word)
    return "" if word in ("FINISH_REASON_UNSPECIFIED", "0") else word


def finish_in(word: str) -> str:
    return FINISH_IN.get(word) or word.lower()


def finish_out(reason: str) -> str:
    """A word for the client; calls end in STOP, and clients know no words but Google's."""
    return FINISH_OUT.get(reason, "STOP")


# ---------------------------------------------------------------- token counts
def read_usage(native: Json) -> Usage:
    """``candidatesTokenCount`` leaves out the thoughts, and what tools brought in stands beside the prompt.
    https://ai.google.dev/api/generate-content#UsageMetadata"""
    prompt, tools = _count(native, "promptTokenCount"), _count(native, "toolUsePromptTokenCount")
    said, thoughts = _count(native, "candidatesTokenCount"), _count(native, "thoughtsTokenCount")
    total = _count(native, "totalTokenCount")
    if not said and total > prompt + tools + thoughts:
        said = total - prompt - tools - thoughts
    return Usage(input=prompt + tools, output=said + thoughts, cached=_count(native, "cachedContentTokenCount"),
                 reasoning=thoughts, total=total or prompt + tools + said + thoughts, native=native)


def write_usage(usage: Usage, same: bool) -> Json:
    """The usage object for a client: the upstream's own where it is one of these, else built."""
    if same and usage.native and "promptTokenCount" in usage.native and "totalTokenCount" in usage.native:
        return usage.native
    thoughts = min(usage.reasoning, usage.output)            # some providers count more of them than they say tokens
    out: Json = {"promptTokenCount": usage.input, "candidatesTokenCount": usage.output - thoughts,
                 "totalTokenCount": usage.total or usage.input + usage.output}
    if usage.cached:
        out["cachedContentTokenCount"] = usage.cached
    if thoughts:
        out["thoughtsTokenCount"] = thoughts
    return out


def _count(native: Json, name: str) -> int:
    value = native.get(name)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else 0


# ---------------------------------------------------------------- names and calls
_BAD_NAME: Final = re.compile(r"[^a-zA-Z0-9_.:-]")
TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def safe_name(name: str) -> str:
    """A function's name in the alphabet that the API accepts."""
    if TOOL_NAME.fullmatch(name):
        return name
    name = _BAD_NAME.sub("_", name) or "_"
    return (name if name[0].isalpha() or name[0] == "_" else "_" + name)[:64]


def call_args(text: str, kind: str = "function") -> Json:
    """JSON text as a call's arguments, which must be an object; free text of a custom tool goes under ``input``."""
    if kind == "custom":
        return {"input": text}
    try:
        value = load(text.encode("utf-8", "surrogatepass"))[0] if text.strip() else {}
    except ValueError:
        return {"value": text}
    return value if isinstance(value, dict) else {"value": value}


def arguments(args: Any) -> str:
    """A call's arguments as the JSON text that everybody else passes around."""
    return dump(args).decode() if args else "{}"


# ---------------------------------------------------------------- base64
_URL_SAFE: Final = str.maketrans("-_", "+/")


def plain_base64(data: str) -> str:
    """Google takes the alphabet for URLs too, and no padding; nobody else does."""
    if "-" in data or "_" in data:
        data = data.translate(_URL_SAFE)
    return data + "=" * (-len(data) % 4)
