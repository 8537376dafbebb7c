"""How does Gemini CLI find a gateway? By its base address and an API key in the environment."""
from gateway.cli.clients.place import Place, Settings, Setup


def setup(place: Place) -> Setup:
    """The kind of sign-in must be chosen in its settings, or it asks for Google's; trusting the folder keeps it from ignoring keys."""
    env = {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": place.key}
    dotenv = "".join(f"{name}={value}\n" for name, value in env.items())
    return Setup(command="gemini", env=env, args=("-m", place.model) if place.model else (),
                 settings=Settings(".gemini/.env", text=dotenv, mark="GOOGLE_GEMINI_BASE_URL="),
                 then='gemini   # choose "Use Gemini API key" when it asks how to sign in',
                 docs="https://github.com/google-gemini/gemini-cli/blob/main/docs/get-started/configuration.md",
                 install="npm install -g @google/gemini-cli")
