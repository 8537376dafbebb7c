"""How many tokens exactly, where the model's vocabulary is public? The optional package toktok-rs (extra ``tokens``) counts.

Imported on first use: a vocabulary takes a moment and some memory. Without the package, or for a model whose vocabulary is
not public, there is no exact count, and whoever asked estimates. https://pypi.org/project/toktok-rs/
"""
import functools
import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

# (names, vocabulary). https://platform.openai.com/docs/models · https://github.com/openai/harmony
_VOCABULARIES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"gpt-oss"), "o200k_harmony"),
    (re.compile(r"gpt-(?:4o|4\.1|4\.5|[5-9])|chatgpt-4o|^o[134](?:-|$)"), "o200k_base"),
    (re.compile(r"gpt-4|gpt-3\.5|text-embedding"), "cl100k_base"),
    (re.compile(r"qwen3\.5"), "qwen3.5"),
)


def vocabulary(model: str) -> str | None:
    """The name of the model's vocabulary, if it is known."""
    name = model.rpartition("/")[2].lower()
    return next((found for names, found in _VOCABULARIES if names.search(name)), None)


def counter(model: str) -> Callable[[Iterable[str]], int] | None:
    """Counts the tokens of texts as this model does; None where that cannot be known."""
    name, package = vocabulary(model), _package()
    if name is None or package is None:
        return None
    return lambda texts: sum(package.batch_count([text.encode("utf-8", "replace").decode() for text in texts], name, threads=1))


@functools.cache
def _package() -> Any:
    try:
        return importlib.import_module("toktok")
    except ImportError:
        return None
