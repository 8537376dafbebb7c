"""Which family does a model name belong to that clients have built in? Coding agents send Claude and Gemini names always."""
import re
from functools import lru_cache
from typing import Final

# The first row that matches names the family; a family that the operator did not map falls back to its vendor, then to auto.
_FAMILIES: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = (
    (re.compile(r"claude[-_.].*opus.*|opus|opusplan(-.*)?", re.I), "opus", "claude"),
    (re.compile(r"claude[-_.].*sonnet.*|sonnet", re.I), "sonnet", "claude"),
    (re.compile(r"claude[-_.].*haiku.*|haiku", re.I), "haiku", "claude"),
    (re.compile(r"claude([-_.].*)?", re.I), "claude", "claude"),
    (re.compile(r"gemini[-_.].*flash.*", re.I), "gemini-flash", "gemini"),
    (re.compile(r"gemini[-_.].*pro.*", re.I), "gemini-pro", "gemini"),
    (re.compile(r"gemini([-_.].*)?", re.I), "gemini", "gemini"),
)
# Names of these vendors that no chat model can stand in for.
_OTHER_KINDS: Final = re.compile(r"embed|imagen|image|tts|audio|live|veo", re.I)


def family(name: str) -> tuple[str, str] | None:
    """(family, vendor) of a bare name, None for any other. A name with a provider before it is meant as it is."""
    if "/" in name or _OTHER_KINDS.search(name):
        return None
    for pattern, found, vendor in _FAMILIES:
        if pattern.fullmatch(name.partition("[")[0]):
            return found, vendor
    return None


# Lines of models from the newest to the oldest, then what stands in for them. Where a member is gone or not served, the next one is
# asked; each once, and never a model outside of its line.
LINES: Final[tuple[tuple[str, ...], ...]] = (
    ("claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5", "claude-opus-4-1", "claude-sonnet-4-6",
     "claude-sonnet-4-5", "claude-sonnet-4"),
    ("claude-haiku-4-5", "claude-3-5-haiku", "claude-sonnet-4-5"),
    ("gpt-5.2", "gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-4.1", "gpt-4o"),
    ("gpt-4.1-mini", "gpt-4o-mini"),
    ("gemini-3.1-pro-preview", "gemini-3-pro-preview", "gemini-2.5-pro"),
    ("gemini-3-flash-preview", "gemini-2.5-flash", "gemini-2.5-flash-lite"),
    ("deepseek-v3.2", "deepseek-chat"),
)
# Names that their makers took back, and what took their place (the makers' own deprecation pages).
DEPRECATED: Final[dict[str, str]] = {
    "gemini-1.5-pro": "gemini-2.5-pro", "gemini-1.5-flash": "gemini-2.5-flash", "gemini-2.0-flash": "gemini-2.5-flash",
    "gemini-2.0-flash-lite": "gemini-2.5-flash-lite", "claude-3-opus-20240229": "claude-opus-4-1",
    "claude-3-opus-latest": "claude-opus-4-1", "claude-3-5-sonnet-latest": "claude-sonnet-4-5",
    "claude-3-5-sonnet-20241022": "claude-sonnet-4-5", "claude-3-7-sonnet-latest": "claude-sonnet-4-5",
    "gpt-4-turbo-preview": "gpt-4-turbo", "gpt-3.5-turbo": "gpt-4o-mini", "mistral-large": "mistral-large-latest",
    "mistral-small": "mistral-small-latest", "llama-3-8b": "llama3-8b-8192", "llama-3-70b": "llama3-70b-8192",
}
_DATED: Final = re.compile(r"-(?:20\d{6}|latest)$")


@lru_cache(maxsize=8192)
def plain(name: str) -> str:
    """Dots and hyphens alike, no date: how members of a line are compared."""
    return _DATED.sub("", name.lower().rpartition("/")[2]).replace(".", "-")


_PLACES: Final[dict[str, tuple[int, int]]] = {plain(member): (at, place) for at, line in reversed(list(enumerate(LINES)))
                                              for place, member in enumerate(line)}


@lru_cache(maxsize=4096)
def siblings(name: str) -> tuple[str, ...]:
    """Members of its line after this one, nearest first; empty for a model of no line."""
    found = _PLACES.get(plain(name))
    return LINES[found[0]][found[1] + 1:] if found is not None else ()


@lru_cache(maxsize=4096)
def successors(name: str) -> tuple[str, ...]:
    """Bare names that may be served where this one is not, in the form of ``plain``: what took its place, else its siblings. Other
    spellings of the name itself come first."""
    if "/" in name:
        return ()
    after = DEPRECATED.get(name)
    if after is not None:
        return (plain(after), *map(plain, siblings(after)))
    found = siblings(name)
    return (plain(name), *map(plain, found)) if found or plain(name) in _PLACES else ()
