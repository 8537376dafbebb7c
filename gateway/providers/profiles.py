"""What can a model of this family do, whoever serves it? Facts for models of which nobody else says anything.

Only abilities are told, never their absence: a guess by name must not refuse a request. Windows and lengths are the family's own;
a server on one's own machine may be started with less, so there they do not count.
The first row that is found in the name, in lower case and without what stands before its last slash, is meant. Numbers:
the maker's page in the row; https://models.dev where the maker states none.
"""
import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from gateway.providers.registry import Kind

# How a model is told how much to think: tokens, a word, or a word with which it decides alone; "" = not at all, or unknown.
Thinks = Literal["", "budget", "effort", "adaptive"]

_SAMPLING: Final = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs",
                              "logit_bias"})


class Family(msgspec.Struct, frozen=True):
    """``refuses``: body fields that are answered with 400. ``flags``: see quirks.FLAGS."""
    names: re.Pattern[str]
    url: str
    context: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    thinks: Thinks = ""
    refuses: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    kind: Kind = "chat"
    dimensions: int | None = None


def _row(names: str, url: str, context: int | None = None, max_output: int | None = None, able: str = "", thinks: Thinks = "",
         refuses: frozenset[str] = frozenset(), flags: str = "") -> Family:
    """``able``: t tools, v vision, r reasoning."""
    return Family(re.compile(names), url, context, max_output, "t" in able or None, "v" in able or None, "r" in able or None,
                  thinks, refuses, frozenset(flags.split()))


def _embeds(names: str, url: str, dimensions: int | None, context: int) -> Family:
    return Family(re.compile(names), url, context=context, kind="embedding", dimensions=dimensions)


_OPENAI = "https://platform.openai.com/docs/models"
_EFFORT = "https://platform.openai.com/docs/guides/reasoning"
_COMPATIBILITY = "https://platform.openai.com/docs/guides/latest-model"
_CLAUDE = "https://docs.anthropic.com/en/docs/about-claude/models/overview"
_GEMINI = "https://ai.google.dev/gemini-api/docs/models"
_LLAMA = "https://www.llama.com/docs/model-cards-and-prompt-formats/"
_CLAUDE_5 = frozenset({"temperature", "top_p", "top_k"})     # .../about-claude/models/migration-guide: 400 since Opus 4.7

