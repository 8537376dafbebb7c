"""What does an upstream do otherwise than the format that it speaks? One row each, with the reason and where it is told.

A quirk is data: body fields to leave out (``drop``), to rename (``rename``), and flags that the wire or routing acts on
(``FLAGS``). Catalogue entries and ``[[providers]].quirks`` name rows of this table.
"""
from collections.abc import Iterable
from typing import Final

import msgspec


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``id_prefix``: what its names of models begin with, which ours may leave out."""
    reason: str
    url: str
    flags: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    rename: dict[str, str] = {}
    id_prefix: str = ""


# flag -> what whoever reads it does
FLAGS: Final[dict[str, str]] = {
    "cache_control": "marks for a prompt cache go along with requests of other formats",
    "no_stream_options": "stream_options is not sent; usage comes in the last chunk without being asked for",
    "developer_role": "messages of the role developer stay what they are, instead of being sent as system",
    "no_reasoning_content": "reasoning_content of earlier assistant messages is not sent",
    "tool_ids_9": "tool call ids are mapped to nine letters and digits",
    "sampling_or_effort": "temperature, top_p and logprobs are not sent beside a reasoning_effort other than none",
    "tools_or_effort": "reasoning_effort is not sent beside tools",
    "structured_outputs": "Messages: a wanted JSON schema is said in output_config.format, instead of in words",
    "server_tools": "Messages and Gemini: a web search that the client's format declares is run by the provider",
    "unsigned_thinking": "Messages: thinking without a signature goes back as it came",
    "adaptive_thinking": "Messages: effort is said in output_config, thinking is adaptive",
    "vertex": "Messages: the model is in the path and the version in the body, as Google hosts it",
    "json_schema": "Gemini: schemas are sent as JSON Schema, instead of in the subset of OpenAPI",
    "call_ids": "Gemini: function calls and their results carry ids",
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
    "vertex_messages": Quirk(
        reason="Google hosts the Messages API with the model in the path (:rawPredict) and anthropic_version in the body",
        url="https://docs.anthropic.com/en/api/claude-on-vertex-ai",
        flags=frozenset({"vertex"})),
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
    "no_stored_fields": Quirk(
        reason="fields of OpenAI's own bookkeeping are refused as unknown",
        url="https://docs.cohere.com/docs/compatibility-api",
        drop=frozenset({"store", "metadata", "logit_bias", "top_logprobs", "modalities", "prediction", "service_tier",
                        "parallel_tool_calls"})),
    "cerebras_fields": Quirk(
        reason="presence_penalty, frequency_penalty and logit_bias are answered with 400",
        url="https://inference-docs.cerebras.ai/resources/openai",
        drop=frozenset({"presence_penalty", "frequency_penalty", "logit_bias"})),
    "max_tokens_only": Quirk(
        reason="max_completion_tokens is unknown there; the limit is called max_tokens",
        url="https://docs.mistral.ai/api/endpoint/chat",
        rename={"max_completion_tokens": "max_tokens"}),
    "fireworks_ids": Quirk(
        reason="serverless models are called accounts/fireworks/models/NAME; the name alone is answered with 404",
        url="https://docs.fireworks.ai/api-reference/post-chatcompletions",
        id_prefix="accounts/fireworks/models/"),
    "workers_ai_ids": Quirk(
        reason="models are called @cf/MAKER/NAME",
        url="https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility/",
        id_prefix="@cf/"),
    "structured_outputs": Quirk(
        reason="it holds answers to a JSON schema that stands in output_config.format",
        url="https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs",
        flags=frozenset({"structured_outputs"})),
    "server_tools": Quirk(
        reason="it searches the web itself when a tool says so",
        url="https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool",
        flags=frozenset({"server_tools"})),
    "unsigned_thinking": Quirk(
        reason="its thinking carries no signature, and it wants it back all the same",
        url="https://platform.minimax.io/docs/api-reference/text-anthropic-api",
        flags=frozenset({"unsigned_thinking"})),
    "gemini_call_ids": Quirk(
        reason="calls and results may carry ids, which tell parallel calls of one function apart",
        url="https://ai.google.dev/gemini-api/docs/function-calling",
        flags=frozenset({"call_ids"})),
    "gemini_json_schema": Quirk(
        reason="it takes JSON Schema in responseJsonSchema and parametersJsonSchema",
        url="https://ai.google.dev/gemini-api/docs/structured-output",
        flags=frozenset({"json_schema"})),
}

# Flags that models carry, not providers: profiles.FAMILIES.
OF_MODELS: Final = frozenset({"sampling_or_effort", "tools_or_effort", "adaptive_thinking"})


class Effect(msgspec.Struct, frozen=True):
    """Several quirks together."""
    flags: frozenset[str]
    drop: frozenset[str]
    rename: dict[str, str]
    id_prefix: str = ""


def combine(names: Iterable[str]) -> Effect:
    """The joint effect of known quirks; later renames win."""
    rows = [QUIRKS[name] for name in names]
    rename: dict[str, str] = {}
    for row in rows:
        rename |= row.rename
    return Effect(frozenset().union(*(row.flags for row in rows)), frozenset().union(*(row.drop for row in rows)), rename,
                  next((row.id_prefix for row in rows if row.id_prefix), ""))
