"""How does a provider want to see its key?

https://platform.openai.com/docs/api-reference/authentication · https://docs.anthropic.com/en/api/overview ·
https://ai.google.dev/gemini-api/docs/api-key · https://learn.microsoft.com/azure/ai-services/openai/reference
"""
from typing import Final
from urllib.parse import quote

from gateway.providers.registry import Account, Provider

# auth -> (header, text before the key)
HEADERS: Final[dict[str, tuple[str, str]]] = {
    "bearer": ("Authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "api-key": ("api-key", ""),
}
BEARER: Final = HEADERS["bearer"]
QUERY_NAME: Final = "key"
# Credentials that are made for each call: what the accounts hold is no header (upstream.signed).
MADE: Final = frozenset({"oauth", "sigv4", "gcp"})

# Contract 2: the default of a wire that says nothing else.
DEFAULT_AUTH: Final[dict[str, str]] = {
    "openai-chat": "bearer", "openai-responses": "bearer", "anthropic": "x-api-key", "gemini": "x-goog-api-key",
    "bedrock-converse": "sigv4", "cohere": "bearer", "ollama": "none",
}


def credentials(provider: Provider, account: Account) -> dict[str, str]:
    """Headers that carry the account's key; empty for ``none``, ``query`` and an account without a key."""
    header = HEADERS.get(provider.auth)
    if header is None or not account.key:
        return {}
    name, prefix = header
    return {name: prefix + account.key.reveal()}


def query_credentials(provider: Provider, account: Account) -> str:
    """``key=…``, ready to be appended to a URL, where the key travels in the query; else empty."""
    if provider.auth != "query" or not account.key:
        return ""
    return f"{QUERY_NAME}={quote(account.key.reveal(), safe='')}"