FAMILIES: Final[tuple[Family, ...]] = (
    # -- embeddings, which share words with the chat models below
    _embeds(r"text-embedding-3-large", "https://platform.openai.com/docs/guides/embeddings", 3_072, 8_192),
    _embeds(r"text-embedding-(?:3-small|ada-002)", "https://platform.openai.com/docs/guides/embeddings", 1_536, 8_192),
    _embeds(r"gemini-embedding|text-embedding-00[45]", "https://ai.google.dev/gemini-api/docs/embeddings", None, 2_048),
    _embeds(r"(?:mistral|codestral)-embed", "https://docs.mistral.ai/capabilities/embeddings/overview", None, 8_192),
    _embeds(r"^embed-(?:v4|english|multilingual)", "https://docs.cohere.com/docs/cohere-embed", None, 512),
    _embeds(r"nomic-embed-text", "https://ollama.com/library/nomic-embed-text", 768, 2_048),
    _embeds(r"bge-m3", "https://huggingface.co/BAAI/bge-m3", 1_024, 8_192),
    _embeds(r"qwen3-embedding", "https://qwenlm.github.io/blog/qwen3-embedding/", None, 32_768),
    _embeds(r"^voyage-(?!rerank)", "https://docs.voyageai.com/docs/embeddings", None, 32_000),
    # -- OpenAI
    _row(r"gpt-5(?:\.\d)?-chat|chatgpt-4o|gpt-chat", _OPENAI, 128_000, 16_384, "v"),
    _row(r"gpt-5\.[4-9]-(?:mini|nano)", _COMPATIBILITY, 400_000, 128_000, "tvr", "effort", flags="sampling_or_effort tools_or_effort"),
    _row(r"gpt-(?:5\.[4-9]|[6-9])", _COMPATIBILITY, 1_050_000, 128_000, "tvr", "effort", flags="sampling_or_effort tools_or_effort"),
    _row(r"gpt-5\.[1-3]", _COMPATIBILITY, 400_000, 128_000, "tvr", "effort", flags="sampling_or_effort"),
    _row(r"gpt-5", _EFFORT, 400_000, 128_000, "tvr", "effort", _SAMPLING),
    _row(r"^o1-mini", _EFFORT, 128_000, 65_536, "r", "", _SAMPLING | {"n"}),
    _row(r"^o[134](?:-|$)", _EFFORT, 200_000, 100_000, "tr", "effort", _SAMPLING | {"n"}),
    _row(r"gpt-oss", "https://openai.com/index/introducing-gpt-oss/", 131_072, 131_072, "tr", "effort"),
    _row(r"gpt-4\.1", _OPENAI, 1_047_576, 32_768, "tv"),
    _row(r"gpt-4o", _OPENAI, 128_000, 16_384, "tv"),
    _row(r"gpt-4-(?:turbo|1106|0125)", _OPENAI, 128_000, 4_096, "t"),
    _row(r"gpt-4", _OPENAI, 8_192, 8_192, "t"),
    _row(r"gpt-3\.5-turbo", _OPENAI, 16_385, 4_096, "t"),
    # -- Anthropic
    _row(r"claude-(?:opus-4[-.][7-9]|(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|\d\d))", _CLAUDE, 1_000_000, 128_000, "tvr",
         "adaptive", _CLAUDE_5),
    _row(r"claude-(?:opus|sonnet)-4[-.]6", _CLAUDE, 200_000, 64_000, "tvr", "budget"),
    _row(r"claude-opus-4[-.]5|claude-(?:sonnet|haiku)-4", _CLAUDE, 200_000, 64_000, "tvr", "budget"),
    _row(r"claude-opus-4", _CLAUDE, 200_000, 32_000, "tvr", "budget"),
    _row(r"claude-3[-.]7", _CLAUDE, 200_000, 64_000, "tvr", "budget"),
    _row(r"claude-3[-.]5", _CLAUDE, 200_000, 8_192, "tv"),
    _row(r"claude-3", _CLAUDE, 200_000, 4_096, "tv"),
    # -- Google
    _row(r"gemini-[3-9]", _GEMINI, 1_048_576, 65_536, "tvr", "effort"),
    _row(r"gemini-2\.5|gemini-(?:pro|flash).*latest", _GEMINI, 1_048_576, 65_536, "tvr", "budget"),
    _row(r"gemini-2\.0|gemini-1\.5", _GEMINI, 1_048_576, 8_192, "tv"),
    _row(r"gemma-?[34]", "https://ai.google.dev/gemma/docs", 131_072, 8_192, "v"),
    # -- DeepSeek
    _row(r"deepseek-(?:v4|flash|pro)", "https://api-docs.deepseek.com/quick_start/pricing", 1_000_000, 384_000, "tr", "effort"),
    _row(r"deepseek-r1|deepseek-reasoner", "https://api-docs.deepseek.com/guides/reasoning_model", 128_000, 64_000, "r"),
    _row(r"deepseek-(?:v3|chat)", "https://api-docs.deepseek.com/quick_start/pricing", 128_000, 8_192, "t"),
    # -- Qwen
    _row(r"qwen3?[-.]?.*coder", "https://help.aliyun.com/zh/model-studio/models", 262_144, 65_536, "t"),
    _row(r"qwq|qwen3.*thinking", "https://help.aliyun.com/zh/model-studio/deep-thinking", 131_072, 32_768, "tr"),
    _row(r"qwen.*vl|qvq", "https://help.aliyun.com/zh/model-studio/vision", 131_072, 32_768, "v"),
    _row(r"qwen3\.[5-9]|qwen[4-9]", "https://help.aliyun.com/zh/model-studio/models", 262_144, 65_536, "tr", "budget"),
    _row(r"qwen3", "https://help.aliyun.com/zh/model-studio/models", 131_072, 16_384, "t", "budget"),
    _row(r"qwen2\.5|qwen2", "https://help.aliyun.com/zh/model-studio/models", 131_072, 8_192, "t"),
    # -- Meta
    _row(r"llama-?4", _LLAMA, None, None, "tv"),
    _row(r"llama-?3[-.]2.*(?:11b|90b|vision)", _LLAMA, 131_072, None, "v"),
    _row(r"llama-?3[-._][123]", _LLAMA, 131_072, None, "t"),
    _row(r"llama-?3", _LLAMA, 8_192, None, ""),
    # -- Mistral
    _row(r"magistral", "https://docs.mistral.ai/capabilities/reasoning/", 131_072, 40_960, "tr"),
    _row(r"devstral", "https://docs.mistral.ai/getting-started/models/", 262_144, None, "t"),
    _row(r"codestral", "https://docs.mistral.ai/getting-started/models/", 256_000, None, "t"),
    _row(r"pixtral", "https://docs.mistral.ai/capabilities/vision/", 128_000, None, "tv"),
    _row(r"ministral|mistral-(?:large|medium|small)", "https://docs.mistral.ai/getting-started/models/", 131_072, None, "t"),
    _row(r"mixtral|mistral-nemo|open-mistral", "https://docs.mistral.ai/getting-started/models/", None, None, "t"),
    # -- others
    _row(r"kimi-k2\.[5-9]|kimi-k[3-9]", "https://platform.moonshot.ai/docs/api/chat", 262_144, None, "tvr"),
    _row(r"kimi-k2.*thinking", "https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model", 262_144, None, "tr"),
    _row(r"kimi", "https://platform.moonshot.ai/docs/api/chat", 131_072, None, "t"),
    _row(r"glm-\d(?:\.\d)?v", "https://docs.z.ai/guides/vlm/glm-4.5v", 65_536, 16_384, "tvr"),
    _row(r"glm-(?:4\.[67]|[5-9])", "https://docs.z.ai/guides/llm/glm-4.6", 200_000, 128_000, "tr"),
    _row(r"glm-4\.5", "https://docs.z.ai/guides/llm/glm-4.5", 131_072, 96_000, "tr"),
    _row(r"minimax-m\d", "https://platform.minimax.io/docs/api-reference/text-anthropic-api", 204_800, None, "tr"),
    _row(r"grok-4", "https://docs.x.ai/docs/models", 256_000, None, "t", refuses=frozenset({"presence_penalty", "frequency_penalty"})),
    _row(r"grok-3-mini", "https://docs.x.ai/docs/guides/reasoning", 131_072, None, "tr", "effort",
         frozenset({"presence_penalty", "frequency_penalty", "stop"})),
    _row(r"grok-[23]", "https://docs.x.ai/docs/models", 131_072, None, "t"),
    _row(r"command-a-reasoning", "https://docs.cohere.com/docs/models", 256_000, 32_000, "tr", "budget"),
    _row(r"command-a", "https://docs.cohere.com/docs/models", 256_000, 8_000, "t"),
    _row(r"command-r", "https://docs.cohere.com/docs/models", 128_000, 4_000, "t"),
    _row(r"nova-(?:lite|pro|premier)", "https://docs.aws.amazon.com/nova/latest/userguide/what-is-nova.html", 300_000, 10_000, "tv"),
    _row(r"nova-micro", "https://docs.aws.amazon.com/nova/latest/userguide/what-is-nova.html", 128_000, 10_000, "t"),
    _row(r"mimo-v\d", "https://platform.xiaomimimo.com/docs/", 262_144, None, "tr"),
    _row(r"^sonar", "https://docs.perplexity.ai/getting-started/models", 128_000, None, ""),
    _row(r"phi-4", "https://huggingface.co/microsoft/phi-4", 16_384, None, ""),
    _row(r"mercury", "https://docs.inceptionlabs.ai/get-started/models", 128_000, None, "t"),
)
# us.anthropic.claude-…: https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html
_BEDROCK: Final = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere|deepseek|openai|qwen|moonshot|minimax|zai)\.")
_NONE: Final = Family(re.compile(r"(?!)"), "")


@lru_cache(maxsize=4096)
def family(model: str) -> Family:
    """The family of a model by its name; one that states nothing where the name is unknown."""
    name = model.rpartition("/")[2].lower()
    name = _BEDROCK.sub("", name)
    return next((row for row in FAMILIES if row.names.search(name)), _NONE)
