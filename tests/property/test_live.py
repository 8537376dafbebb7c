"""Arguments that leave on the way say what the whole repair says, however the text was cut."""
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.events import ToolArgs, ToolCall, ToolDelta, ToolStart
from gateway.stream.json_text import strict
from gateway.stream.live import LiveCalls
from gateway.stream.repair import checked, repair
from gateway.stream.toolcalls import Calls

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"node": {"type": "object", "properties": {"plan": {"$ref": "#/$defs/list"}, "note": {"type": "string"}}},
              "list": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "properties": {
        "plan": {"type": ["array", "null"], "items": {"$ref": "#/$defs/node"}},
        "node": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        "note": {"type": "string"},
        "either": {"type": ["array", "string"]},
        "rows": {"type": "array", "items": {"type": "array", "items": {"type": "object"}}},
    },
}

KEYS = st.sampled_from(["plan", "node", "note", "either", "rows", "other", "sch\u00f6n", 'q"\\'])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    ["", "[", "{", " [1]", "[]", "{}", "[1,2]", '{"a":1}', '"', "\\", "x\ny", "\U0001f600", "null", "[1", "\u2028"]
) | st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


def _nested(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.lists(children, max_size=3) | st.dictionaries(KEYS, children, max_size=3)
    return plain | plain.map(json.dumps) | plain.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1))


VALUES = st.recursive(SCALARS, _nested, max_leaves=12)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
TEXTS = st.builds(lambda value, ascii_, indent: json.dumps(value, ensure_ascii=ascii_, indent=indent), OBJECTS, st.booleans(),
                  st.sampled_from([None, 1]))
WRAPPED = TEXTS | TEXTS.map(json.dumps) | TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False))
SLOPPY = WRAPPED | TEXTS.map(lambda text: text.replace("\\n", "\n").replace("}", " ,}"))


@st.composite
def cut(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, list[str]]:
    text = draw(texts)
    if draw(st.booleans()):
        return text, list(text)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def live(pieces: list[str], schema: dict[str, Any] | None = SCHEMA) -> tuple[str, LiveCalls]:
    calls = LiveCalls({"f": schema})
    left = calls.add(ToolDelta(0, "call_1", "f"))
    for piece in pieces:
        left += calls.add(ToolDelta(0, arguments=piece))
    left += calls.close()
    assert isinstance(left[0], ToolStart) and sum(isinstance(event, ToolStart) for event in left) == 1
    return "".join(event.text for event in left if isinstance(event, ToolArgs)), calls


def plainly(value: Any, schema: Any, root: Any = SCHEMA) -> Any:
    """The same repair, written for decoded values: slow and simple."""
    if isinstance(schema, dict) and "$ref" in schema:
        return plainly(value, root["$defs"][schema["$ref"].split("/")[-1]], root)
    if isinstance(schema, dict) and "anyOf" in schema:
        return plainly(value, schema["anyOf"][0], root)
    schema = schema if isinstance(schema, dict) else {}
    kinds = schema.get("type", "?")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if isinstance(value, str) and "string" not in kinds and "?" not in kinds:
        try:
            inner = strict(value)
        except ValueError:
            return value
        if (isinstance(inner, list) and "array" in kinds) or (isinstance(inner, dict) and "object" in kinds):
            return plainly(inner, schema, root)
        return value
    if isinstance(value, dict):
        return {key: plainly(one, schema.get("properties", {}).get(key), root) for key, one in value.items()}
    if isinstance(value, list):
        return [plainly(one, schema.get("items"), root) for one in value]
    return value


@settings(max_examples=120, deadline=None)
@given(cut(SLOPPY))
def test_any_cut_leaves_what_the_whole_repair_makes(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    left, calls = live(pieces)
    whole, good = checked(text, SCHEMA, guess=False)
    assert bool(calls.invalid) == (not good)
    if good:
        assert json.loads(left) == json.loads(whole)


@settings(max_examples=120, deadline=None)
@given(TEXTS)
def test_repair_changes_what_the_schema_demands_and_nothing_else(text: str) -> None:
    repaired = repair(text, SCHEMA)
    assert json.loads(repaired) == plainly(json.loads(text), SCHEMA)
    if plainly(json.loads(text), SCHEMA) == json.loads(text):
        assert repaired == text


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_a_whole_object_written_as_a_string_is_the_object(text: str) -> None:
    assert json.loads(repair(json.dumps(text), SCHEMA)) == json.loads(repair(text, SCHEMA))


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.data())
def test_a_call_that_was_cut_never_becomes_another_call(text: str, data: st.DataObject) -> None:
    part = text[:data.draw(st.integers(1, max(len(text) - 1, 1)))]
    repaired, good = checked(part, SCHEMA)
    assert not good or json.loads(repaired) == json.loads(repair(text, SCHEMA))


@settings(max_examples=80, deadline=None)
@given(st.text(st.sampled_from('{}[]":,\\ntu01 a\n\'😀'), max_size=40), st.data())
def test_garbage_is_kept_or_refused_but_never_raises(text: str, data: st.DataObject) -> None:
    assert repair(text, SCHEMA) == text or isinstance(strict(repair(text, SCHEMA)), dict)
    left, calls = live(list(text))
    if not calls.invalid:
        assert isinstance(strict(left), dict)


DELTAS = st.builds(
    ToolDelta, index=st.none() | st.integers(0, 3), id=st.sampled_from(["", "", "a", "b"]),
    name=st.sampled_from(["", "", "f", "g", "fg"]),
    arguments=st.sampled_from(["", "{}", '{"a":1}', '{"a"', ":1}", "null", " ", "}"]), whole=st.booleans(),
    kind=st.sampled_from(["function", "function", "custom"]))


@settings(max_examples=120, deadline=None)
@given(st.lists(DELTAS, max_size=10))
def test_whatever_pieces_come_the_calls_that_leave_are_sound(deltas: list[ToolDelta]) -> None:
    calls, leaving = Calls(), LiveCalls({"f": None, "fg": None})
    left = []
    for delta in deltas:
        calls.add(delta)
        left += leaving.add(delta)
    left += leaving.close()
    found: list[ToolCall] = calls.finished({"f": None, "fg": None})
    starts = [event for event in left if isinstance(event, ToolStart)]
    for group in (found, starts):
        assert [call.index for call in group] == list(range(len(group)))
        assert len({call.id for call in group}) == len(group) and all(call.id and call.name for call in group)
    for call in found:
        assert call.kind == "custom" or isinstance(strict(call.arguments), dict)
