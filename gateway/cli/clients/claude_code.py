"""How does Claude Code find a gateway? By two variables, in the environment or in its settings."""
from typing import Final

from gateway.cli.clients.place import Place, Settings, Setup

MODELS: Final = ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")


def setup(place: Place) -> Setup:
    """Its own model names follow the family map; a named model replaces all of them, the small one for titles too."""
    env = {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_AUTH_TOKEN": place.key}
    if place.model:
        env |= dict.fromkeys(MODELS, place.model)
    return Setup(command="claude", env=env, settings=Settings(".claude/settings.json", data={"env": env}), then="claude",
                 docs="https://code.claude.com/docs/en/llm-gateway", install="npm install -g @anthropic-ai/claude-code")
