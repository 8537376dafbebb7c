"""What do an answer's headers say? Looked up by name in any case; a value is made text when somebody asks for it."""
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

# Lists that decide what the body is: lines of them add up. Of everything else that comes twice the first counts.
_LISTS: Final = frozenset({b"content-encoding", b"transfer-encoding"})


@lru_cache(maxsize=1_024)
def _key(name: str) -> bytes:
    return name.lower().encode("utf-8", "surrogateescape")


class Headers(Mapping[str, str]):
    """``fields`` by their names in small letters."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[bytes, bytes]) -> None:
        self.fields = fields

    def __getitem__(self, name: str) -> str:
        return self.fields[_key(name)].decode("utf-8", "surrogateescape")

    def get(self, name: str, default: Any = None) -> Any:
        value = self.fields.get(_key(name))
        return default if value is None else value.decode("utf-8", "surrogateescape")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _key(name) in self.fields

    def __iter__(self) -> Iterator[str]:
        return (name.decode("utf-8", "surrogateescape") for name in self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def merged(head: bytes) -> dict[bytes, bytes]:
    """The fields of a head in which a name comes more than once. The parser has found it well formed."""
    fields: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n")[1:-2]:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        earlier = fields.setdefault(name, value)
        if earlier is not value and name in _LISTS:
            fields[name] = earlier + b", " + value
    return fields
