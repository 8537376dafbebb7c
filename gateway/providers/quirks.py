"""What does an upstream do otherwise than the format that it speaks? One row each, with the reason and where it is told.

A quirk is data: body fields to leave out (``drop``), to rename (``rename``), and flags that the wire or routing acts on
(``FLAGS``). Catalogue entries and ``[[providers]].quirks`` name rows of this table.
"""
from collections.abc import Iterable
from typing import Final

import msgspec


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    reason: str
    url: str
    flags: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    rename: dict[str, str] = {}


# flag -> what whoever reads it does
FLAGS: Final[dict[str, str]] = {
    "cache_control": "marks for a prompt cache go along with requests of other formats",
    "no_stream_options": "stream_options is not sent; usage comes in the last chunk without being asked for",
    "developer_role": "messages of the role developer stay what they are, instead of being sent as system",
    "no_reasoning_content": "reasoning_content of earlier assistant messages is not sent",
    "tool_ids_9": "tool call ids are mapped to nine letters and digits",
    "demo": "answered in this process by gateway.mock, without network",
}

QUIRKS: Final[dict[str, Quirk]] = {
    "max_completion_tokens": Quirk(
        reason="max_tokens is deprecated and refused by every reasoning model; all chat models take max_completion_tokens",
        url="https://platform.openai.com/docs/api-reference/chat/create",
        rename={"max_tokens": "max_completion_tokens"}),
    "cache_control": Quirk(
        reason="it hands Anthropic's cache marks in messages on; OpenAI's own format has no such field",
        url="https://openrouter.ai/docs/features/prompt-caching",
        flags=frozenset({"cache_control"})),
    "no_logprobs": Quirk(
        reason="logprobs, top_logprobs and logit_bias are answered with 400",
        url="https://console.groq.com/docs/openai",
        drop=frozenset({"logprobs", "top_logprobs", "logit_bias"})),
    "gemini_strict_fields": Quirk(
        reason="fields that it does not know are refused (Unknown name …: Cannot find field)",
        url="https://github.com/ed-donner/agents/issues/45",
        drop=frozenset({"store", "metadata", "frequency_penalty"})),
    "mistral_fields": Quirk(
        reason="fields that it does not know are refused with 422 extra_forbidden; seed has another name",
        url="https://docs.mistral.ai/api/endpoint/chat",
        drop=frozenset({"store", "user", "logprobs", "top_logprobs", "logit_bias", "service_tier"}),
        rename={"max_completion_tokens": "max_tokens", "seed": "random_seed"}),
    "no_stream_options": Quirk(
        reason="stream_options.include_usage is refused with 422; the last chunk carries usage anyway",
        url="https://github.com/avante-corp/avante.nvim/issues/2347",
        flags=frozenset({"no_stream_options"})),
    "developer_role": Quirk(
        reason="it knows the role developer; DeepSeek, Mistral and the chat templates of local servers refuse it",
        url="https://platform.openai.com/docs/api-reference/chat/create",
        flags=frozenset({"developer_role"})),
    "no_reasoning_content": Quirk(
        reason="reasoning_content of an assistant message is refused with 422 extra_forbidden",
        url="https://github.com/charmbracelet/crush/issues/1590",
        flags=frozenset({"no_reasoning_content"})),
    "tool_ids_9": Quirk(
        reason="tool call ids must be nine letters and digits",
        url="https://github.com/anomalyco/opencode/issues/1680",
        flags=frozenset({"tool_ids_9"})),
    "no_penalties": Quirk(
        reason="presence_penalty and frequency_penalty are an error for reasoning models",
        url="https://docs.x.ai/docs/guides/reasoning",
        drop=frozenset({"presence_penalty", "frequency_penalty"})),
}


class Effect(msgspec.Struct, frozen=True):
    """Several quirks together."""
    flags: frozenset[str]
    drop: frozenset[str]
    rename: dict[str, str]


def combine(names: Iterable[str]) -> Effect:
    """The joint effect of known quirks; later renames win."""
    rows = [QUIRKS[name] for name in names]
    rename: dict[str, str] = {}
    for row in rows:
        rename |= row.rename
    return Effect(frozenset().union(*(row.flags for row in rows)), frozenset().union(*(row.drop for row in rows)), rename)
