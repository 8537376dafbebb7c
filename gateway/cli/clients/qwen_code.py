"""How does Qwen Code find a gateway? By the variables of an OpenAI-compatible server."""
from gateway.cli.clients.place import Place, Settings, Setup


def setup(place: Place) -> Setup:
    env = {"OPENAI_BASE_URL": place.v1, "OPENAI_API_KEY": place.key, "OPENAI_MODEL": place.some_model}
    dotenv = "".join(f"{name}={value}\n" for name, value in env.items())
    return Setup(command="qwen", env=env, settings=Settings(".qwen/.env", text=dotenv, mark="OPENAI_BASE_URL="), then="qwen",
                 docs="https://github.com/QwenLM/qwen-code", install="npm install -g @qwen-code/qwen-code")
