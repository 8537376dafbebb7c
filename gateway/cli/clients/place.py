"""Where is the gateway that a client shall use, and what does a client need to be told?"""
from typing import Any, Final

import msgspec

AUTO: Final = "auto"
NO_KEY: Final = "unused-on-loopback"             # clients insist on a key; an open gateway does not look at it


class Place(msgspec.Struct, frozen=True):
    """``url`` without a path: http://127.0.0.1:8788. ``model`` "" = whatever the client asks for by itself."""
    url: str
    key: str = NO_KEY
    model: str = ""

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"

    @property
    def some_model(self) -> str:
        """For clients that must be told one."""
        return self.model or AUTO


class Settings(msgspec.Struct, frozen=True):
    """What belongs into a file of the client's own, below the user's home. ``data`` is merged into JSON; ``text`` is put at the end of
    a file that does not hold ``mark`` yet."""
    path: str
    data: dict[str, Any] | None = None
    text: str = ""
    mark: str = ""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """``command`` with ``args`` and ``env`` runs the client on the gateway without any file; ``settings`` makes it so for good."""
    command: str
    docs: str
    install: str
    env: dict[str, str] = {}
    args: tuple[str, ...] = ()
    settings: Settings | None = None
    then: str = ""                               # what to type after the settings are written
