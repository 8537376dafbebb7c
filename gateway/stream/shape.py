"""What does a JSON schema declare at one place: which types, and what lies below? Only as far as repair needs to know.

Followed are type unions, anyOf / oneOf, an allOf of one, local references, properties, additionalProperties, items and
prefixItems. Everything else is "unknown", and what is unknown is left alone.
"""
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_FUEL = 32          # schemas looked at for one place: references may form circles
_UNKNOWN = "?"


class Shape:
    """One place of a schema. ``kinds`` are the declared types in lower case; "?" among them says that more is possible."""
    __slots__ = ("kinds", "choices", "array", "object", "_arrays", "_objects", "_root")

    def __init__(self, schema: Any, root: Any) -> None:
        branches = _branches(schema, root)
        kinds: set[str] = set()
        self._arrays: list[dict[str, Any]] = []
        self._objects: list[dict[str, Any]] = []
        self._root = root
        self.choices: list[Any] = []
        for branch in branches:
            own = _kinds(branch)
            kinds |= own
            if "array" in own or "items" in branch:
                self._arrays.append(branch)
            if "object" in own or "properties" in branch:
                self._objects.append(branch)
            if isinstance(branch.get("enum"), list):
                self.choices += branch["enum"][:256]
        self.kinds = kinds
        text_allowed = "string" in kinds or _UNKNOWN in kinds
        self.array = "array" in kinds and not text_allowed
        self.object = "object" in kinds and not text_allowed

    def key(self, name: str) -> "Shape":
        """The place below a property."""
        if len(self._objects) != 1:
            return ANY
        below = self._objects[0]
        properties = below.get("properties")
        child = properties.get(name) if isinstance(properties, dict) else None
        if child is None:
            child = below.get("additionalProperties")
        return Shape(child, self._root) if isinstance(child, dict) else ANY

    def item(self, index: int) -> "Shape":
        """The place of an array's element."""
        if len(self._arrays) != 1:
            return ANY
        below = self._arrays[0]
        child, fixed = below.get("items"), below.get("prefixItems")
        if isinstance(child, list):
            fixed, child = child, below.get("additionalItems")
        if isinstance(fixed, list) and index < len(fixed):
            child = fixed[index]
        return Shape(child, self._root) if isinstance(child, dict) else ANY

    def wants(self, first: str) -> bool:
        """May a string that begins with ``first`` stand for the container that is declared here?"""
        return (first == "[" and self.array) or (first == "{" and self.object)


def shape(schema: Mapping[str, Any] | None) -> Shape:
    """The root of a tool's parameters."""
    return ANY if schema is None else Shape(schema, schema)


def _branches(schema: Any, root: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = [schema]
    for _ in range(_FUEL):
        if not waiting:
            return found or [{}]
        here = waiting.pop()
        if not isinstance(here, dict):
            found.append({})
            continue
        below = None
        if isinstance(here.get("$ref"), str):
            below = [_pointed(here["$ref"], root)]
        elif "type" not in here:
            below = here.get("anyOf") or here.get("oneOf") or here.get("allOf")
            if below is here.get("allOf") and isinstance(below, list) and len(below) != 1:
                below = None
        if isinstance(below, list) and below:
            waiting += below
        else:
            found.append(here)
    return [{}]


def _pointed(reference: str, root: Any) -> Any:
    if reference != "#" and not reference.startswith("#/"):
        return None
    here = root
    for step in reference[2:].split("/")[:16] if len(reference) > 1 else ():
        if not isinstance(here, dict):
            return None
        here = here.get(unquote(step).replace("~1", "/").replace("~0", "~"))
    return here


def _kinds(branch: dict[str, Any]) -> set[str]:
    declared = branch.get("type")
    if isinstance(declared, str):                 # Gemini's declarations write the types in capitals
        return {declared.lower()}
    if isinstance(declared, list):
        return {kind.lower() for kind in declared if isinstance(kind, str)} or {_UNKNOWN}
    return {_UNKNOWN}


ANY = Shape(None, None)
