"""Which models does a provider say it has? One cheap call that spends no tokens, and so also the test of a key."""
from typing import Any, Final

import msgspec

from gateway.config.upstreams import model_of
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.providers.auth import credentials, query_credentials
from gateway.providers.classify import classify
from gateway.providers.registry import Account, Model, Provider
from gateway.upstream.guard import base_headers, outgoing
from gateway.upstream.signed import signed
from gateway.upstream.tokens import Tokens
from gateway.upstream.transport import Outgoing, Transport
from gateway.wire.lenient import load

ANSWER_BYTES: Final = 16 << 20                       # the longest lists hold some thousand models with descriptions
ERROR_BYTES: Final = 65_536
MAX_MODELS: Final = 5_000
MAX_NAME: Final = 200
NO_LIST: Final = "none"
PATHS: Final = {"openai-chat": "/models", "openai-responses": "/models", "anthropic": "/models?limit=1000",
                "gemini": "/models?pageSize=1000", "ollama": "/api/tags", "cohere": "/models?page_size=1000"}
_CONTEXT: Final = ("context_window", "context_length", "max_model_len", "max_context_length", "inputTokenLimit", "max_input_tokens")
_OUTPUT: Final = ("max_output_tokens", "outputTokenLimit", "max_completion_tokens")


class Means(msgspec.Struct, frozen=True):
    """What a call outside of any request is made with."""
    transport: Transport
    tokens: Tokens
    clock: Clock
    plain: Transport | None = None           # for providers with transport = "aiohttp"

    def door(self, provider: Provider) -> Transport:
        return self.plain if self.plain is not None and provider.transport == "aiohttp" else self.transport


def address(provider: Provider, account: Account) -> str:
    """Where its list is; empty where it has none."""
    if provider.models_url == NO_LIST:
        return ""
    path = PATHS.get(provider.wire)
    url = provider.models_url or (provider.base_url + path if path else "")
    query = "&".join(filter(None, (provider.query, query_credentials(provider, account))))
    return f"{url}{'&' if '?' in url else '?'}{query}" if url and query else url


async def listed(provider: Provider, account: Account, means: Means) -> tuple[Model, ...]:
    """The models, at most MAX_MODELS. Raises GatewayError: what the provider said, or why nothing could be asked."""
    url = address(provider, account)
    if not url:
        raise GatewayError("unsupported", "This provider has no list of models.")
    headers = outgoing(base_headers(provider.headers, credentials(provider, account)), {}, stream=False)
    out = Outgoing(method="GET", url=url, headers=headers, body=None, timeouts=provider.timeouts,
                   proxy=account.proxy or provider.proxy)
    reply = await signed(means.door(provider), provider, account, means.tokens, means.clock).send(out)
    try:
        if reply.status >= 400:
            raise classify(reply.status, reply.headers, await reply.read(ERROR_BYTES), provider)
        body = await reply.read(ANSWER_BYTES)
    finally:
        if not reply.complete:
            reply.close()
    if reply.headers.get("Server") == "gateway" and provider.loopback:
        raise GatewayError("unsupported", "Another gateway answers there.")
    return read(body, provider)


def read(body: bytes, provider: Provider) -> tuple[Model, ...]:
    """OpenAI's and Anthropic's ``data``, Gemini's, Cohere's and Ollama's ``models``, or a bare array."""
    try:
        doc, _ = load(body)
    except ValueError:
        raise GatewayError("bad_reply", "The list of models is not JSON.") from None
    rows = doc if isinstance(doc, list) else doc.get("data", doc.get("models")) if isinstance(doc, dict) else None
    if not isinstance(rows, list):
        raise GatewayError("bad_reply", "The answer is no list of models.")
    found: dict[str, Model] = {}
    for row in rows[:MAX_MODELS]:
        name = _name(row)
        if name and name not in found:
            values: dict[str, Any] = {"id": name}
            if isinstance(row, dict):
                values |= _stated(row)
            found[name] = model_of(values, provider.preset, provider.wire, provider.loopback)
    return tuple(found.values())


def _name(row: Any) -> str:
    name = row.get("id") or row.get("name") or row.get("model") if isinstance(row, dict) else row
    if not isinstance(name, str):
        return ""
    name = name.removeprefix("models/").strip()
    return name if 0 < len(name) <= MAX_NAME and name.isprintable() and name != "*" else ""


def _stated(row: dict[str, Any]) -> dict[str, int]:
    """Sizes as far as the list tells them."""
    out = {}
    for ours, theirs in (("context", _CONTEXT), ("max_output", _OUTPUT)):
        value = next((row[name] for name in theirs if isinstance(row.get(name), int) and row[name] > 0), None)
        if value is not None:
            out[ours] = value
    return out
