"""Does the parsed TOML have the shape of the schema? A ``Config``, and every problem of shape on the way.

msgspec's own conversion stops at the first problem; an operator wants all of them. So the walk is ours and the types, bounds
and documentation are the schema's. What is bad is replaced by its default, so that the rest can be checked as well.
"""
import datetime
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import NODEFAULT, Meta

from gateway.config.expand import ExpandError, expand
from gateway.config.problems import Problems, nearest
from gateway.config.schema import ComboStep, Config, KeyTable, ModelTable, Table
from gateway.core.secret import Secret

T = TypeVar("T", bound=Table)
_SHOWN: Final = 60
# tables that may be written as their name
_SHORT: Final[dict[type[Table], str]] = {ModelTable: "id", KeyTable: "key", ComboStep: "target"}
_NOUN: Final = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false", dict: "a table",
                list: "an array", Secret: "text in quotes", tuple: "an array"}


class Decoder:
    """One walk. ``secrets``: values from the environment and from files that stand in free fields (headers, vars)."""

    def __init__(self, env: Mapping[str, str], problems: Problems) -> None:
        self.env = env
        self.problems = problems
        self.secrets: list[str] = []

    def config(self, raw: dict[str, Any]) -> Config:
        return self.table(raw, Config, "")

    def table(self, raw: Any, kind: type[T], path: str) -> T:
        fields = schema(kind)
        if not isinstance(raw, dict):
            self.problems.add(path, f"must be a table, not {noun(raw)}")
            raw = {}
        for name in raw:
            if name not in fields:
                self.problems.add(join(path, name), unknown(name, kind))
        values: dict[str, Any] = {}
        for name, (hint, required) in fields.items():
            if name in raw:
                value = self.value(raw[name], hint, join(path, name))
                if value is not NODEFAULT:
                    values[name] = value
            elif required:
                self.problems.add(join(path, name), "is missing")
            if required and name not in values:
                values[name] = ""
        return kind(**values)

    def value(self, raw: Any, hint: Any, path: str) -> Any:
        """The value, or NODEFAULT after a problem."""
        base, metas = peel(hint)
        if isinstance(raw, str) and raw in words(hint):
            return raw
        origin = typing.get_origin(base)
        if isinstance(base, type) and issubclass(base, Table):
            if base in _SHORT and isinstance(raw, str):
                value = self.value(raw, schema(base)[_SHORT[base]][0], path)
                return base(**{_SHORT[base]: value}) if value is not NODEFAULT else self.nameless(base)
            return self.table(raw, base, path)
        if origin is tuple:
            return self.array(raw, typing.get_args(base)[0], path)
        if origin is dict or base is Any:
            return self.free(raw, base, path)
        return self.leaf(raw, base, metas, path)

    def nameless(self, kind: type[Table]) -> Table:
        """After a problem with the one word that was written: a table that keeps its place."""
        name = _SHORT[kind]
        return kind(**{name: ""} if schema(kind)[name][1] else {})

    def array(self, raw: Any, item: Any, path: str) -> Any:
        if not isinstance(raw, list):
            self.problems.add(path, f"must be an array, not {noun(raw)}; write [ … ]")
            return NODEFAULT
        # A bad entry keeps its place, so that later problems name the right one.
        blank = Secret("") if peel(item)[0] is Secret else ""
        values = (self.value(entry, item, f"{path}[{index}]") for index, entry in enumerate(raw))
        return tuple(blank if value is NODEFAULT else value for value in values)

    def free(self, raw: Any, base: Any, path: str) -> Any:
        """Tables with names of the operator's choice, and what is not enforced yet."""
        strings_only = base == dict[str, str]
        if base is not Any and not isinstance(raw, dict):
            self.problems.add(path, f"must be a table, not {noun(raw)}")
            return NODEFAULT
        if isinstance(raw, dict):
            out: dict[str, Any] = {}
            for name, entry in raw.items():
                if strings_only and not isinstance(entry, str):
                    self.problems.add(join(path, name), f"must be text in quotes, not {noun(entry)}")
                else:
                    out[name] = self.free(entry, Any, join(path, name))
            return out
        if isinstance(raw, list):
            return [self.free(entry, Any, f"{path}[{index}]") for index, entry in enumerate(raw)]
        if isinstance(raw, str):
            text = self.text(raw, path)
            if text is not None and text != raw:
                self.secrets.append(text)
            return raw if text is None else text
        return raw

    def leaf(self, raw: Any, base: Any, metas: list[Meta], path: str) -> Any:
        expanded = False
        if isinstance(raw, str):
            text = self.text(raw, path)
            if text is None:
                return NODEFAULT
            expanded, raw = text != raw, text
        elif isinstance(raw, (datetime.date, datetime.datetime)):
            raw = raw.isoformat()
        value = convert(raw, base, expanded)
        if value is NODEFAULT:
            self.problems.add(path, wrong(raw, base, hidden=expanded or base is Secret))
            return NODEFAULT
        if broken := bound(value, metas):
            self.problems.add(path, broken)
            return NODEFAULT
        return value

    def text(self, raw: str, path: str) -> str | None:
        try:
            return expand(raw, self.env)
        except ExpandError as e:
            self.problems.add(path, str(e))
            return None


