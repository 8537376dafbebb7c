"""Tool calls: as calls, whole or live, and written as text."""
import json

import pytest

from gateway.core.errors import GatewayError
from gateway.core.events import Event, Fault, Finish, Opaque, Reasoning, Text, ToolArgs, ToolCall, ToolDelta, ToolStart
from gateway.stream.turn import DIALECT, PASSTHROUGH, UNDECIDED
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

PARIS = json.dumps({"city": "Paris"})
DELTAS: list[Event] = [ToolDelta(index=0, id="call_1", name="get_weather"), ToolDelta(index=0, arguments='{"city":'),
                       ToolDelta(index=0, arguments=' "Paris"}')]


def test_calls_leave_whole_with_their_reason() -> None:
    t = turn(tools=TOOLS)
    out = play(t, META, *DELTAS, Finish("tool_calls"), DONE)
    assert kinds(out) == ["Meta", "ToolCall", "Finish", "Usage", "End"]
    assert out[1] == ToolCall(0, "call_1", "get_weather", PARIS)


@pytest.mark.parametrize(("said", "told"), [
    ("stop", "tool_calls"), ("eos", "tool_calls"), ("tool_calls", "tool_calls"), ("length", "length"),
    ("content_filter", "content_filter"),
])
def test_calls_make_the_reason_unless_they_were_cut(said: str, told: str) -> None:
    assert reasons(play(turn(tools=TOOLS), *DELTAS, Finish(said), DONE)) == [told]


def test_calls_without_any_finish_get_one_if_the_stream_ended_properly() -> None:
    assert reasons(play(turn(tools=TOOLS), *DELTAS, DONE)) == ["tool_calls"]
    t = turn(tools=TOOLS)
    assert play(t, *DELTAS) == [] and kind(t) == "truncated"


def test_the_reason_tool_calls_without_calls_is_stop() -> None:
    assert reasons(play(turn(tools=TOOLS), Text("Hi"), Finish("tool_calls"), DONE)) == ["stop"]


def test_an_invalid_call_moves_on_before_the_commit_point_and_is_told_after_it() -> None:
    bad = ToolDelta(index=0, id="call_1", name="get_weather", arguments='{"city": nope')
    t = turn(tools=TOOLS)
    assert play(t, bad, Finish("tool_calls"), DONE) == []
    assert kind(t) == "invalid_tool_arguments"
    assert t.salvage(3.0) == []

    out = play(turn(tools=TOOLS), Text("Hi"), bad, Finish("tool_calls"), DONE)
    assert kinds(out) == ["Text", "Fault"]


def test_a_call_that_length_cut_is_passed_on_as_it_is() -> None:
    t = turn(tools=TOOLS)
    out = play(t, ToolDelta(index=0, id="call_1", name="get_weather", arguments='{"city": "Par'), Finish("length"), DONE)
    assert calls(out) == [("get_weather", '{"city": "Par')]
    assert reasons(out) == ["length"]


def test_arguments_are_checked_against_the_schema_when_that_is_asked() -> None:
    wrong = ToolDelta(index=0, id="call_1", name="get_weather", arguments='{"town": 1}')
    t = turn(tools=TOOLS, validate_tool_arguments=True)
    assert play(t, wrong, Finish("tool_calls"), DONE) == []
    assert kind(t) == "invalid_tool_arguments"
    assert calls(play(turn(tools=TOOLS), wrong, DONE)) == [("get_weather", '{"town": 1}')]
    after = play(turn(tools=TOOLS, validate_tool_arguments=True), Text("Hi"), wrong, DONE)
    assert calls(after) == [("get_weather", '{"town": 1}')]


def test_a_schema_that_is_none_checks_nothing() -> None:
    t = turn(tools={"get_weather": {"type": "no such type"}}, validate_tool_arguments=True)
    assert calls(play(t, *DELTAS, DONE)) == [("get_weather", PARIS)]


def test_live_calls_commit_and_stream() -> None:
    t = turn(tools=TOOLS, tool_calls="live")
    first = t.feed([META, DELTAS[0]], 1.0)
    assert kinds(first) == ["Meta", "ToolStart"] and t.committed
    out = first + t.feed(DELTAS[1:], 1.0) + t.feed([Finish("stop"), DONE], 1.0)
    assert "".join([event.text for event in out if isinstance(event, ToolArgs)]) == PARIS
    assert [event for event in out if isinstance(event, ToolStart)] == [ToolStart(0, "call_1", "get_weather")]
    assert reasons(out) == ["tool_calls"]
    assert t.finish == "tool_calls"


def test_text_held_back_leaves_before_a_live_call() -> None:
    t = turn(tools=TOOLS, tool_calls="live")
    assert kinds(t.feed([framed("a <tool"), DELTAS[0]], 1.0)) == ["Text", "ToolStart"]


