"""Live delivery: what leaves at once, what is held for how long, and what it becomes."""
import json
from typing import Any

import pytest

from gateway.core.events import ToolArgs, ToolDelta, ToolStart
from gateway.stream.live import LiveCalls

SCHEMA: dict[str, Any] = {"type": "object", "properties": {
    "path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "object", "properties": {"tags": {"type": "array"}}}},
    "either": {"type": ["array", "string"]}}}
D = ToolDelta


def pieces(*texts: str) -> tuple[list[str], LiveCalls]:
    """What left after each piece of one call's arguments, and at the end."""
    calls = LiveCalls({"write": SCHEMA, "now": None, "now_utc": None})
    assert calls.add(D(0, "a", "write")) == [ToolStart(0, "a", "write")]
    left = []
    for text in texts:
        left.append("".join(event.text for event in calls.add(D(0, arguments=text)) if isinstance(event, ToolArgs)))
    left.append("".join(event.text for event in calls.close() if isinstance(event, ToolArgs)))
    return left, calls


def test_ordinary_arguments_leave_as_they_come() -> None:
    texts = ['{"path"', ': "a/', "b\\", 'n", "n": ', "1.50", ', "x": [', '{"y": null}', "]", "}"]
    left, calls = pieces(*texts)
    assert left == [*texts, ""] and calls.invalid == []


def test_a_string_for_an_array_is_held_until_it_closes() -> None:
    left, _ = pieces('{"lines": "[{', '\\"tags\\": \\"[1', ']\\"}', ']", "path": "x', '"}')
    assert left == ['{"lines": ', "", "", '[{"tags": [1]}], "path": "x', '"}', ""]


def test_a_held_string_that_is_no_array_goes_out_as_it_came() -> None:
    assert pieces('{"lines": "[1', '"}')[0] == ['{"lines": ', '"[1"}', ""]
    assert pieces('{"lines": "[1')[0] == ['{"lines": ', '"[1']


def test_a_string_that_does_not_begin_like_an_array_is_not_held() -> None:
    assert pieces('{"lines": "', " none", '"}')[0] == ['{"lines": ', '" none', '"}', ""]
    assert pieces('{"either": "[1', ']"}')[0] == ['{"either": "[1', ']"}', ""]


def test_a_whole_object_written_as_a_string_is_unwrapped_on_the_way() -> None:
    left, calls = pieces('"', '{\\"path\\": ', '\\"a\\', '\\nb\\"', ", \\u007", 'd"')
    assert left == ["", '{"path": ', '"a', '\\nb"', "", " }", ""] and calls.invalid == []
    left, calls = pieces('"{\\"path\\": \\"', "\\\\ud83d\\\\ude00", '\\"}"')
    assert json.loads("".join(left)) == {"path": "\U0001f600"} and calls.invalid == []
    left, calls = pieces('"{\\"path\\": \\"\\ud83d', '\\ude00\\"}"')
    assert json.loads("".join(left)) == {"path": "\U0001f600"} and calls.invalid == []


def test_raw_control_characters_and_trailing_commas_are_mended_on_the_way() -> None:
    left, calls = pieces('{"path": "a\n', 'b", ', "}")
    assert left == ['{"path": "a\\n', 'b"', " }", ""] and calls.invalid == []


@pytest.mark.parametrize("text", ["", " ", "{}", "null", "[]"])
def test_no_arguments_are_an_empty_object_at_the_end(text: str) -> None:
    left, calls = pieces(text)
    assert left == ["", "{}"] and calls.invalid == []


def test_an_empty_object_before_the_arguments_does_not_leave() -> None:
    assert pieces("{}", '{"path"', ":1}")[0] == ["", '{"path"', ":1}", ""]


def test_arguments_that_come_once_more_do_not_leave_twice() -> None:
    assert pieces('{"path":', "1}", '{"path":1}')[0] == ['{"path":', "1}", "", ""]


def test_a_call_starts_once_its_name_is_sure() -> None:
    calls = LiveCalls({"now": None, "now_utc": None})
    assert calls.add(D(0, "a", "now")) == []                       # it may go on
    assert calls.add(D(0, "", "_utc")) == [ToolStart(0, "a", "now_utc")]
    assert calls.add(D(1, "", "now")) == []                        # its id may still come
    assert calls.add(D(1, "b")) == []
    assert calls.add(D(1, arguments='{"x"')) == [ToolStart(1, "b", "now"), ToolArgs(1, '{"x"')]
    assert calls.add(D(1, "", "now", ":1}")) == [ToolArgs(1, ":1}")]
    assert calls.close() == [ToolArgs(0, "{}")] and calls.invalid == []


def test_calls_start_in_the_order_of_their_appearance() -> None:
    calls = LiveCalls({})
    assert calls.add(D(3, "", "one")) == []
    left = calls.add(D(7, "b", "two", "{}"))
    assert [(event.index, event.name) for event in left if isinstance(event, ToolStart)] == [(0, "one"), (1, "two")]
    assert calls.close() == [ToolArgs(0, "{}"), ToolArgs(1, "{}")]


def test_arguments_before_the_name_wait_for_it() -> None:
    calls = LiveCalls({})
    assert calls.add(D(0, "a", "", '{"x"')) == [] and calls.add(D(0, arguments=":1")) == []
    calls.add(D(0, arguments="}"))
    assert calls.close() == [] and calls.invalid == ["a call without a name"]


def test_parallel_calls_keep_their_places_ids_and_choice() -> None:
    calls = LiveCalls({})
    calls.add(D(0, "x", "f", '{"a"', choice=1))
    calls.add(D(1, "x", "g", '{"b"', choice=1))
    left = [*calls.add(D(0, arguments=":1}")), *calls.add(D(1, arguments=":2}")), *calls.close()]
    assert left == [ToolArgs(0, ":1}", 1), ToolArgs(1, ":2}", 1)] and calls.invalid == [] and calls.n_bytes == 16


def test_free_text_leaves_untouched() -> None:
    calls = LiveCalls({"f": None})
    left = [*calls.add(D(0, "a", "f", '"{x', kind="custom", extra={"s": 1})), *calls.add(D(0, arguments="\n,}", kind="custom")), *calls.close()]
    assert left == [ToolStart(0, "a", "f", 0, "custom", {"s": 1}), ToolArgs(0, '"{x'), ToolArgs(0, "\n,}")] and calls.invalid == []


def test_a_broken_call_is_named_at_the_end_unless_the_limit_cut_it() -> None:
    calls = LiveCalls({})
    calls.add(D(0, "a", "f", '{"x": 1'))
    assert calls.close() == [] and calls.invalid == ["f: arguments are not a JSON object"]
    calls = LiveCalls({"f": None})
    calls.add(D(0, "a", "f"))
    assert calls.close(cut=True) == [] and calls.invalid == []