@functools.cache
def schema(kind: type[Table]) -> dict[str, tuple[Any, bool]]:
    """name -> (type, must it be given?)"""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: (hints[field.name], field.default is NODEFAULT and field.default_factory is NODEFAULT)
            for field in msgspec.structs.fields(kind)}


def peel(hint: Any) -> tuple[Any, list[Meta]]:
    """The bare type and its bounds: out of Annotated, and out of ``X | None``."""
    metas: list[Meta] = []
    while True:
        if typing.get_origin(hint) is Annotated:
            metas += [meta for meta in hint.__metadata__ if isinstance(meta, Meta)]
            hint = hint.__origin__
        elif typing.get_origin(hint) in (typing.Union, types.UnionType):
            hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        else:
            return hint, metas


def words(hint: Any) -> tuple[str, ...]:
    """Of ``int | Literal["auto"]``: the words that may stand instead."""
    while typing.get_origin(hint) is Annotated:
        hint = hint.__origin__
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return ()
    return next((typing.get_args(arg) for arg in typing.get_args(hint) if typing.get_origin(arg) is Literal), ())


def convert(raw: Any, base: Any, expanded: bool) -> Any:
    """A leaf of the wanted type, or NODEFAULT. What was expanded is text, and may be meant as a number."""
    if typing.get_origin(base) is Literal:
        return raw if raw in typing.get_args(base) and isinstance(raw, str) else NODEFAULT
    if base in (str, Secret):
        return base(raw) if isinstance(raw, str) else NODEFAULT
    if expanded and isinstance(raw, str):
        try:
            return msgspec.convert(raw.strip(), base, strict=False)
        except msgspec.ValidationError:
            return NODEFAULT
    if base is bool or isinstance(raw, bool):
        return raw if base is bool and isinstance(raw, bool) else NODEFAULT
    if base is int:
        return raw if isinstance(raw, int) else NODEFAULT
    return float(raw) if isinstance(raw, (int, float)) and math.isfinite(raw) else NODEFAULT


def bound(value: Any, metas: list[Meta]) -> str:
    """What is wrong with the size of a value, or nothing."""
    for meta in metas:
        if meta.ge is not None and value < meta.ge:
            return f"must be at least {meta.ge:.12g}"
        if meta.le is not None and value > meta.le:
            return f"must be at most {meta.le:.12g}"
        if meta.min_length is not None and len(value) < meta.min_length:
            return "must not be empty"
        if meta.max_length is not None and len(value) > meta.max_length:
            return f"must be at most {meta.max_length} characters long"
    return ""


def wrong(raw: Any, base: Any, hidden: bool) -> str:
    if typing.get_origin(base) is Literal:
        choices = typing.get_args(base)
        what = "this value" if hidden else repr(raw)[:_SHOWN]
        guess = nearest(raw, choices) if isinstance(raw, str) and not hidden else ""
        return f"{what} is unknown; use one of {', '.join(choices)}{guess}"
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return f"must be {_NOUN[base]}, not {raw!r}"
    shown = f" {raw!r}"[:_SHOWN] if isinstance(raw, str) and not hidden else ""
    return f"must be {_NOUN[base]}, not {noun(raw)}{shown}"


def noun(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return next((name for kind, name in ((bool, "true or false"), (int, "a whole number"), (float, "a number"),
                                         (dict, "a table"), (list, "an array")) if isinstance(value, kind)), "a date")


def unknown(name: str, kind: type[Table]) -> str:
    """An unknown key: the nearest known one, or the table that it belongs to."""
    guess = nearest(name, schema(kind))
    if guess:
        return "unknown key" + guess
    homes = [table for table, (hint, _) in schema(Config).items()
             if isinstance(home := peel(hint)[0], type) and issubclass(home, Table) and name in schema(home)]
    return f"unknown key; it belongs to [{homes[0]}]" if homes else "unknown key"


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
