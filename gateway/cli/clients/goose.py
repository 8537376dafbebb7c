"""How does goose find a gateway? As its provider "openai" with another host."""
from gateway.cli.clients.place import Place, Setup


def setup(place: Place) -> Setup:
    """Its settings file is YAML that goose writes itself: ``goose configure``. The variables win over it."""
    return Setup(command="goose", env={"GOOSE_PROVIDER": "openai", "OPENAI_HOST": place.url, "OPENAI_API_KEY": place.key,
                                       "GOOSE_MODEL": place.some_model},
                 docs="https://block.github.io/goose/docs/getting-started/providers", install="see the page above")
