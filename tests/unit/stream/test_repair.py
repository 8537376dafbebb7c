"""Arguments are mended where there is no doubt, and stay as they came where there is."""
import json
from typing import Any

import pytest

from gateway.stream.json_text import loose, span
from gateway.stream.repair import repair

ARRAY, OBJECT, STRING = {"type": "array"}, {"type": "object"}, {"type": "string"}


def of(schema: Any, **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, **root}


@pytest.mark.parametrize("schema", [
    of(ARRAY), of({"type": ["array", "null"]}), of({"anyOf": [ARRAY, {"type": "null"}]}), of({"oneOf": [{"type": "null"}, ARRAY]}),
    of({"allOf": [ARRAY]}), of({"$ref": "#/$defs/list"}, **{"$defs": {"list": ARRAY}}),
    of({"$ref": "#/definitions/a~1b"}, definitions={"a/b": {"anyOf": [{"$ref": "#/definitions/c"}]}, "c": ARRAY}),
    of({"type": "ARRAY"}), {"type": "object", "additionalProperties": ARRAY}, {"properties": {"v": ARRAY}},
])
def test_a_string_where_an_array_is_declared_becomes_the_array(schema: dict[str, Any]) -> None:
    assert repair('{"v": "[{\\"step\\": 1.0}]", "w": 1}', schema) in (
        '{"v": [{"step": 1.0}], "w": 1}', '{"v": [{"step": 1.0}], "w": 1}')


@pytest.mark.parametrize("schema", [
    of(STRING), of({"type": ["array", "string"]}), of({"anyOf": [ARRAY, STRING]}), of({}), of(True), of({"enum": ["[1]"]}), of(OBJECT), {},
    {"type": "object"}, of({"$ref": "#/$defs/missing"}), of({"$ref": "https://example.org/list"}), of({"$ref": "#/properties/v"}),
    of({"allOf": [ARRAY, STRING]}), of({"type": "integer"}), None,
])
def test_a_string_where_it_may_be_meant_stays(schema: dict[str, Any] | None) -> None:
    assert repair('{"v": "[1]"}', schema) == '{"v": "[1]"}'


@pytest.mark.parametrize("value", ['"[1"', '"[1] x"', '"{}"', '"text"', '""', '"1"', "1", "true", "null", '"[NaN]"', "[1]"])
def test_what_does_not_parse_to_the_declared_type_stays(value: str) -> None:
    assert repair(f'{{"v": {value}}}', of(ARRAY)) == f'{{"v": {value}}}'


def test_nested_places_are_mended_too() -> None:
    schema = of({"type": "array", "items": of(ARRAY)})
    assert json.loads(repair('{"v": [{"v": "[1]"}, {"w": "[1]"}]}', schema)) == {"v": [{"v": [1]}, {"w": "[1]"}]}
    assert json.loads(repair(json.dumps({"v": json.dumps([{"v": "[1]"}])}), schema)) == {"v": [{"v": [1]}]}
    schema = of({"type": "array", "prefixItems": [STRING, OBJECT]})
    assert json.loads(repair('{"v": ["{}", "{}", "{}"]}', schema)) == {"v": ["{}", {}, "{}"]}


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"type": "object", "properties": {"v": {"$ref": "#"}}}
    assert repair('{"v": "{\\"v\\": \\"{}\\"}"}', schema) == '{"v": {"v": {}}}'


def test_numbers_and_spelling_stay_as_they_are() -> None:
    text = '{"v": "[1.10, 1e400, 12345678901234567890123]", "w": 0.10, "e": "\\u00e9"}'
    assert repair(text, of(ARRAY)) == text                       # 1e400 is more than a number can be
    text = '{"v": "[1.10, 12345678901234567890123]", "w": 0.10, "e": "\\u00e9"}'
    assert repair(text, of(ARRAY)) == '{"v": [1.10, 12345678901234567890123], "w": 0.10, "e": "\\u00e9"}'


def test_a_whole_object_written_as_a_string_is_unwrapped_once() -> None:
    assert repair('"{\\"a\\": \\"x\\\\ny\\"}"', None) == '{"a": "x\\ny"}'
    assert repair('"{\\"v\\": \\"[1]\\"}"', of(ARRAY)) == '{"v": [1]}'
    assert repair('"text"', None) == '"text"' and repair('"[1]"', None) == '"[1]"'
    assert repair(json.dumps(json.dumps("{}")), None) == json.dumps(json.dumps("{}"))


@pytest.mark.parametrize(("text", "value"), [
    ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}), ('{"a": 1,}', {"a": 1}), ('{"a": [1, 2, ], }', {"a": [1, 2]}),
    ("{'a': 'b'}", {"a": "b"}), ("{'a': 'say \"hi\"', 'b': 'it\\'s'}", {"a": 'say "hi"', "b": "it's"}),
    ("{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}), ("{a: 1, b_2: \"x\"}", {"a": 1, "b_2": "x"}),
    ('{"a": "True, None",}', {"a": "True, None"}), ('{"v": "[1]",}', {"v": [1]}), ("{'v': '[1]'}", {"v": [1]}),
    ('"{\\"a\\": 1,}"', {"a": 1}),
])
def test_near_json_that_reads_in_one_way_is_mended(text: str, value: Any) -> None:
    assert json.loads(repair(text, of(ARRAY))) == value


@pytest.mark.parametrize("text", [
    '{"a": "x', '{"a": "x"', '{"a": [1, 2}', '{"a": ', '{"a":', '{"a"', "{", '{"a": }', "{'a': 'x}", "{'a': 'it's'}", '{"a": x}', '{"a": ...}',
    '{"a": 1} x', '{"a": 1}{"a": 2}', '{"a" 1}', '{"a": 1 "b": 2}', '{"a": NaN}', '{"a": 01}', '{"a": "b" "c"}', "not json", '{"a": "\\\n"}',
    '{"a": 1 // note\n}', '{"a": [1,,2]}', "{'a': 'x'", '{"a": undefined}', '{"a": -}', "\ud83d",
])
def test_what_was_cut_or_is_unclear_stays(text: str) -> None:
    assert repair(text, of(ARRAY)) == text


def test_half_a_surrogate_pair_is_json_and_stays() -> None:
    assert repair('{"a": "\\ud83d", "v": "[1]"}', of(ARRAY)) == '{"a": "\\ud83d", "v": [1]}'
    assert repair('"{\\"a\\": \\"\\\\ud83d\\\\ude00\\"}"', None) == '{"a": "\\ud83d\\ude00"}'


def test_hostile_text_is_refused_without_an_exception() -> None:
    for text in ("[" * 100_000, '{"a":' * 100_000, '{"' * 100_000, "{'" * 30_000, '"' * 100_000, "\\" * 100_000, '{"v":"' + "[" * 50_000 + '"}'):
        assert repair(text, of(ARRAY)) == text
    assert loose("{'a': 1}" + " " * 70_000) is None


@pytest.mark.parametrize(("text", "end"), [("{} x", 2), ('{"a": "}"} x', 10), ("[{'a': 1,}] x", 11), ("{", -1), ('{"', -1), ("[}", 2), ("[[]", -1)])
def test_a_span_ends_where_its_bracket_closes(text: str, end: int) -> None:
    assert span(text, 0) == end
