"""What does Ollama's API look like to us? Its words for endings, its options, its durations.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""
import datetime
from typing import Any, Final

import msgspec

from gateway.core.events import Usage

NAME: Final = "ollama"
Json = dict[str, Any]
GENERATE: Final = "generate"             # /api/generate: one text in, one text out; /api/chat is the wire's "chat"


# ---------------------------------------------------------------- requests
class Function(msgspec.Struct):
    name: str = ""
    arguments: Any = None


class Called(msgspec.Struct):
    function: Function
    id: str | None = None


class Said(msgspec.Struct):
    """A message of /api/chat."""
    role: str
    content: str | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[Called] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class Options(msgspec.Struct):
    num_predict: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class Body(msgspec.Struct):
    """Both operations in one; the first two fields of each are its own."""
    model: str | None = None
    messages: list[Said] | None = None
    tools: list[Json] | None = None
    prompt: str | None = None
    system: str | None = None
    suffix: str | None = None
    images: list[str] | None = None
    stream: bool | None = None
    think: bool | str | None = None
    format: str | Json | None = None
    options: Options | None = None
    keep_alive: str | float | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


# ---------------------------------------------------------------- answers
STOP_IN: Final = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop", "tool_calls": "tool_calls"}


def stop_out(reason: str) -> str:
    """Clients know two words."""
    return "length" if reason == "length" else "stop"


def read_usage(doc: Json) -> Usage | None:
    """The counts of the last line; cached prompts leave the first of them out."""
    given, output = doc.get("prompt_eval_count"), doc.get("eval_count")
    if not isinstance(given, int) and not isinstance(output, int):
        return None
    n_in, n_out = given if isinstance(given, int) else 0, output if isinstance(output, int) else 0
    return Usage(input=n_in, output=n_out, total=n_in + n_out)


def closing(usage: Usage | None, elapsed_s: float) -> Json:
    """Counts and durations of the last line. Clients divide by the durations, so none is zero."""
    told = usage or Usage()
    whole = max(int(elapsed_s * 1e9), 2)
    return {"total_duration": whole, "load_duration": 0, "prompt_eval_count": told.input, "prompt_eval_duration": 1,
            "eval_count": told.output, "eval_duration": whole - 1}


def stamp(created: float) -> str:
    return datetime.datetime.fromtimestamp(created, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
