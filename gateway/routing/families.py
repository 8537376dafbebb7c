"""Which family does a model name belong to that clients have built in? Coding agents send Claude and Gemini names always."""
import re
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
