"""How does aider find a gateway? By the variables of an OpenAI-compatible server."""
from gateway.cli.clients.place import Place, Settings, Setup


def setup(place: Place) -> Setup:
    model = f"openai/{place.some_model}"
    lines = f"openai-api-base: {place.v1}\nopenai-api-key: {place.key}\nmodel: {model}\n"
    return Setup(command="aider", env={"OPENAI_API_BASE": place.v1, "OPENAI_API_KEY": place.key}, args=("--model", model),
                 settings=Settings(".aider.conf.yml", text=lines, mark="openai-api-base:"), then="aider",
                 docs="https://aider.chat/docs/llms/openai-compat.html", install="pip install aider-install; aider-install")
