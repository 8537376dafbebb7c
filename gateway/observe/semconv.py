"""What are things called in OpenTelemetry? Every name that we send, in one place, since they still change.

GenAI: https://github.com/open-telemetry/semantic-conventions-genai (v0.1.0, in development); the rest is stable.
"""
from typing import Final

# spans and metrics
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_CHOICES: Final = "gen_ai.request.choice.count"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_SEED: Final = "gen_ai.request.seed"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH: Final = "gen_ai.response.finish_reasons"
RESPONSE_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
CONVERSATION: Final = "gen_ai.conversation.id"
ERROR: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
HTTP_STATUS: Final = "http.response.status_code"
SERVICE: Final = "service.name"
SERVICE_VERSION: Final = "service.version"

# metrics: name -> (unit, what it says)
CLIENT_DURATION: Final = "gen_ai.client.operation.duration"
CLIENT_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
SERVER_DURATION: Final = "gen_ai.server.request.duration"
SERVER_FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"
HISTOGRAMS: Final = {
    CLIENT_DURATION: "Time that an attempt at an upstream took.",
    CLIENT_FIRST_CHUNK: "Time from an attempt to its first token.",
    SERVER_DURATION: "Time that a request took.",
    SERVER_FIRST_TOKEN: "Time from a request to its first token.",
}
COUNTERS: Final = {                              # -> field of core.events.Usage
    "gen_ai.client.inference.usage.input_tokens": "input",
    "gen_ai.client.inference.usage.output_tokens": "output",
    "gen_ai.client.inference.usage.cache_read.input_tokens": "cached",
    "gen_ai.client.inference.usage.cache_write.input_tokens": "cache_write",
    "gen_ai.client.inference.usage.reasoning.output_tokens": "reasoning",
}
SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

# our own, of which the conventions know nothing
REQUEST_ID: Final = "gateway.request.id"
SURFACE: Final = "gateway.surface"
KEY: Final = "gateway.key.name"
CLIENT: Final = "gateway.client"
OUTCOME: Final = "gateway.outcome"
ATTEMPTS: Final = "gateway.attempts"
STRATEGY: Final = "gateway.strategy"
DECISION: Final = "gateway.decision"
CACHE: Final = "gateway.cache"
COST: Final = "gateway.cost_usd"
ACCOUNT: Final = "gateway.account"
HEDGED: Final = "gateway.hedged"
EVENT_COMMIT: Final = "gateway.commit"
EVENT_FAILOVER: Final = "gateway.failover"
FAILED_TARGET: Final = "gateway.failover.from"
NEXT_TARGET: Final = "gateway.failover.to"

# gen_ai.operation.name by the operation of a wire format; what is not here goes by its own name
OPERATIONS: Final = {"completions": "text_completion", "generate": "text_completion", "embeddings": "embeddings",
                     "ollama_embed": "embeddings", "ollama_embeddings": "embeddings", "embedContent": "embeddings",
                     "batchEmbedContents": "embeddings", "generateContent": "generate_content",
                     "streamGenerateContent": "generate_content"}

# gen_ai.provider.name by the end of an upstream's host; who is not here goes by the id that the operator chose
PROVIDERS: Final = (
    ("openai.azure.com", "azure.ai.openai"), ("services.ai.azure.com", "azure.ai.inference"), ("openai.com", "openai"),
    ("anthropic.com", "anthropic"), ("aiplatform.googleapis.com", "gcp.vertex_ai"), ("-aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"), ("amazonaws.com", "aws.bedrock"), ("mistral.ai", "mistral_ai"),
    ("groq.com", "groq"), ("deepseek.com", "deepseek"), ("x.ai", "x_ai"), ("moonshot.ai", "moonshot_ai"),
    ("moonshot.cn", "moonshot_ai"), ("cohere.com", "cohere"), ("cohere.ai", "cohere"), ("perplexity.ai", "perplexity"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
)
