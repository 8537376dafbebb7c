"""Which keys of the contract does this version not enforce yet? A limit is never silently ignored: it is refused.

A row is deleted when its key is enforced. ``[]`` stands for every entry of an array; a row on a whole table means each of its
keys that differs from the default.
"""
from collections.abc import Callable, Iterator
from typing import Any, Final

from gateway.config.decode import schema
from gateway.config.problems import Problems
from gateway.config.schema import Config, Table
from gateway.core.secret import Secret

Unless = Callable[[Any], bool]


def one_of(*values: Any) -> Unless:
    return lambda value: _plain(value) in values


# path -> (is this value fine?, what may be written now)
NOT_YET: Final[dict[str, tuple[Unless, str]]] = {}


def refuse(config: Config, problems: Problems) -> None:
    for pattern, (fine, instead) in NOT_YET.items():
        for path, value in at(config, pattern):
            for where in _set(path, value, fine):
                hint = "leave it out" if instead in ("nothing", "the defaults") else f"leave it out or write {instead}"
                problems.add(where, f"not available in this version; {hint}")


def at(config: Any, pattern: str) -> Iterator[tuple[str, Any]]:
    """Every (path, value) that a pattern of the table means."""
    found: list[tuple[str, Any]] = [("", config)]
    for step in pattern.split("."):
        name, each = step.removesuffix("[]"), step.endswith("[]")
        found = [(f"{path}.{name}" if path else name, getattr(value, name)) for path, value in found]
        if each:
            found = [(f"{path}[{index}]", item) for path, value in found for index, item in enumerate(value)]
    return iter(found)


def _set(path: str, value: Any, fine: Unless) -> Iterator[str]:
    if isinstance(value, Table):
        default = type(value)()
        yield from (f"{path}.{name}" for name in schema(type(value)) if getattr(value, name) != getattr(default, name))
    elif not fine(value):
        yield path


def _plain(value: Any) -> Any:
    return value.reveal() if isinstance(value, Secret) else value
