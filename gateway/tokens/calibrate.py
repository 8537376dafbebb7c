"""By how much is the estimate off for this family of models? Learned from the usage that upstreams report.

Vocabularies differ by maker far more than by model: one factor a family, moved a little by each answer and kept within bounds,
so that no upstream's odd counting (or a cache that hides the input) can make requests look tiny or huge.
"""
import re
from typing import Final

WEIGHT: Final = 0.1                      # of one answer: the last twenty or so decide
LEAST: Final = 0.5                       # what a factor may be
MOST: Final = 2.0
_CREDIBLE: Final = (0.2, 5.0)            # ratios outside are no matter of vocabulary
_SMALL: Final = 200                      # below this many tokens the frame around messages outweighs them
_NAMES: Final = 1024
_FAMILY: Final = re.compile(r"[a-z]+(?:-[a-z]+)?")


class Calibration:
    """Factors by the name of a model; names of a family share one."""

    __slots__ = ("_factors", "_keys")

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}     # by family
        self._keys: dict[str, str] = {}          # name of a model -> its family

    def factor(self, model: str) -> float:
        """What to multiply an estimate by; 1 where nothing was learned."""
        factors = self._factors
        if not factors:
            return 1.0
        key = self._keys.get(model)
        return factors.get(self._key(model) if key is None else key, 1.0)

    def learn(self, model: str, estimated: int, counted: int) -> None:
        """``estimated`` is the plain estimate of a request of text, ``counted`` its input tokens by the upstream's word."""
        if estimated < _SMALL:
            return
        ratio = counted / estimated
        if not _CREDIBLE[0] <= ratio <= _CREDIBLE[1]:
            return
        key = self._keys.get(model) or self._key(model)
        before = self._factors.get(key)
        if before is None:
            if len(self._factors) >= _NAMES:
                return
            before = 1.0
        self._factors[key] = min(max(before + WEIGHT * (ratio - before), LEAST), MOST)

    def _key(self, model: str) -> str:
        if len(self._keys) >= _NAMES:
            self._keys.clear()
        found = self._keys[model] = family(model)
        return found


def family(model: str) -> str:
    """``anthropic/claude-opus-4-5`` and ``claude-opus-5`` are one, ``gpt-5.5`` and ``gpt-4o`` too."""
    found = _FAMILY.search(model.rpartition("/")[2].lower())
    return found[0] if found else ""
