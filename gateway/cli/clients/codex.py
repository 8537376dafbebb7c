"""How does Codex find a gateway? As a model provider that speaks Responses; its key stays in the environment."""
import json
from typing import Final

from gateway.cli.clients.place import Place, Settings, Setup

KEY: Final = "GATEWAY_KEY"
TABLE: Final = "[model_providers.gateway]"


def setup(place: Place) -> Setup:
    provider = {"name": "gateway", "base_url": place.v1, "wire_api": "responses", "env_key": KEY}
    inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())
    chosen = ("-c", 'model_provider="gateway"', "-m", place.some_model)
    return Setup(command="codex", env={KEY: place.key}, args=("-c", f"model_providers.gateway={{{inline}}}", *chosen),
                 settings=Settings(".codex/config.toml", text=f"\n{TABLE}\n{lines}\n", mark=TABLE),
                 then=f"export {KEY}=…   # then: codex -c 'model_provider=\"gateway\"' -m {place.some_model}",
                 docs="https://developers.openai.com/codex/config-reference", install="npm install -g @openai/codex")
