"""How is a JSON Schema said in Google's subset of OpenAPI, and the reverse?

``parameters`` and ``responseSchema`` take few keywords, types in capitals and no references: a word too many fails the request.
Everything that can be said is kept, every node has a type, and a schema that refers to itself ends in a plain object.
https://ai.google.dev/api/caching#Schema
"""
from typing import Any, Final
from urllib.parse import unquote

from gateway.core.bounded import LruMap
from gateway.wire.gemini.schema import Json
from gateway.wire.lenient import dump

_TYPES: Final = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"})
_FORMATS: Final = {"STRING": frozenset({"date-time"}), "NUMBER": frozenset({"float", "double"}),
                   "INTEGER": frozenset({"int32", "int64"})}
_COUNTS: Final = {"STRING": ("minLength", "maxLength"), "ARRAY": ("minItems", "maxItems"),
                  "OBJECT": ("minProperties", "maxProperties")}
_LIMITS: Final = ("minimum", "maximum")
_BRANCHES: Final = ("anyOf", "oneOf")
MAX_DEPTH: Final = 24                            # levels below the root
MAX_NODES: Final = 4_000                         # references that refer to references grow without bound
MOST_REMEMBERED: Final = 16_384                  # bytes of a schema
_known: Final[LruMap[bytes, Json | None]] = LruMap(512)


def clean(schema: Any) -> Json:
    """Google's form of a JSON Schema."""
    return _Cleaner(schema).node(schema, 0, ())


def parameters(schema: Json | None) -> Json | None:
    """A function's parameters: an object at the top, None for one without properties (which the API refuses).

    Tools come with every request of a conversation, so what was made of one is remembered. It is shared: nobody may change it.
    """
    key = dump(schema or {})
    if len(key) > MOST_REMEMBERED:
        return _parameters(schema)
    if key not in _known:
        _known.put(key, _parameters(schema))
    return _known[key]


def _parameters(schema: Json | None) -> Json | None:
    made = clean(schema or {})
    if "anyOf" in made:
        made = _united(made["anyOf"])
    if made.get("type") != "OBJECT" or not made.get("properties"):
        return None
    made.pop("nullable", None)
    return made


def _united(branches: list[Json]) -> Json:
    """Alternatives at the top, where only an object may stand: all of their properties, none demanded but by all."""
    objects = [branch for branch in branches if branch.get("type") == "OBJECT"]
    properties = {name: inner for branch in objects for name, inner in branch.get("properties", {}).items()}
    required = [name for name in properties if all(name in branch.get("required", ()) for branch in objects)]
    out: Json = {"type": "OBJECT", "properties": properties}
    return out | {"required": required} if required else out


