"""Which calls were made, however the upstream cut and numbered their pieces."""
import json
from typing import Any

import pytest

from gateway.core.events import ToolCall, ToolDelta
from gateway.stream import toolcalls
from gateway.stream.live import LiveCalls
from gateway.stream.toolcalls import MAX_CALLS, Calls, declared

SCHEMAS: dict[str, dict[str, Any] | None] = {"get_weather": {"type": "object", "properties": {"days": {"type": "array"}}}, "now": None}


def gathered(*deltas: ToolDelta, cut: bool = False) -> tuple[list[ToolCall], list[str]]:
    calls = Calls()
    for delta in deltas:
        calls.add(delta)
    return calls.finished(SCHEMAS, cut), calls.invalid


def said(*deltas: ToolDelta) -> list[tuple[str, str, Any]]:
    found, invalid = gathered(*deltas)
    assert invalid == [] and [call.index for call in found] == list(range(len(found)))
    assert len({call.id for call in found}) == len(found) and all(call.id for call in found)
    return [(call.id, call.name, json.loads(call.arguments)) for call in found]


def without_ids(*deltas: ToolDelta) -> list[tuple[str, Any]]:
    return [(name, arguments) for _, name, arguments in said(*deltas)]


D = ToolDelta


def test_pieces_of_one_index_are_one_call() -> None:
    assert said(D(0, "c1", "get_weather"), D(0, arguments='{"ci'), D(0, arguments='ty":1}')) == [("c1", "get_weather", {"city": 1})]


def test_interleaved_indexes_are_parallel_calls() -> None:
    assert said(D(0, "a", "now"), D(1, "b", "now"), D(0, arguments='{"x"'), D(1, arguments='{"y"'), D(0, arguments=":1}"),
                D(1, arguments=":2}")) == [("a", "now", {"x": 1}), ("b", "now", {"y": 2})]


def test_late_indexes_become_dense_in_the_order_of_appearance() -> None:
    assert said(D(5, "a", "now", "{}"), D(1, "b", "now", "{}")) == [("a", "now", {}), ("b", "now", {})]


def test_missing_ids_are_made_and_differ_in_every_turn() -> None:
    first, second = said(D(0, "", "now", "{}")), said(D(0, "", "now", "{}"))
    assert first[0][0] != second[0][0] and first[0][0].startswith("call_")


def test_parallel_calls_that_all_carry_index_0_are_told_apart_by_id() -> None:
    assert said(D(0, "a", "now", '{"x":1}'), D(0, "b", "now", '{"x":1}')) == [("a", "now", {"x": 1}), ("b", "now", {"x": 1})]
    assert said(D(0, "a", "now"), D(0, arguments='{"x":'), D(0, arguments="1}"), D(0, "b", "get_weather"), D(0, arguments="{}")) == [
        ("a", "now", {"x": 1}), ("b", "get_weather", {})]


def test_an_index_that_is_used_again_without_ids_begins_a_new_call() -> None:
    assert without_ids(D(0, "", "now", '{"x":1}'), D(0, "", "now", '{"x":2}')) == [("now", {"x": 1}), ("now", {"x": 2})]
    assert without_ids(D(0, "", "now", '{"x":1}'), D(0, "", "get_weather", "{}")) == [("now", {"x": 1}), ("get_weather", {})]


def test_an_id_that_is_repeated_on_each_piece_is_the_same_call() -> None:
    assert said(D(0, "a", "now", '{"x"'), D(0, "a", "", ":1"), D(0, "a", "", "}")) == [("a", "now", {"x": 1})]
    assert said(D(None, "a", "now", '{"x"'), D(None, "a", "now", ":1}")) == [("a", "now", {"x": 1})]


def test_an_id_that_changes_on_each_piece_is_the_same_call() -> None:
    assert said(D(0, "a", "now", '{"x"'), D(0, "b", "", ":1"), D(0, "c", "", "}")) == [("a", "now", {"x": 1})]
    assert said(D(0, "a", "now", '{"x"'), D(0, "b", "now", ":1}")) == [("a", "now", {"x": 1})]


