"""What do OpenAI's chat formats look like to us? The typed shapes, the finish words, the token counts.

https://platform.openai.com/docs/api-reference/chat and the habits of the many servers that copy it. Requests are typed as
leniently as spec and contract want; frames are typed just enough to tell the plain ones, which are nearly all.
"""
from typing import Annotated, Any, Final

import msgspec

from gateway.core.events import Usage

Json = dict[str, Any]


# ---------------------------------------------------------------- requests
class Callee(msgspec.Struct, gc=False):
    """``function`` of a call, of a tool choice."""
    name: str = ""
    arguments: str | Json | None = None


class ToolCall(msgspec.Struct, gc=False):
    id: str | None = None
    type: str | None = None
    index: int | None = None
    function: Callee | None = None
    custom: Json | None = None


class Part(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    image_url: str | Json | None = None
    input_audio: Json | None = None
    file: Json | None = None


class Message(msgspec.Struct, gc=False):
    role: str
    content: str | list[str | Part] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    function_call: Callee | None = None
    refusal: str | None = None
    audio: Json | None = None
    reasoning_content: str | None = None


class Function(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    parameters: Json | bool | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, gc=False):
    """``name``, ``parameters`` and ``input_schema`` at its top: the form of other APIs, which some clients send here too."""
    type: str | None = None
    function: Function | None = None
    custom: Json | None = None
    name: str | None = None
    parameters: Json | None = None
    input_schema: Json | None = None


class StreamOptions(msgspec.Struct, gc=False):
    include_usage: bool | None = None


class Options(msgspec.Struct, gc=False):
    """What chat and legacy completions share."""
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    seed: int | None = None
    user: str | None = None


class Body(Options, gc=False):
    """A chat request. ``tools`` is kept raw at first: its size is part of what the model must read."""
    messages: list[Message] | None = None
    tools: msgspec.Raw = msgspec.Raw(b"null")
    functions: list[Function] | None = None
    tool_choice: str | Json | None = None
    function_call: str | Json | None = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: int | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: Json | None = None
    reasoning_effort: str | None = None
    metadata: Json | None = None
    modalities: list[str] | None = None
    prompt_cache_key: str | None = None


NO_TOOLS: Final = (b"null", b"[]")


class Completion(Options, gc=False):
    """A legacy completions request: https://platform.openai.com/docs/api-reference/completions/create"""
    prompt: str | list[Any] | None = None        # a text, texts, tokens, or lists of tokens
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None
    best_of: int | None = None


# ---------------------------------------------------------------- frames
CHUNK: Final = "chat.completion.chunk"


class Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: Json | None = None


class Choice(msgspec.Struct, gc=False):
    """The defaults of ``index`` and ``finish_reason`` are values that no frame has: they tell that the field is missing."""
    delta: Delta | None = None
    index: int = -1
    finish_reason: str | None = ""


class Frame(msgspec.Struct, gc=False):
    choices: list[Choice]
    id: str = ""
    object: str = ""
    created: int = -1
    model: str = ""
    usage: Json | None = None
    x_groq: Json | None = None
    error: Any = None


# ---------------------------------------------------------------- why a turn ended
# Foreign words for neutral ones, lower-cased; what is not here is `stop`, so that a client never sees a word it does not know.
FINISH: Final = {
    "stop": "stop", "length": "length", "tool_calls": "tool_calls", "content_filter": "content_filter",
    "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop", "complete": "stop", "done": "stop",
    "max_tokens": "length", "max_output_tokens": "length", "max_length": "length", "token_limit": "length",
    "model_length": "length",                                  # Mistral: the context is full
    "model_context_window_exceeded": "length",
    "function_call": "tool_calls", "tool_use": "tool_calls", "tool_call": "tool_calls", "tool_calls_finished": "tool_calls",
    "safety": "content_filter", "recitation": "content_filter", "blocklist": "content_filter", "spii": "content_filter",
    "prohibited_content": "content_filter", "sensitive": "content_filter", "filtered": "content_filter",
    "guardrail_intervened": "content_filter", "refusal": "content_filter", "moderation": "content_filter",
    "pause": "stop", "pause_turn": "stop",
}

# Words that say the provider failed. DeepSeek: the answer was cut for lack of resources; Z.ai: its own inference broke.
_FAILED: Final = frozenset({"error", "insufficient_system_resource", "network_error"})


def says_failed(word: Any) -> bool:
    return isinstance(word, str) and word in _FAILED


def finish_word(word: Any) -> str:
    """A provider's word as one of chat's four; "" where there is none. (Some servers send numbers.)"""
    if word is None or word == "" or word is False:
        return ""
    return FINISH.get(str(word).lower(), "stop")


# ---------------------------------------------------------------- token counts
MOST_TOKENS: Final = 1 << 53                     # what every client's numbers hold
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


def sound(native: Json) -> bool:
    """Is every count a whole number that can be one? Details are looked into, unknown members are nobody's business."""
    for name, value in native.items():
        if name.endswith("_tokens"):
            if type(value) is not int or not 0 <= value <= MOST_TOKENS:
                return False
        elif name.endswith("_details") and isinstance(value, dict) and not sound(value):
            return False
    return True


def read_usage(native: Json) -> Usage:
    """One usage object, whoever wrote it. Counts that are none do not go on: ``native`` is then told anew."""
    if len(native) == 3:
        prompt, completion, total = native.get("prompt_tokens"), native.get("completion_tokens"), native.get("total_tokens")
        if type(prompt) is type(completion) is type(total) is int and 0 <= prompt <= MOST_TOKENS \
                and 0 <= completion <= MOST_TOKENS and 0 <= total <= MOST_TOKENS:
            return Usage(input=prompt, output=completion, total=total or prompt + completion, native=native)
    usual = _usual(native)
    if usual is not None:
        return usual
    usage = _counted(native)
    if not sound(native):
        clean = _without_odd(native)
        usage.native = {**clean, "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total}
    return usage


class _Details(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count = 0
    audio_tokens: Count = 0
    text_tokens: Count = 0
    image_tokens: Count = 0
    accepted_prediction_tokens: Count = 0
    rejected_prediction_tokens: Count = 0


class _Usual(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A usage object of OpenAI's own, of chat or of responses."""
    total_tokens: Count
    prompt_tokens: Count | msgspec.UnsetType = msgspec.UNSET
    input_tokens: Count | msgspec.UnsetType = msgspec.UNSET
    completion_tokens: Count | msgspec.UnsetType = msgspec.UNSET
    output_tokens: Count | msgspec.UnsetType = msgspec.UNSET
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


_NO_DETAILS: Final = _Details()


def _usual(native: Json) -> Usage | None:
    """What nearly all say, in one conversion; None for anything that has another member or an odd number."""
    try:
        told = msgspec.convert(native, _Usual)
    except (msgspec.ValidationError, UnicodeEncodeError):    # the second: half a surrogate pair
        return None
    into = told.prompt_tokens_details or told.input_tokens_details or _NO_DETAILS
    out = told.completion_tokens_details or told.output_tokens_details or _NO_DETAILS
    prompt = told.prompt_tokens if told.prompt_tokens is not msgspec.UNSET else told.input_tokens or 0
    completion = told.completion_tokens if told.completion_tokens is not msgspec.UNSET else told.output_tokens or 0
    total, reasoning = told.total_tokens, out.reasoning_tokens
    if reasoning and total == prompt + completion + reasoning:
        completion += reasoning
    return Usage(prompt, completion, into.cached_tokens, into.cache_write_tokens, reasoning, total or prompt + completion,
                 native=native)


def _without_odd(native: Json) -> Json:
    out: Json = {}
    for name, value in native.items():
        if name.endswith("_details") and isinstance(value, dict):
            out[name] = _without_odd(value)
        elif not name.endswith("_tokens") or (type(value) is int and 0 <= value <= MOST_TOKENS):
            out[name] = value
    return out


def _counted(native: Json) -> Usage:
    into = _details(native, "prompt_tokens_details", "input_tokens_details")
    out = _details(native, "completion_tokens_details", "output_tokens_details")
    prompt = _count(native, "prompt_tokens", "input_tokens")
    completion = _count(native, "completion_tokens", "output_tokens")
    total = _count(native, "total_tokens")
    reasoning = _count(out, "reasoning_tokens") or _count(native, "reasoning_tokens")
    if reasoning and total == prompt + completion + reasoning:
        completion += reasoning          # xAI leaves reasoning out of completion_tokens: https://docs.x.ai/docs/guides/reasoning
    return Usage(
        input=prompt, output=completion, reasoning=reasoning, total=total or prompt + completion,
        # cached_tokens at the top: Moonshot · prompt_cache_hit_tokens: DeepSeek
        cached=_count(into, "cached_tokens") or _count(native, "cached_tokens", "prompt_cache_hit_tokens"),
        cache_write=_count(into, "cache_creation_tokens", "cache_write_tokens") or _count(native, "cache_creation_input_tokens"),
        estimated=native.get("estimated") is True, native=native)


def write_usage(usage: Usage, same: bool) -> Json:
    """The usage object for a client: the upstream's own where it is one of chat, else built."""
    if same and usage.native:
        return usage.native
    out: Json = {"prompt_tokens": usage.input, "completion_tokens": usage.output,
                 "total_tokens": usage.total or usage.input + usage.output}
    if usage.cached or usage.cache_write:
        out["prompt_tokens_details"] = {"cached_tokens": usage.cached}
        if usage.cache_write:
            out["prompt_tokens_details"]["cache_creation_tokens"] = usage.cache_write
    if usage.reasoning:
        out["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if usage.estimated:
        out["estimated"] = True
    return out


def _details(native: Json, *names: str) -> Json:
    for name in names:
        value = native.get(name)
        if isinstance(value, dict):
            return value
    return {}


def _count(native: Json, *names: str) -> int:
    for name in names:
        value = native.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return int(value)
    return 0
