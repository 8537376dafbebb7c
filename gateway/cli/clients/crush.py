"""How does Crush find a gateway? As a provider of its configuration."""
from gateway.cli.clients.place import AUTO, Place, Settings, Setup


def setup(place: Place) -> Setup:
    """It has no variable for this: the settings must be written before it runs."""
    models = [{"id": name, "name": name, "context_window": 128_000, "default_max_tokens": 8_192}
              for name in dict.fromkeys((place.some_model, AUTO))]
    provider = {"name": "gateway", "type": "openai-compat", "base_url": place.v1, "api_key": place.key, "models": models}
    return Setup(command="crush", settings=Settings(".config/crush/crush.json", data={"providers": {"gateway": provider}}),
                 then="crush   # and choose the model of \"gateway\"", docs="https://github.com/charmbracelet/crush",
                 install="npm install -g @charmland/crush")
