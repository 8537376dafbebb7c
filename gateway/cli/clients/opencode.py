"""How does opencode find a gateway? As a provider of its configuration, which may also come by a variable."""
import json

from gateway.cli.clients.place import AUTO, Place, Settings, Setup


def setup(place: Place) -> Setup:
    models = {name: {"name": name} for name in dict.fromkeys((place.some_model, AUTO))}
    config = {"provider": {"gateway": {"npm": "@ai-sdk/openai-compatible", "name": "gateway", "models": models,
                                       "options": {"baseURL": place.v1, "apiKey": place.key}}}}
    chosen = ("--model", f"gateway/{place.some_model}")
    return Setup(command="opencode", env={"OPENCODE_CONFIG_CONTENT": json.dumps(config)}, args=chosen,
                 settings=Settings(".config/opencode/opencode.json", data={"$schema": "https://opencode.ai/config.json", **config}),
                 then=" ".join(("opencode", *chosen)), docs="https://opencode.ai/docs/providers", install="npm install -g opencode-ai")
