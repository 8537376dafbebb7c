"""Which program asks? The family that a User-Agent names: for records and charts, never for a decision."""
from functools import lru_cache
from typing import Final

# Programs may stand anywhere in the line, before or after the library that they use.
PROGRAMS: Final[dict[str, str]] = {
    "claude-cli": "claude-code", "claude-code": "claude-code", "codex": "codex", "geminicli": "gemini-cli", "gemini-cli": "gemini-cli",
    "opencode": "opencode", "aider": "aider", "litellm": "litellm", "cline/": "cline", "roocode": "roo-code", "roo-code": "roo-code",
    "kilo-code": "kilo-code", "kilocode": "kilo-code", "cursor/": "cursor", "zed/": "zed", "continue/": "continue", "goose/": "goose",
    "crush/": "crush", "copilot": "copilot", "openwebui": "open-webui", "open-webui": "open-webui", "open webui": "open-webui",
    "librechat": "librechat", "langchain": "langchain", "llama-index": "llama-index", "llamaindex": "llama-index",
    "ai-sdk/": "ai-sdk", "agents/python": "openai-agents",
}
# Libraries stand at its beginning.
LIBRARIES: Final[dict[str, str]] = {
    "openai/python": "openai-python", "asyncopenai/python": "openai-python", "openai/js": "openai-js", "openai/go": "openai-go",
    "anthropic/python": "anthropic-python", "asyncanthropic/python": "anthropic-python", "anthropic/js": "anthropic-js",
    "google-genai-sdk": "google-genai", "ollama": "ollama", "ai/": "ai-sdk", "python-httpx": "httpx", "python-requests": "requests",
    "python-urllib": "urllib", "python/": "aiohttp", "okhttp": "okhttp", "axios": "axios", "undici": "node", "node": "node",
    "go-http-client": "go", "postmanruntime": "postman", "curl": "curl", "wget": "wget", "mozilla": "browser",
}
OTHER: Final = "other"
FAMILIES: Final = frozenset({*PROGRAMS.values(), *LIBRARIES.values(), OTHER})
_LIMIT: Final = 256


def family(user_agent: str) -> str:
    """One of ``FAMILIES``, or "" where nothing was sent: what strangers write there makes no new names."""
    return _family(user_agent[:_LIMIT]) if user_agent else ""


@lru_cache(maxsize=512)
def _family(line: str) -> str:
    line = line.lower()
    for word, name in PROGRAMS.items():
        if word in line:
            return name
    return next((name for start, name in LIBRARIES.items() if line.startswith(start)), OTHER)