def test_calls_without_an_end_cannot_be_held_without_limit() -> None:
    t = turn(tools=TOOLS, hold_max_bytes=1000)
    for _ in range(20):
        t.feed([ToolDelta(index=0, arguments="x" * 100)], 1.0)
    assert kind(t) == "bad_reply"


# -- written as text

def test_without_declared_tools_nothing_is_a_call() -> None:
    t = turn()
    assert text(play(t, framed("Write <tool"), framed("_call>{}</tool_call>"), STOP, DONE)) == "Write <tool_call>{}</tool_call>"
    assert not t.fault


def test_rescue_can_be_switched_off() -> None:
    assert text(play(turn(tools=TOOLS, rescue=False), framed(CALL), STOP)) == CALL


@pytest.mark.parametrize("prose", ["", "\n\n", "Let me see.\n", "a < b [1] "])
def test_a_call_written_as_text_becomes_a_call_however_it_is_cut(prose: str) -> None:
    answer = prose + CALL
    for cut in range(1, len(answer)):
        t = turn(tools=TOOLS)
        out = play(t, framed(answer[:cut]), framed(answer[cut:]), STOP, DONE)
        assert [(name, json.loads(arguments)) for name, arguments in calls(out)] == [("get_weather", {"city": "Paris"})]
        assert (text(out), reasons(out)) == (prose if prose.strip() else "", ["tool_calls"])
        assert t.touched


def test_prose_before_a_marker_keeps_streaming() -> None:
    t = turn(tools=TOOLS)
    assert t.feed([framed("Let me see.")], 1.0) == [framed("Let me see.")]
    assert t.mode == PASSTHROUGH
    assert t.feed([framed(" <tool")], 1.0) == []
    assert t.feed([framed("_call>{")], 1.0) == [Text(" ")]
    assert t.mode == DIALECT


def test_what_only_looked_like_a_marker_leaves_as_its_own_frames() -> None:
    t = turn(tools=TOOLS)
    assert t.feed([framed("if a <tool")], 1.0) == []
    assert t.mode == UNDECIDED
    assert t.feed([framed("s")], 1.0) == [framed("if a <tool"), framed("s")]
    out = play(t, framed(" <tool_"), STOP)
    assert out[0] == framed(" <tool_")
    assert t.fault is None


def test_a_possible_marker_longer_than_the_scan_bound_is_not_held() -> None:
    t = turn(tools=TOOLS, rescue_scan=3)
    assert t.feed([framed("<tool")], 1.0) == [framed("<tool")]


@pytest.mark.parametrize("dead", [
    "<tool_call>{broken</tool_call>", '<tool_call>{"name": "rm", "arguments": {}}</tool_call>', "<tool_call>"])
def test_a_dead_dialect_moves_on_or_is_text_but_never_an_invented_call(dead: str) -> None:
    t = turn(tools=TOOLS)
    assert play(t, META, *[framed(char) for char in dead], STOP, DONE) == []
    assert kind(t) == "unparseable_dialect"
    out = t.salvage(3.0)
    assert (text(out), calls(out), reasons(out)) == (dead, [], ["stop"])
    assert out[1] == framed("<")

    t = turn(tools=TOOLS)
    out = play(t, framed("So: "), framed(dead), STOP, DONE)
    assert (text(out), calls(out), reasons(out)) == ("So: " + dead, [], ["stop"])
    assert t.fault is None


def test_a_dialect_too_long_to_be_held_is_text() -> None:
    t = turn(tools=TOOLS, hold_max_bytes=2000)
    pieces = [CALL[:20], *["x" * 100] * 40, CALL[20:]]
    out = play(t, *[framed(piece) for piece in pieces], STOP)
    assert text(out) == "".join(pieces)
    assert calls(out) == [] and t.committed


def test_thinking_does_not_wait_for_a_dialect() -> None:
    t = turn(tools=TOOLS)
    t.feed([framed("Let me see. ")], 1.0)
    t.feed([framed(CALL[:30])], 1.0)
    assert t.feed([Reasoning("hm")], 1.0) == [Reasoning("hm")]


def test_an_annotation_keeps_its_place_in_held_text() -> None:
    t = turn(tools=TOOLS)
    t.feed([framed("So")], 1.0)
    note = Opaque("w", "annotation")
    assert t.feed([framed(" a <"), note], 1.0) == []
    assert t.feed([framed(" b")], 1.0) == [framed(" a <"), note, framed(" b")]


def test_real_calls_win_over_text_that_looks_like_one() -> None:
    out = play(turn(tools=TOOLS), framed(CALL), *DELTAS, STOP, DONE)
    assert (text(out), calls(out)) == (CALL, [("get_weather", PARIS)])


