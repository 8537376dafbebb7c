"""JSON Schema in Google's terms, and back."""
import pytest

from gateway.wire.gemini.openapi import MAX_NODES, MOST_REMEMBERED, clean, json_schema, parameters


def object_of(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(("schema", "said"), [
    ({"type": "string", "format": "email", "minLength": 1, "$comment": "x", "x-own": 1}, {"type": "STRING", "minLength": 1}),
    ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 2}, {"type": "INTEGER", "minimum": 1, "maximum": 8}),
    ({"type": "number", "minimum": 0.5, "default": 1}, {"type": "NUMBER", "minimum": 0.5}),
    ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
    ({"const": 5}, {"type": "INTEGER", "description": "One of: 5"}),
    ({"enum": [True]}, {"type": "BOOLEAN", "description": "One of: true"}),
    ({"enum": ["a", "a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
    ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
    ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"}, {"type": "STRING", "description": "d", "nullable": True}),
    ({"oneOf": [{"type": "string"}, {"type": "object", "properties": {"a": {}}}]},
     {"anyOf": [{"type": "STRING"}, {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}]}),
    ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
    ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "uniqueItems": True},
     {"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}}),
    ({"items": {"type": "boolean"}, "maxItems": 3}, {"type": "ARRAY", "items": {"type": "BOOLEAN"}, "maxItems": 3}),
    ({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}}],
      "type": "object", "required": ["b", "gone"]},
     {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "INTEGER"}}, "required": ["b", "a"]}),
    ({"type": "null"}, {"type": "STRING", "nullable": True}), ({"type": "file"}, {"type": "STRING"}), (True, {"type": "STRING"}),
    ({"properties": {"type": {"type": "string"}, "$ref": {"type": "integer"}}},
     {"type": "OBJECT", "properties": {"type": {"type": "STRING"}, "$ref": {"type": "INTEGER"}}})])
def test_everything_that_can_be_said_is_said(schema, said):
    assert clean(schema) == said


def test_references_are_put_in_place_and_circles_end():
    schema = {"$defs": {"Node": object_of(next={"$ref": "#/$defs/Node"}, v={"$ref": "#/definitions/a~1b"})},
              "definitions": {"a/b": {"type": "number"}}, **object_of(root={"$ref": "#/$defs/Node", "description": "here"}, lost={"$ref": "#/no"})}
    made = clean(schema)["properties"]
    assert made["root"]["description"] == "here"
    assert made["root"]["properties"] == {"next": {"type": "OBJECT"}, "v": {"type": "NUMBER"}}
    assert made["lost"] == {"type": "OBJECT"}


def test_references_that_multiply_are_bounded():
    schema = {"$defs": {f"d{i}": object_of(**{f"p{j}": {"$ref": f"#/$defs/d{i + 1}"} for j in range(8)}) for i in range(20)},
              "$ref": "#/$defs/d0"}

    def size(node):
        return 1 + sum(map(size, node.get("properties", {}).values()))
    assert size(clean(schema)) < 10 * MAX_NODES


def test_parameters_are_an_object_or_nothing():
    assert parameters(None) is None and parameters({"type": "object"}) is None and parameters({"type": "string"}) is None
    united = parameters({"anyOf": [{**object_of(a={"type": "string"}), "required": ["a"]},
                                   {**object_of(a={"type": "string"}, b={"type": "integer"}), "required": ["a", "b"]}]})
    assert united == {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "INTEGER"}}, "required": ["a"]}


def test_what_was_made_of_a_tool_serves_its_next_request():
    def tool(text):
        return object_of(a={"type": "string", "description": text})

    first = parameters(tool("x"))
    assert parameters(tool("x")) is first and parameters(tool("y")) != first
    large = tool("x" * MOST_REMEMBERED)
    assert parameters(large) == parameters(large) and parameters(large) is not parameters(large)


def test_alternatives_that_only_demand_are_dropped():
    schema = {**object_of(a={"type": "string"}, b={"type": "string"}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert clean(schema) == {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}}}


def test_googles_schema_as_json_schema():
    own = {"type": "OBJECT", "propertyOrdering": ["a"], "properties": {
        "a": {"type": "STRING", "enum": ["x"], "format": "enum", "nullable": True},
        "b": {"type": "ARRAY", "items": {"type": "INTEGER"}, "maxItems": "3"}, "c": {"anyOf": [{"type": "STRING"}]}}}
    assert json_schema(own) == {"type": "object", "properties": {
        "a": {"type": ["string", "null"], "enum": ["x", None]}, "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        "c": {"anyOf": [{"type": "string"}]}}}
