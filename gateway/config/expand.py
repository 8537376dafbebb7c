"""What does ``${env:NAME}``, ``${env:NAME:-default}`` or ``${file:/path}`` in a string stand for?

Strings are expanded after parsing, so a value can never change the structure of the configuration, and only once, so a value
that looks like a placeholder stays what it is.
"""
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FILE_LIMIT: Final = 1 << 20
_PLACE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ExpandError(ValueError):
    """A placeholder that cannot be expanded; says what to do."""


def expand(text: str, env: Mapping[str, str]) -> str:
    """The text with its placeholders replaced. Raises ExpandError."""
    if "${" not in text:
        return text
    if "${" in _PLACE.sub("", text):
        raise ExpandError('a placeholder is not closed; write "${env:NAME}"')
    return _PLACE.sub(lambda found: _value(found[1], env), text)


def _value(place: str, env: Mapping[str, str]) -> str:
    scheme, colon, rest = place.partition(":")
    if scheme == "env" and colon:
        return _variable(rest, env)
    if scheme == "file" and colon:
        return _file(rest)
    if not colon and _NAME.fullmatch(place):
        raise ExpandError(f"${{{place}}} is no placeholder; write ${{env:{place}}}")
    raise ExpandError("unknown placeholder; write ${env:NAME}, ${env:NAME:-default} or ${file:/path}")


def _variable(rest: str, env: Mapping[str, str]) -> str:
    name, has_default, default = rest.partition(":-")
    if not _NAME.fullmatch(name):
        raise ExpandError(f"{name!r} is no name of an environment variable")
    value = env.get(name)
    if value is None or (value == "" and has_default):
        if not has_default:
            raise ExpandError(f"environment variable {name} is not set; set it, or write ${{env:{name}:-default}}")
        return default
    return value


def _file(name: str) -> str:
    path = Path(name)
    if not path.is_absolute():
        raise ExpandError(f"${{file:{name}}} must name an absolute path")
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as e:
        raise ExpandError(f"cannot read {name}: {(e.strerror or 'not readable').lower()}") from None
    if len(data) > FILE_LIMIT:
        raise ExpandError(f"{name} is larger than {FILE_LIMIT} bytes")
    try:
        return data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ExpandError(f"{name} is not UTF-8 text") from None
