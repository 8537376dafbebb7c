"""Who should sit together in a panel? Those that differ most, as early in the order as that allows.

One after the other, always the one of whom there is least yet: its very model first, then its provider, then its line of models
(``llama``, ``gpt``). Among equals the order decides, so a panel of strangers is simply the first of the list.
"""
import re
from collections import Counter
from collections.abc import Sequence

from gateway.routing.families import plain
from gateway.routing.places import Target

_LINE = re.compile(r"[a-z]+")


def diverse(targets: Sequence[Target]) -> list[Target]:
    """All of them, in the order in which they should be asked to sit."""
    left = list(targets)
    found: list[Target] = []
    models, providers, lines = Counter[str](), Counter[str](), Counter[str]()

    def familiar(target: Target) -> tuple[int, int, int]:
        name = bare(target)
        return models[name], providers[target.provider.id], lines[line(name)]

    while left:
        best = min(left, key=familiar)
        left.remove(best)
        found.append(best)
        name = bare(best)
        models[name] += 1
        providers[best.provider.id] += 1
        lines[line(name)] += 1
    return found


def bare(target: Target) -> str:
    """The model's own name, whoever serves it and in whatever variant."""
    return plain(target.model.id).partition(":")[0]


def line(name: str) -> str:
    found = _LINE.search(name)
    return found[0] if found is not None else name
