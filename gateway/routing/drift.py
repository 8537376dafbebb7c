"""Does an upstream serve another model than it was asked for? Names are compared as what they mean, not as they are spelled.

A provider's prefix, a tag such as ``:latest``, a date where only one of both has one, a file's ending and quantisation are
spelling; another size, generation or dated snapshot is another model.
"""
import re
from functools import lru_cache
from typing import Final

NAME_CHARS: Final = 200
_PREFIX: Final = re.compile(r"(?:[a-z]+\.)+(?=[a-z])")               # us.anthropic.claude-…
_TAG: Final = re.compile(r"(?:[-:@](?:latest|free|nitro|floor|exacto|online|beta|extended|default)|-v\d+(?::\d+)?|:0)$")
_FILE: Final = re.compile(r"\.gguf$|[-._:](?:i?q\d(?:[._]\w+)*|bf16|f16|fp16|fp8|int8|int4|awq|gptq|mlx)$")
# 2024-08-06, 20241022, 08-2024, 05-06, 0613, 2411, 001
_DATE: Final = re.compile(r"[-@_](20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|[01]\d-[0-3]\d|[01]\d[0-3]\d|2\d[01]\d|00\d)$")
_SPELLING: Final = re.compile(r"[^a-z0-9]+")


def drifted(asked: str, served: str) -> bool:
    """Is ``served`` another model than ``asked``? A name that was not said is no other one."""
    return bool(served) and served != asked and _differ(asked[:NAME_CHARS], served[:NAME_CHARS])


@lru_cache(maxsize=4_096)
def _differ(asked: str, served: str) -> bool:
    (name, date), (other, other_date) = plain(asked), plain(served)
    return name != other or bool(date and other_date and date != other_date)


def plain(name: str) -> tuple[str, str]:
    """(what is meant, its date or "")."""
    name = name.lower().strip().rpartition("/")[2]
    name = _PREFIX.sub("", name, count=1)
    date, before = "", ""
    while name != before:
        before = name
        name = _FILE.sub("", _TAG.sub("", name))
        found = _DATE.search(name)
        if found is not None:
            date, name = date or found[1], name[:found.start()]
    return _SPELLING.sub("", name), _SPELLING.sub("", date)
