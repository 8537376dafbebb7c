"""What can be set? The settings reference, made from the schema: a table per section, a row per key."""
import typing
from typing import Any, Literal

import msgspec
from msgspec import NODEFAULT

from gateway.config.decode import peel, schema
from gateway.config.schema import Config, Table
from gateway.core.secret import Secret

_NAMES = {str: "text", int: "integer", float: "number", bool: "true/false", Secret: "text (secret)"}


def reference() -> str:
    """Markdown."""
    sections: list[str] = []
    for name, (hint, _) in schema(Config).items():
        _section(name, hint, sections)
    return "\n\n".join(sections) + "\n"


def _section(path: str, hint: Any, sections: list[str]) -> None:
    base, _ = peel(hint)
    many = typing.get_origin(base) is tuple
    kind = typing.get_args(base)[0] if many else base
    if not (isinstance(kind, type) and issubclass(kind, Table)):
        return
    rows, inner = [], []
    for field in msgspec.structs.fields(kind):
        base, metas = peel(field.type)
        item = typing.get_args(base)[0] if typing.get_origin(base) is tuple else base
        if isinstance(item, type) and issubclass(item, Table):
            inner.append((f"{path}.{field.name}", field.type))
        text = " ".join(meta.description for meta in metas if meta.description)
        rows.append(f"| `{field.name}` | {_type(base)} | {_default(field)} | {text.replace('|', chr(92) + '|')} |")
    head = f"[[{path}]]" if many else f"[{path}]"
    sections.append("\n".join([f"## `{head}`", "", (kind.__doc__ or "").split("\n")[0], "",
                               "| key | type | default | |", "|---|---|---|---|", *rows]))
    for name, one in inner:
        _section(name, one, sections)


def _type(base: Any) -> str:
    origin, args = typing.get_origin(base), typing.get_args(base)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in args)
    if origin is tuple:
        return f"array of {_type(peel(args[0])[0])}"
    if isinstance(base, type) and issubclass(base, Table):
        return "table"
    return _NAMES.get(base, "table")


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default_factory() if field.default_factory is not NODEFAULT else field.default
    if value is NODEFAULT:
        return "required"
    if isinstance(value, Secret):
        value = value.reveal()
    if value is None or value in ("", (), {}) or isinstance(value, Table):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"