def test_an_id_that_comes_late_belongs_to_its_call() -> None:
    assert said(D(0, "", "now"), D(0, "a", "", "{}")) == [("a", "now", {})]
    assert said(D(None, "", "now"), D(None, "a", "", "{}")) == [("a", "now", {})]


def test_one_id_for_several_indexes_is_several_calls_with_ids_of_their_own() -> None:
    found = said(D(0, "x", "now", '{"n":1}'), D(1, "x", "now", '{"n":2}'))
    assert [(name, arguments) for _, name, arguments in found] == [("now", {"n": 1}), ("now", {"n": 2})] and found[0][0] == "x"


def test_one_id_and_one_index_for_several_calls_are_told_apart_by_name() -> None:
    assert without_ids(D(0, "x", "now", '{"n":1}'), D(0, "x", "get_weather", "{}")) == [("now", {"n": 1}), ("get_weather", {})]


def test_names_are_joined_when_split_and_kept_when_repeated() -> None:
    assert said(D(0, "a", "get_"), D(0, "", "weather"), D(0, arguments="{}")) == [("a", "get_weather", {})]
    assert said(D(0, "a", "get_weather"), D(0, "a", "get_weather", "{"), D(0, "a", "get_weather", "}")) == [("a", "get_weather", {})]


def test_pieces_without_index_and_id_continue_the_last_call() -> None:
    assert said(D(None, "a", "now"), D(None, "", "", '{"x":'), D(None, "", "", "1}"), D(None, "b", "now", "{}")) == [
        ("a", "now", {"x": 1}), ("b", "now", {})]


def test_whole_calls_without_index_and_id_are_one_each() -> None:
    assert without_ids(D(None, "", "now", '{"x":1}', whole=True), D(None, "", "now", '{"x":2}', whole=True),
                       D(None, "", "get_weather", "{}", whole=True)) == [("now", {"x": 1}), ("now", {"x": 2}), ("get_weather", {})]


def test_arguments_that_come_once_more_at_the_end_are_not_doubled() -> None:
    assert said(D(0, "a", "now"), D(0, arguments='{"x":'), D(0, arguments="1}"), D(0, "a", "now", '{"x":1}')) == [("a", "now", {"x": 1})]
    assert said(D(0, "a", "now", '{"x":1}'), D(0, "a", "", '{ "x": 1 }')) == [("a", "now", {"x": 1})]
    assert said(D(0, "a", "now", '{"x":1}', whole=True), D(0, "a", "now", '{"x":1}', whole=True)) == [("a", "now", {"x": 1})]
    assert said(D(0, "a", "now", '{"x":1}'), D(0, "a", "now", "{}", whole=True)) == [("a", "now", {"x": 1})]


def test_an_empty_object_before_the_arguments_is_only_an_announcement() -> None:
    assert said(D(0, "a", "now", "{}", whole=True), D(0, arguments='{"x"'), D(0, arguments=":1}")) == [("a", "now", {"x": 1})]
    assert said(D(0, "a", "now", "{}"), D(0, arguments='{"x"'), D(0, arguments=":1}")) == [("a", "now", {"x": 1})]


@pytest.mark.parametrize("arguments", ["", " ", "{}", "null", "[]"])
def test_a_call_without_arguments_has_an_empty_object(arguments: str) -> None:
    assert gathered(D(0, "a", "now", arguments))[0][0].arguments == "{}"


def test_arguments_are_repaired_by_the_schema_of_the_called_tool() -> None:
    assert said(D(0, "a", "get_weather", '{"days":"[1]"}')) == [("a", "get_weather", {"days": [1]})]
    assert said(D(0, "a", "now", '{"days":"[1]"}')) == [("a", "now", {"days": "[1]"})]


