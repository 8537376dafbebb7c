"""The settings reference says all there is."""
import typing

import msgspec

from gateway.config.decode import peel, schema
from gateway.config.reference import reference
from gateway.config.schema import Config, Table


def tables(kind: type[Table], path: str = "") -> typing.Iterator[tuple[str, type[Table]]]:
    for name, (hint, _) in schema(kind).items():
        base, _ = peel(hint)
        base = typing.get_args(base)[0] if typing.get_origin(base) is tuple else base
        if isinstance(base, type) and issubclass(base, Table):
            where = f"{path}.{name}" if path else name
            yield where, base
            yield from tables(base, where)


def test_every_key_is_described():
    for path, kind in tables(Config):
        for field in msgspec.structs.fields(kind):
            base, metas = peel(field.type)
            assert any(meta.description for meta in metas), f"{path}.{field.name}"


def test_every_table_and_key_is_in_the_reference():
    text = reference()
    for path, kind in tables(Config):
        assert f"[{path}]" in text
        for name in schema(kind):
            assert f"| `{name}` |" in text


def test_defaults_are_shown_as_they_are_written():
    text = reference()
    for row in ('| `host` | text | `"127.0.0.1"` |', "| `port` | integer | `8788` |", "| `rescue` | true/false | `true` |",
                '| `models` | array of text | `["*"]` |', "| `name` | text | required |"):
        assert row in text
