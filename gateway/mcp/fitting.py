"""How does a long answer get into a model's window? Its longest lists and texts are cut to halves until it fits, and it says so."""
from collections.abc import Iterator
from typing import Any, Final

import msgspec

MOST_BYTES: Final = 100_000
CUT: Final = "truncated"
ROUNDS: Final = 200
LEAST: Final = 200                               # characters of a text that is worth cutting


def fitted(plain: bytes, most: int = MOST_BYTES) -> bytes:
    """The same JSON in at most ``most`` bytes; what was cut is named in ``truncated``, as path: how much of how much is there."""
    if len(plain) <= most:
        return plain
    value = msgspec.json.decode(plain)
    root = value if isinstance(value, dict) else {"result": value}
    cut: dict[str, tuple[dict[str, Any], str, int]] = {}
    for _ in range(ROUNDS):
        found = max(_parts(root, ""), key=lambda part: part[0], default=None)
        if found is None:
            break
        _, path, holder, name = found
        part = holder[name]
        cut.setdefault(path, (holder, name, len(part)))
        holder[name] = part[:len(part) // 2]
        shown = {path: f"{len(holder[name])} of {n}" for path, (holder, name, n) in cut.items()}
        data = msgspec.json.encode({**root, CUT: shown})
        if len(data) <= most:
            return data
    return msgspec.json.encode({CUT: {"": f"the answer had {len(plain)} bytes, more than {most}; ask for less"}})


def _parts(value: Any, path: str) -> Iterator[tuple[int, str, dict[str, Any], str]]:
    """(bytes, path, holder, name) of every list and text that can be cut."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        where = f"{path}.{name}" if path else name
        if isinstance(inner, str) and len(inner) > LEAST:
            yield len(inner), where, value, name
        elif isinstance(inner, list) and inner:
            yield len(msgspec.json.encode(inner)), where, value, name
        elif isinstance(inner, dict):
            yield from _parts(inner, where)
