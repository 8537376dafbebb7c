"""The neutral request: what a caller asks, whatever the wire format.

``Request`` is what routing, policy and the turn need to know; it is filled when the body is parsed. ``Conversation`` is the
whole dialogue in neutral form; it is only built (by the surface's wire, ``Wire.open``) when the upstream speaks another
format. Same format on both sides: the raw body is spliced and ``Conversation`` never exists.
"""
from typing import Any, Literal

import msgspec


class Format(msgspec.Struct):
    """What the answer must look like. ``kind``: json_object or json_schema; ``schema`` is checked when ``strict``."""
    kind: Literal["json_object", "json_schema"]
    schema: dict[str, Any] | None = None
    strict: bool = False
    name: str = ""


class ToolChoice(msgspec.Struct):
    """mode ``named`` has ``name``; ``parallel`` False forbids more than one call a turn."""
    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""
    parallel: bool | None = None


class Tool(msgspec.Struct):
    """A tool offered to the model. kind ``server``: the provider runs it itself, ``payload`` is its own declaration."""
    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    kind: Literal["function", "custom", "server"] = "function"
    payload: dict[str, Any] | None = None
    cache_control: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


class Request(msgspec.Struct, kw_only=True):
    """Facts of one request. ``body`` is the wire's typed (or plain) body; ``raw`` the bytes as they came, decoded.

    ``tools`` maps the declared tool names to their JSON schemas (None = no schema): what may be called, and how its
    arguments are repaired. ``chars`` is the size of everything the model must read, for estimates; ``images`` counts them.
    ``clean`` says that ``raw`` needs no mending beyond the model's name for an upstream of the same format.
    """
    wire: str
    raw: bytes
    body: Any
    model: str
    stream: bool
    tools: dict[str, dict[str, Any] | None] = {}
    tool_choice: ToolChoice | None = None
    format: Format | None = None
    max_tokens: int | None = None
    n: int = 1
    made: int = 0                                # answers that are paid for, where that may be more than ``n``
    chars: int = 0
    images: int = 0
    include_usage: bool = False
    session_hint: str = ""
    clean: bool = True
    operation: str = "chat"
    conversation: "Conversation | None" = None
    fetched: dict[str, tuple[str, str]] = {}     # address -> (media type, base64) of what had to be fetched for a wire


class Text(msgspec.Struct, tag="text"):
    text: str
    cache_control: dict[str, Any] | None = None
    citations: list[Any] | None = None
    extra: dict[str, Any] = {}


class Image(msgspec.Struct, tag="image"):
    """Exactly one of ``data`` (base64, with ``media_type``), ``url`` and ``file_id``."""
    data: str = ""
    media_type: str = ""
    url: str = ""
    file_id: str = ""
    detail: str | None = None
    cache_control: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


class Document(msgspec.Struct, tag="document"):
    """A file that is no image: ``data`` base64 or ``text`` or ``url`` or ``file_id``; audio and video too, by media type."""
    media_type: str = ""
    data: str = ""
    text: str = ""
    url: str = ""
    file_id: str = ""
    title: str = ""
    cache_control: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


class Thinking(msgspec.Struct, tag="thinking"):
    """An earlier turn's thinking; ``signature``/``redacted``/``encrypted`` are only valid at ``owner`` (a wire or provider)."""
    text: str = ""
    signature: str = ""
    redacted: str = ""
    owner: str = ""
    extra: dict[str, Any] = {}


class Call(msgspec.Struct, tag="call"):
    """A tool call of an earlier turn; ``arguments`` is JSON text (free text for kind ``custom``)."""
    id: str
    name: str
    arguments: str
    kind: str = "function"
    signature: str = ""
    cache_control: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


class Result(msgspec.Struct, tag="result"):
    """The answer to a call."""
    call_id: str
    parts: "list[Part]" = []
    name: str = ""
    is_error: bool = False
    kind: str = "function"
    cache_control: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


class Refusal(msgspec.Struct, tag="refusal"):
    text: str


class Opaque(msgspec.Struct, tag="opaque"):
    """A part only ``wire`` understands (server tool results, items of a provider); dropped or refused elsewhere."""
    wire: str
    kind: str
    payload: Any


Part = Text | Image | Document | Thinking | Call | Result | Refusal | Opaque


class Message(msgspec.Struct):
    """One turn. Tool results are parts of a message with role ``tool`` (wires regroup them as they need)."""
    role: Literal["system", "developer", "user", "assistant", "tool"]
    parts: list[Part]
    name: str = ""
    extra: dict[str, Any] = {}


class Sampling(msgspec.Struct):
    """Sampling knobs; None = not given."""
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    stop: list[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None


class Thought(msgspec.Struct):
    """How much to think: ``effort`` none|minimal|low|medium|high|xhigh, or a token budget; None = the model's default."""
    effort: str | None = None
    budget_tokens: int | None = None
    adaptive: bool = False
    include: bool | None = None
    summary: str | None = None


class Conversation(msgspec.Struct):
    """The dialogue in neutral form. ``extra[wire]`` keeps fields that only that wire knows."""
    messages: list[Message]
    tools: list[Tool] = []
    tool_choice: ToolChoice | None = None
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    thought: Thought | None = None
    format: Format | None = None
    user: str = ""
    metadata: dict[str, Any] | None = None
    cache_key: str = ""
    service_tier: str = ""
    extra: dict[str, dict[str, Any]] = {}
