"""What is a judge outside told of a request, and what may it answer? JSON both ways; whatever is no verdict counts as none.

    {"id", "surface", "model", "key", "texts": [{"role", "text"}, …]}
    {"verdict": "allow"} · {"verdict": "block", "message": "…"} · {"verdict": "replace", "texts": [{"index": 0, "text": "…"}]}
"""
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from gateway.policy.guardrails.leaves import Leaf

MAX_ANSWER: Final = 4 << 20
MAX_MESSAGE: Final = 500


class Replaced(msgspec.Struct, frozen=True):
    index: Annotated[int, msgspec.Meta(ge=0)]
    text: str


class Verdict(msgspec.Struct, frozen=True):
    verdict: Literal["allow", "block", "replace"]
    message: str = ""
    texts: tuple[Replaced, ...] = ()


_decoder: Final = msgspec.json.Decoder(Verdict)


def question(id_: str, surface: str, model: str, key: str, leaves: Sequence[Leaf]) -> bytes:
    return msgspec.json.encode({"id": id_, "surface": surface, "model": model, "key": key,
                                "texts": [{"role": leaf.role, "text": leaf.text} for leaf in leaves]})


def verdict(body: bytes, n_texts: int) -> Verdict:
    """Raises ValueError for what is none."""
    found = _decoder.decode(body)
    if any(each.index >= n_texts for each in found.texts):
        raise ValueError("it replaces a text that there is not")
    return found
