"""The JSON that was asked for: found as it is, in a fence, among prose; never in what was cut."""
from typing import Any

import pytest

from gateway.core.request import Format
from gateway.stream.structured import MAX_CHECKED, enforce, violation

OBJECT = Format("json_object")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
LOOSE, STRICT = Format("json_schema", SCHEMA), Format("json_schema", SCHEMA, strict=True)


def healed(text: str, format: Format = OBJECT) -> str | None:
    found = enforce(text, format)
    return None if found is None else found.text


@pytest.mark.parametrize("format", [OBJECT, LOOSE, STRICT])
@pytest.mark.parametrize("text", ['{"a":1}', ' \n{"a": 1}\n', '{"a":1}\t'])
def test_the_json_itself_passes_unchanged(text: str, format: Format) -> None:
    found = enforce(text, format)
    assert found is not None and found.text == text and not found.changed


@pytest.mark.parametrize("text", [
    '```json\n{"a":1}\n```', '```\n{"a":1}\n```', 'Here it is:\n```json\n{"a":1}\n```\nDone.', '```json\n{"a":1}', 'Sure! {"a":1} is it.',
    '\ufeff{"a":1}', 'As said in [1]: {"a":1}', '{"a":1} and that is {all}', 'Use {x}: {"a":1}', '{"a":1}\n\nNote: [ opens a list', '\xa0{"a":1}',
])
@pytest.mark.parametrize("format", [OBJECT, LOOSE, STRICT])
def test_fences_and_prose_are_cut_away(text: str, format: Format) -> None:
    found = enforce(text, format)
    assert found is not None and found.text == '{"a":1}' and found.changed


@pytest.mark.parametrize("text", [
    '{"a": {"b": 1}, "c": "tru', '[{"a":1},{"a":', 'Sure: {"a": 1, "b": [1,2', 'Sure: ["x", {"a":1}, {"b":', '```json\n{"x": {"a":1}, "y": ', "{", '{"a":1',
    'Example: {"a":1}. Now: {"a": [', '{"a":1,}', "{'a':1}", '{"a":NaN}', '{"a":Infinity}', "", "  ", "no json", "```json\n```", "]", "}{",
])
@pytest.mark.parametrize("format", [OBJECT, LOOSE, STRICT])
def test_what_was_cut_or_is_no_json_is_refused(text: str, format: Format) -> None:
    assert enforce(text, format) is None


@pytest.mark.parametrize("text", ["[1]", "1", '"x"', "null", "true", '[{"a":1}]', "```\n[1]\n```"])
def test_a_json_object_is_an_object(text: str) -> None:
    assert enforce(text, OBJECT) is None
    assert enforce(text, STRICT) is None


def test_strict_checks_the_schema_and_otherwise_the_part_that_fits_is_preferred() -> None:
    assert healed('{"a":"x"}', STRICT) is None and healed('{"a":"x"}', LOOSE) == '{"a":"x"}'
    text = 'First {"b": "much longer"}, then {"a":2}.'
    assert healed(text, STRICT) == '{"a":2}' and healed(text, LOOSE) == '{"a":2}' and healed(text, OBJECT) == '{"b": "much longer"}'
    assert healed("[1]", LOOSE) == "[1]" and healed("[1]", Format("json_schema")) == "[1]"


def test_fences_inside_strings_do_not_end_the_json() -> None:
    text = '{"md": "```json\\n{}\\n```"}'
    assert healed(text) == text
    assert healed(f"```json\n{text}\n```") == text
    assert healed('```json\n{"md": "```js ```"}\n```') == '{"md": "```js ```"}'


@pytest.mark.parametrize("schema", [
    {"type": "objekt"}, {"$ref": "https://example.org/schema.json"}, {"$ref": "file:///etc/hostname"}, {"$ref": "#/nowhere"},
    {"properties": {"a": {"pattern": "("}}}, {"properties": 5},
])
def test_a_schema_that_cannot_be_used_checks_nothing(schema: dict[str, Any]) -> None:
    assert healed('{"a":"x"}', Format("json_schema", schema, strict=True)) == '{"a":"x"}'
    assert violation({"a": "x"}, schema) == ""


def test_a_pattern_that_runs_out_of_steps_checks_nothing_more() -> None:
    schema = {"properties": {"a": {"pattern": "^(a|a|aa)+(?!b)\\1$"}}}
    text = '{"a":"%s!"}' % ("a" * 60)
    assert healed(text, Format("json_schema", schema, strict=True)) == text


def test_half_a_surrogate_pair_is_json() -> None:
    assert healed('{"a":"\\ud83d"}') == '{"a":"\\ud83d"}'


def test_a_violation_is_told_in_words() -> None:
    assert "not of type" in violation({"a": "x"}, SCHEMA) and violation({"a": 1}, SCHEMA) == "" and violation(1, None) == ""


def test_hostile_text_is_refused_without_an_exception() -> None:
    for text in ("[" * 100_000, '{"a":' * 50_000, "```\n" * 50_000, "{ " * 50_000, '"{' * 50_000, "[[]" * 20_000):
        assert healed(text, STRICT) is None


MANY: dict[str, Any] = {"properties": {"a": {"type": "array", "items": {"type": "string"}}}}


def test_countless_violations_cost_what_the_first_one_does() -> None:
    text = '{"a":[%s1]}' % ("1," * 400_000)                    # listing them all takes a minute and two gigabytes
    assert healed(text, Format("json_schema", MANY, strict=True)) is None
    assert "is not of type" in violation({"a": [1] * 400_000}, MANY)


def test_what_is_larger_than_is_ever_checked_only_has_to_be_json() -> None:
    text = '{"a":["%s",1]}' % ("x" * MAX_CHECKED)
    assert healed(text, Format("json_schema", MANY, strict=True)) == text
    assert healed(text[:-1], Format("json_schema", MANY, strict=True)) is None
