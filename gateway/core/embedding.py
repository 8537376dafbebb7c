"""What is asked when texts shall become vectors, and what comes back, whatever the wire format."""
from typing import Any

import msgspec

Inputs = list[str] | list[list[int]]
Vector = list[float] | str


class Ask(msgspec.Struct, kw_only=True):
    """Texts, or token ids of texts. ``base64``: the client reads vectors as base64 of little-endian float32.
    ``raw`` is the client's own body where upstreams of the same format can take it."""
    inputs: Inputs
    model: str = ""
    dimensions: int | None = None
    base64: bool = False
    user: str = ""
    task_type: str = ""                          # Gemini's: what the vectors are for
    title: str = ""
    truncate: bool | None = None                 # Ollama's
    raw: bytes | None = None
    wire: str = ""                               # the format of ``raw``

    @property
    def texts(self) -> list[str] | None:
        """The inputs, if they are texts."""
        return [text for text in self.inputs if isinstance(text, str)] if isinstance(self.inputs[0], str) else None


class Vectors(msgspec.Struct, kw_only=True):
    """One vector an input, in their order: numbers, or base64 text as OpenAI writes it. ``tokens`` None = not told.
    ``raw`` and ``model``: the upstream's own body and name, where the body is in the form that the client asked for; then
    ``items`` are pieces of JSON that nobody has read."""
    items: list[Any]
    tokens: int | None = None
    raw: bytes | None = None
    model: str = ""
