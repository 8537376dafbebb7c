"""An answer that must be JSON: held until it is, healed if it can be."""
import json

import pytest

from gateway.core.events import Event, Fault, Finish, Reasoning, Refusal, Text, ToolDelta
from gateway.core.request import Format
from gateway.stream.turn import PASSTHROUGH, STRUCTURED
from tests.unit.stream.turns import (
    CALL,
    DONE,
    META,
    STOP,
    TOOLS,
    USAGE,
    calls,
    framed,
    kind,
    kinds,
    play,
    reasons,
    text,
    turn,
)

OBJECT = Format("json_object")
STRICT = Format("json_schema", schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                strict=True)


def test_json_is_held_to_the_end_and_leaves_as_it_came() -> None:
    t = turn(format=OBJECT)
    assert t.mode == STRUCTURED
    assert t.feed([META, framed('{"a"'), framed(": 1}")], 1.0) == []
    assert t.feed([STOP, USAGE, DONE], 1.0) == [META, framed('{"a"'), framed(": 1}"), STOP, USAGE, DONE]
    assert not t.touched


@pytest.mark.parametrize("answer", ['```json\n{"a": 1}\n```', 'Sure! {"a": 1} There you are.'])
def test_json_in_a_wrapping_is_unwrapped(answer: str) -> None:
    t = turn(format=OBJECT)
    out = play(t, *[framed(char) for char in answer], STOP, DONE)
    assert json.loads(text(out)) == {"a": 1}
    assert t.touched


def test_what_is_no_json_moves_on_and_is_delivered_as_text_when_nobody_is_left() -> None:
    t = turn(format=OBJECT)
    assert play(t, Text("I cannot do that"), STOP, DONE) == []
    assert kind(t) == "format_ignored"
    assert text(t.salvage(3.0)) == "I cannot do that"


def test_json_that_length_cut_moves_on_and_is_delivered_when_nobody_is_left() -> None:
    t = turn(format=OBJECT)
    assert play(t, framed('{"a": "bc'), Finish("length"), DONE) == []
    assert kind(t) == "truncated_json"
    out = t.salvage(3.0)
    assert (text(out), reasons(out)) == ('{"a": "bc', ["length"])


def test_after_thinking_left_the_text_is_delivered_as_it_is() -> None:
    t = turn(format=OBJECT, reasoning="live")
    out = play(t, Reasoning("hm"), Text("no json"), STOP, DONE)
    assert (text(out), reasons(out)) == ("no json", ["stop"])
    out = play(turn(format=OBJECT, reasoning="live"), Reasoning("hm"), Text('{"a'), Finish("length"), DONE)
    assert (text(out), reasons(out)) == ('{"a', ["length"])


def test_thinking_is_no_part_of_the_json() -> None:
    out = play(turn(format=OBJECT), framed('<think>so {</think>\n{"a": 1}'), STOP, DONE)
    assert json.loads(text(out)) == {"a": 1}


@pytest.mark.parametrize("events", [[Refusal("I must not")], [Text("I must"), Finish("content_filter")]])
def test_a_refusal_is_no_json(events: list[Event]) -> None:
    t = turn(format=OBJECT)
    assert kinds(play(t, *events, DONE))[-2:] == ["Usage", "End"]
    assert t.fault is None


def test_a_tool_turn_is_no_json() -> None:
    call = ToolDelta(index=0, id="c", name="get_weather", arguments='{"city": "Paris"}')
    out = play(turn(format=OBJECT, tools=TOOLS), Text("Let me see."), call, DONE)
    assert (text(out), len(calls(out))) == ("Let me see.", 1)
    out = play(turn(format=OBJECT, tools=TOOLS), Text(CALL), STOP, DONE)
    assert (text(out), len(calls(out)), reasons(out)) == ("", 1, ["tool_calls"])


def test_a_live_call_releases_the_text() -> None:
    t = turn(format=OBJECT, tools=TOOLS, tool_calls="live")
    assert t.feed([framed("Let me see.")], 1.0) == []
    assert kinds(t.feed([ToolDelta(index=0, id="c", name="get_weather")], 1.0)) == ["Text", "ToolStart"]
    assert t.mode == PASSTHROUGH


def test_an_answer_that_is_a_call_in_json_is_a_call() -> None:
    answer = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
    assert len(calls(play(turn(format=OBJECT, tools=TOOLS), Text(answer), STOP, DONE))) == 1


def test_json_that_speaks_of_a_marker_stays_json() -> None:
    answer = json.dumps({"a": 1, "how": CALL})
    for form in (OBJECT, STRICT):
        out = play(turn(format=form, tools=TOOLS), Text(answer), STOP, DONE)
        assert (text(out), calls(out)) == (answer, [])


def test_more_than_can_be_held_is_text() -> None:
    t = turn(format=OBJECT, hold_max_bytes=1000)
    out = play(t, *[Text("x" * 100)] * 20, STOP)
    assert text(out) == "x" * 2000
    assert not [event for event in out if isinstance(event, Fault)]


def test_an_empty_answer_is_empty_and_not_broken_json() -> None:
    t = turn(format=OBJECT)
    play(t, Text(" "), STOP)
    assert kind(t) == "empty"