def test_a_whole_reply_is_looked_at_as_a_whole() -> None:
    t = turn(tools=TOOLS, stream=False)
    assert t.feed([framed("Let me see. " + CALL + " Done."), STOP], 1.0) == []
    out = t.feed([DONE], 1.0)
    assert [name for name, _ in calls(out)] == ["get_weather"]
    assert text(out).split() == ["Let", "me", "see.", "Done."]


def test_a_whole_reply_that_is_one_json_call_is_a_call_but_in_a_stream_it_is_text() -> None:
    answer = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
    out = play(turn(tools=TOOLS, stream=False), framed(answer), STOP, DONE)
    assert (len(calls(out)), text(out), reasons(out)) == (1, "", ["tool_calls"])
    assert text(play(turn(tools=TOOLS), framed(answer), STOP, DONE)) == answer
    other = '{"name": "nobody", "arguments": {}}'
    assert text(play(turn(tools=TOOLS, stream=False), framed(other), STOP, DONE)) == other


def test_rescued_calls_never_repeat_an_id() -> None:
    outs = [play(turn(tools=TOOLS), framed(CALL + CALL), STOP, DONE) for _ in range(2)]
    ids = [event.id for out in outs for event in out if isinstance(event, ToolCall)]
    assert len(ids) == 4 == len(set(ids))


def test_each_choice_is_rescued_by_itself() -> None:
    out = play(turn(tools=TOOLS, n=2), framed("Hi"), framed(CALL, 1), framed(" there"), STOP, Finish("stop", 1), DONE)
    assert text(out) == "Hi there"
    assert [event.choice for event in out if isinstance(event, ToolCall)] == [1]
    assert [(event.choice, event.reason) for event in out if isinstance(event, Finish)] == [(0, "stop"), (1, "tool_calls")]


def test_much_work_is_left_to_eof() -> None:
    t = turn(tools=TOOLS)
    big = ToolDelta(index=0, id="c", name="get_weather", arguments=json.dumps({"city": "x" * 10_000}))
    assert t.feed([big, STOP, DONE], 1.0) == []
    assert t.done and t.heavy and not t.committed
    assert kinds(t.eof(2.0)) == ["ToolCall", "Finish", "Usage", "End"]
    assert not t.heavy and t.eof(3.0) == []


def test_many_small_calls_are_as_heavy_as_a_large_one() -> None:
    few, many = turn(tools=TOOLS), turn(tools=TOOLS)
    few.feed([ToolDelta(index=index, id=f"c{index}", name="now", arguments="{}") for index in range(20)], 1.0)
    many.feed([ToolDelta(index=index, id=f"c{index}", name="now", arguments="{}") for index in range(200)], 1.0)
    assert many.heavy and not few.heavy


def test_a_whole_reply_with_clean_calls_is_untouched() -> None:
    t = turn(tools=TOOLS, stream=False)
    play(t, ToolDelta(index=0, id="call_1", name="get_weather", arguments=PARIS), Finish("tool_calls"), USAGE, DONE)
    assert not t.touched
    t = turn(tools=TOOLS, stream=False)
    play(t, ToolDelta(index=0, name="get_weather", arguments=PARIS), Finish("tool_calls"), USAGE, DONE)
    assert t.touched


def test_a_fault_after_a_live_call_is_told() -> None:
    t = turn(tools=TOOLS, tool_calls="live")
    t.feed([DELTAS[0], DELTAS[1]], 1.0)
    assert isinstance(t.eof(1.0)[-1], Fault)


def test_a_live_call_that_turns_out_broken_is_told() -> None:
    t = turn(tools=TOOLS, tool_calls="live")
    out = play(t, DELTAS[0], ToolDelta(index=0, arguments='["no object"]'), Finish("tool_calls"), DONE)
    assert kinds(out)[0] == "ToolStart" and isinstance(out[-1], Fault)
    assert kind(t) == "invalid_tool_arguments"


def test_a_live_call_that_length_cut_is_passed_on_as_it_is() -> None:
    out = play(turn(tools=TOOLS, tool_calls="live"), DELTAS[0], DELTAS[1], Finish("length"), DONE)
    assert reasons(out) == ["length"] and kinds(out)[-1] == "End"


def test_a_turn_that_the_provider_could_not_parse_itself_is_rescued_from_its_error() -> None:
    body = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": CALL}}
    fault = Fault(GatewayError("in_band", "Failed to call a function.", verbatim=body))
    t = turn(tools=TOOLS)
    out = play(t, META, fault)
    assert (calls(out)[0][0], reasons(out), t.fault) == ("get_weather", ["tool_calls"], None)
    t = turn()
    assert play(t, META, fault) == [] and t.fault is fault.error
    assert play(turn(tools=TOOLS, rescue=False), fault) == []


def test_a_rescued_call_counts_as_output() -> None:
    t = turn(tools=TOOLS, prompt_tokens=5)
    play(t, framed(CALL), STOP)
    assert t.usage is not None and t.usage.estimated and t.usage.output > 5