class _Cleaner:
    """One schema. ``trail``: the references that led to a node."""

    __slots__ = ("root", "n_nodes")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.n_nodes = 0

    def node(self, schema: Any, depth: int, trail: tuple[str, ...]) -> Json:
        self.n_nodes += 1
        if not isinstance(schema, dict):
            return {"type": "STRING"}                # ``true``: anything; text can say it
        schema, trail = self._referred(schema, trail)
        if depth > MAX_DEPTH or self.n_nodes > MAX_NODES:
            return _named(schema, {"type": "OBJECT"})
        schema = self._merged(schema, trail)
        kinds, nullable = _kinds(schema)
        branches = self._branches(schema)
        if branches is not None:
            return self._alternatives(schema, branches, nullable, depth, trail)
        if len(kinds) > 1:
            return self._alternatives({key: value for key, value in schema.items() if key in ("description", "title")},
                                      [{**schema, "type": kind} for kind in kinds], nullable, depth, trail)
        out = self._plain(schema, kinds[0] if kinds else _guessed(schema), depth, trail)
        if nullable:
            out["nullable"] = True
        return out

    # ------------------------------------------------------------------ putting together what is apart
    def _referred(self, schema: Json, trail: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        """What ``$ref`` points at, with what stands beside it; a circle ends as a plain object."""
        while isinstance(ref := schema.get("$ref"), str):
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            if ref in trail or not isinstance(found := self._at(ref), dict):
                return {"type": "object", **{key: beside[key] for key in ("description",) if key in beside}}, trail
            trail = (*trail, ref)
            schema = {**found, **beside}
        return schema, trail

    def _at(self, ref: str) -> Any:
        """A place of the schema itself (``#/$defs/Name``)."""
        if not ref.startswith("#"):
            return None
        place = self.root
        for step in ref[1:].strip("/").split("/"):
            if step == "":
                continue
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(place, list):
                place = place[int(step)] if step.isdecimal() and int(step) < len(place) else None
            else:
                place = place.get(step) if isinstance(place, dict) else None
        return place

    def _merged(self, schema: Json, trail: tuple[str, ...]) -> Json:
        """``allOf`` as one schema: properties and demands of all, else the first word counts."""
        parts = schema.get("allOf")
        if not isinstance(parts, list):
            return schema
        out = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts[:64]:
            self.n_nodes += 1
            if not isinstance(part, dict) or self.n_nodes > MAX_NODES:
                continue
            part = self._merged(*self._referred(part, trail))
            for key, value in part.items():
                if key == "properties" and isinstance(value, dict):
                    out[key] = {**value, **(out.get(key) or {})}
                elif key == "required" and isinstance(value, list):
                    out[key] = [*(out.get(key) or ()), *value]
                else:
                    out.setdefault(key, value)
        return out

    def _branches(self, schema: Json) -> list[Json] | None:
        """The alternatives, if there are any that say more than a demand on what is there already."""
        found = [branch for key in _BRANCHES for branch in schema.get(key) or () if isinstance(branch, dict)]
        if not found:
            return None
        if schema.get("properties") and not any(branch.keys() & {"properties", "$ref", "type", "allOf"} for branch in found):
            return None                              # "one of these is required": not to be said here
        return found

    def _alternatives(self, schema: Json, branches: list[Json], nullable: bool, depth: int, trail: tuple[str, ...]) -> Json:
        """``anyOf`` stands alone; one alternative beside null is that one, nullable."""
        around = {key: value for key, value in schema.items() if key not in _BRANCHES}
        if not around.keys() & {"properties", "items", "enum"}:
            around = {key: value for key, value in around.items() if key in ("description", "nullable")}
        rest = [branch for branch in branches if _kinds(branch) != ([], True)]
        nullable = nullable or len(rest) != len(branches)
        made: list[Json] = []
        for branch in rest:
            one = self.node({**around, **branch}, depth + 1, trail)
            made += one["anyOf"] if one.keys() == {"anyOf"} else [one]
        made = [one for i, one in enumerate(made) if one not in made[:i]]
        if len(made) == 1:
            return {**made[0], "nullable": True} if nullable else made[0]
        if not made:
            return {"type": "STRING", "nullable": True}
        if nullable:
            made = [{**one, "nullable": True} for one in made]
        return {"anyOf": made}

    # ------------------------------------------------------------------ one node
    def _plain(self, schema: Json, kind: str, depth: int, trail: tuple[str, ...]) -> Json:
        out = _named(schema, {"type": kind})
        wanted = schema.get("format")
        if isinstance(wanted, str) and wanted in _FORMATS.get(kind, ()):
            out["format"] = wanted
        for name in _COUNTS.get(kind, ()):
            if (n := _whole(schema.get(name))) is not None:
                out[name] = n
        if kind in ("NUMBER", "INTEGER"):
            _range(schema, kind, out)
        elif kind == "STRING":
            if isinstance(schema.get("pattern"), str):
                out["pattern"] = schema["pattern"]
        elif kind == "ARRAY":
            out["items"] = self.node(_items(schema), depth + 1, trail)
        elif kind == "OBJECT":
            self._properties(schema, out, depth, trail)
        _values(schema, kind, out)
        return out

    def _properties(self, schema: Json, out: Json, depth: int, trail: tuple[str, ...]) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return
        made = {name: self.node(inner, depth + 1, trail) for name, inner in properties.items() if inner is not False}
        out["properties"] = made
        required = schema.get("required")
        if isinstance(required, list) and (kept := [name for name in dict.fromkeys(map(str, required)) if name in made]):
            out["required"] = kept
        order = schema.get("propertyOrdering")
        if isinstance(order, list) and all(name in made for name in order):
            out["propertyOrdering"] = order


def _kinds(schema: Json) -> tuple[list[str], bool]:
    """The types as Google names them, and whether null is one."""
    given = schema.get("type")
    words = [str(word).upper() for word in (given if isinstance(given, list) else [given]) if word is not None]
    kinds = list(dict.fromkeys(word if word in _TYPES else "STRING" for word in words if word != "NULL"))
    nullable = "NULL" in words or schema.get("nullable") is True
    return kinds, nullable or (isinstance(schema.get("enum"), list) and None in schema["enum"])


def _guessed(schema: Json) -> str:
    """The type that a node must mean which names none."""
    if "properties" in schema or "additionalProperties" in schema or "patternProperties" in schema:
        return "OBJECT"
    if "items" in schema or "prefixItems" in schema:
        return "ARRAY"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and values:
        if all(isinstance(value, bool) for value in values):
            return "BOOLEAN"
        if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            return "INTEGER"
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            return "NUMBER"
    return "NUMBER" if schema.keys() & {"minimum", "maximum", "multipleOf"} else "STRING"


def _named(schema: Json, out: Json) -> Json:
    for name in ("title", "description"):
        if isinstance(schema.get(name), str) and schema[name]:
            out[name] = schema[name]
    return out


def _items(schema: Json) -> Any:
    """What the elements are; of a tuple, any of its places."""
    places = schema.get("prefixItems") or schema.get("items")
    if isinstance(places, list):
        return {"anyOf": places} if len(places) > 1 else places[0] if places else {}
    return places if isinstance(places, dict) else {}


def _values(schema: Json, kind: str, out: Json) -> None:
    """``const`` and ``enum``: only texts can be listed, other values are told in words."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list):
        return
    values = list(dict.fromkeys(v for v in values if isinstance(v, str))) if kind == "STRING" else \
        [v for v in values if v is not None]
    if not values:
        return
    if kind == "STRING":
        out["enum"] = values
    elif kind in ("NUMBER", "INTEGER", "BOOLEAN"):
        listed = "One of: " + ", ".join([str(value).lower() if isinstance(value, bool) else str(value) for value in values[:64]])
        out["description"] = f"{out['description']} ({listed})" if "description" in out else listed


def _range(schema: Json, kind: str, out: Json) -> None:
    for name in _LIMITS:
        if isinstance(value := schema.get(name), (int, float)) and not isinstance(value, bool):
            out[name] = value
    if kind == "INTEGER":
        for name, limit, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            value = schema.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                out.setdefault(limit, value + step)


def _whole(value: Any) -> int | None:
    """A count; protobuf writes 64 bit numbers as text."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# ---------------------------------------------------------------- the other way
def json_schema(schema: Any, depth: int = 0) -> Json:
    """Google's schema as a JSON Schema that any other provider takes."""
    if not isinstance(schema, dict) or depth > 64:
        return {}
    out: Json = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            out[key] = value.lower()
        elif key == "properties" and isinstance(value, dict):
            out[key] = {name: json_schema(inner, depth + 1) for name, inner in value.items()}
        elif key == "items":
            out[key] = json_schema(value, depth + 1)
        elif key in _BRANCHES and isinstance(value, list):
            out[key] = [json_schema(inner, depth + 1) for inner in value]
        elif key in _EVERY_COUNT:
            if (n := _whole(value)) is not None:
                out[key] = n
        elif key not in _OURS and not (key == "format" and value == "enum"):
            out[key] = value
    if schema.get("nullable") is True and isinstance(out.get("type"), str) and out["type"] != "null":
        out["type"] = [out["type"], "null"]
        if isinstance(out.get("enum"), list) and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
    return out


_OURS: Final = frozenset({"nullable", "propertyOrdering", "example"})
_EVERY_COUNT: Final = frozenset(name for names in _COUNTS.values() for name in names)