def test_free_text_is_passed_as_it_is() -> None:
    found, invalid = gathered(D(0, "a", "now", "{not ", kind="custom"), D(0, arguments="json"))
    assert (found[0].arguments, found[0].kind, invalid) == ("{not json", "custom", [])


def test_what_the_wire_keeps_beside_a_call_is_merged() -> None:
    found, _ = gathered(D(0, "a", "now", extra={"x": 1}), D(0, arguments="{}", extra={"y": 2}))
    assert found[0].extra == {"x": 1, "y": 2}


def test_calls_keep_their_choice() -> None:
    assert gathered(D(0, "a", "now", "{}", choice=2))[0][0].choice == 2


@pytest.mark.parametrize("arguments", ['{"x":', '{"x": 1', '{"x": "a', "[1]", '"text"', "{} {}", "x"])
def test_broken_arguments_are_named_and_never_leave(arguments: str) -> None:
    found, invalid = gathered(D(0, "a", "now", arguments), D(1, "b", "now", "{}"))
    assert [call.id for call in found] == ["b"] and found[0].index == 0
    assert invalid == ["now: arguments are not a JSON object"]


def test_a_call_without_a_name_is_invalid() -> None:
    assert gathered(D(0, "a", "", "{}")) == ([], ["a call without a name"])


def test_a_call_that_the_output_limit_cut_passes_as_it_is() -> None:
    found, invalid = gathered(D(0, "a", "now", '{"x":1,}'), D(1, "b", "now", "{'x': 'a"), cut=True)
    assert [call.arguments for call in found] == ['{"x":1}', "{'x': 'a"] and invalid == []
    found, invalid = gathered(D(0, "a", "now"), D(1, "b", "now"), cut=True)
    assert [call.arguments for call in found] == ["{}", ""] and invalid == []
    assert gathered(D(0, "a", "", '{"x'), cut=True) == ([], [])


@pytest.mark.parametrize(("name", "means"), [
    ("now", "now"), ("functions.now", "now"), ("functions.now:0", "now"), ("now<|channel|>commentary", "now"), (" now ", "now"),
    ("functions.other:0", "functions.other:0"), ("other", "other"),
])
def test_a_name_with_a_servers_leftovers_means_the_declared_tool(name: str, means: str) -> None:
    assert declared(name, SCHEMAS) == means
    assert declared(name, {}) == name


def test_the_declared_names_are_spelled_once_for_all_calls_of_a_turn(monkeypatch) -> None:
    spelled = []
    real = toolcalls._spelled
    monkeypatch.setattr(toolcalls, "_spelled", lambda name: (spelled.append(name), real(name))[1])
    schemas = {f"tool.{i}": None for i in range(300)}
    calls, live = Calls(), LiveCalls(schemas)
    for index in range(300):
        calls.add(D(index, f"c{index}", f"nobody {index}", "{}"))
        live.add(D(index, f"c{index}", f"nobody {index}", "{}"))
    assert len(calls.finished(schemas)) == 300
    assert len(spelled) == 4 * 300


@pytest.mark.parametrize(("name", "means"), [
    ("look_up", "look.up"), ("look-up", "look.up"), ("_look_up", "look.up"), ("look", "look"), ("loo", "loo"),
    ("x" * 60, "x" * 80), ("x" * 59, "x" * 59), ("x" * 81, "x" * 81),
])
def test_a_name_in_another_spelling_or_cut_to_what_an_api_takes_means_the_declared_tool(name: str, means: str) -> None:
    assert declared(name, {"look.up": None, "look": None, "x" * 80: None, "look_up.": None}) == means


def test_calls_are_counted_and_bounded() -> None:
    calls = Calls()
    assert not calls and calls.n_bytes == 0
    for index in range(MAX_CALLS + 5):
        calls.add(D(index, f"c{index}", "now", "{}"))
    assert calls and calls.n_bytes == MAX_CALLS * 5
    assert len(calls.finished(SCHEMAS)) == MAX_CALLS and calls.invalid == ["too many tool calls"]
