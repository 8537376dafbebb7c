"""How is a configuration shown without its secrets? As a table of paths and values, and as its text.

In the table a secret is ``***``; that one was changed is found by comparing, never by showing. In the text every string below a
secret's name is replaced; a text in which one would still be readable is not shown at all.
"""
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT

from gateway.config.schema import Config, Table
from gateway.core.redact import mask
from gateway.core.secret import Secret

HIDDEN: Final = "***"
_SECRET: Final = re.compile(r"key|secret|token|password|credential|auth|cookie|sha256|proxy", re.I)
_PLAIN: Final = frozenset({"auth", "max_tokens", "request_max_tokens", "token_url", "first_token_s"})
_REFERENCE: Final = re.compile(r"\$\{(?:env:\w+|file:[^}]+)\}")
_USERINFO: Final = re.compile(r"(?<=://)[^/@\s\"']+@")

Flat = dict[str, tuple[str, str]]                    # path -> (what is shown, what is compared)


def flat(config: Config, secrets: tuple[str, ...]) -> Flat:
    """Everything that differs from the defaults."""
    out: Flat = {}
    _walk(config, Config(), "", False, secrets, out)
    return out


def _walk(value: Any, usual: Any, path: str, hidden: bool, secrets: tuple[str, ...], out: Flat) -> None:
    if isinstance(value, Table):
        for name in value.__struct_fields__:
            inner, default = getattr(value, name), _usual(value, usual, name)
            if inner != default and inner is not None:
                _walk(inner, default, f"{path}.{name}" if path else name, hidden or _hides(name), secrets, out)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _walk(inner, None, f"{path}.{name}", hidden or _hides(str(name)), secrets, out)
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Table, Mapping, Secret)) for item in value):
        for index, inner in enumerate(value):
            _walk(inner, None, f"{path}[{index}]", hidden, secrets, out)
    else:
        out[path] = _leaf(value, hidden, secrets)


def _usual(value: Table, usual: Any, name: str) -> Any:
    """What a field is when nobody writes it."""
    return getattr(usual, name) if type(usual) is type(value) else _defaults(type(value))[name]


@cache
def _defaults(kind: type[Table]) -> dict[str, Any]:
    """None where a field has none."""
    return {field.name: field.default if field.default is not NODEFAULT else
            field.default_factory() if field.default_factory is not NODEFAULT else None for field in msgspec.structs.fields(kind)}


def _leaf(value: Any, hidden: bool, secrets: tuple[str, ...]) -> tuple[str, str]:
    if isinstance(value, Secret):
        return HIDDEN if value else "", value.reveal()
    text = msgspec.json.encode(value, enc_hook=str).decode()
    if not isinstance(value, (str, list, tuple)):
        return text, text
    if hidden and value:
        return HIDDEN, text
    shown = _USERINFO.sub(HIDDEN + "@", text)
    for secret in secrets:
        if 3 < len(secret) <= len(shown) and secret in shown:
            shown = shown.replace(secret, HIDDEN)
    return shown, text


def _hides(name: str) -> bool:
    return name not in _PLAIN and _SECRET.search(name) is not None and name not in ("keys", "api_keys")


class Edit(msgspec.Struct, frozen=True):
    """One difference; null = it is not there."""
    path: str
    before: str | None
    after: str | None


def changes(old: Flat, new: Flat) -> list[Edit]:
    """What one configuration says otherwise than the other, by path."""
    found = []
    for path in dict.fromkeys((*old, *new)):
        before, after = old.get(path), new.get(path)
        if before is None or after is None or before[1] != after[1]:
            told = after[0] if after else None
            if before and after and before[0] == after[0]:
                told = f"{after[0]} (another)"
            found.append(Edit(path, before[0] if before else None, told))
    return found


def masked_text(text: str, secrets: tuple[str, ...]) -> str | None:
    """The same TOML with secrets replaced; None where that cannot be done for sure."""
    try:
        hidden = set(_strings(tomllib.loads(text), False)) | {secret for secret in secrets if len(secret) > 3}
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    hidden = {value for value in hidden if not _REFERENCE.fullmatch(value)}
    for value in sorted(hidden, key=len, reverse=True):
        for quote in ('"', "'"):
            text = text.replace(f"{quote}{value}{quote}", f"{quote}{HIDDEN}{quote}")
        if len(value) > 7:
            text = text.replace(value, HIDDEN)
    text = "\n".join(_comment(line) for line in _USERINFO.sub(HIDDEN + "@", text).split("\n"))
    try:
        left = [value for value in _strings(tomllib.loads(text), False) if value != HIDDEN and not _REFERENCE.fullmatch(value)
                and HIDDEN not in value]
    except tomllib.TOMLDecodeError:
        return None
    return None if left else text


def _strings(value: Any, hidden: bool) -> Iterator[str]:
    """Every text below a secret's name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("keys", "api_keys"):
                yield from _listed(inner)
            else:
                yield from _strings(inner, hidden or _hides(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, hidden)
    elif hidden and isinstance(value, str) and value:
        yield value


def _listed(value: Any) -> Iterator[str]:
    """Keys may be texts or tables in which one field is the key."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str) and item:
            yield item
        else:
            yield from _strings(item, False)


def _comment(line: str) -> str:
    """A comment may be a key that was taken out."""
    at = line.find("#")
    return line if at < 0 else line[:at] + mask(line[at:])
