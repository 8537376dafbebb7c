"""How turns of other formats are told to a Responses client: one item after the other, and all of it again at the end."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from tests.unit.wire.responses_turns import RESPONSES, asked, read, shown, sound

USAGE = ev.Usage(input=9, output=5, cached=4, reasoning=2, total=14)
PATCH = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}


def told(*events, finish="stop", usage=USAGE, **fields):
    """The frames for a client, and the whole answer, which must be the same."""
    whole = [ev.Meta("chatcmpl-1", "theirs", 7), *events, ev.Finish(finish), usage, ev.End()]
    show = shown(same=False, request=asked(**fields))
    encoder = RESPONSES.encoder(show)
    frames = read(b"".join(encoder.encode([event]) for event in whole))
    final = sound(frames)
    assert encoder.final == final
    assert json.loads(RESPONSES.build_reply(fold(whole), show, None)) == final
    return frames, final


def kinds(frames):
    return [frame["type"].removeprefix("response.") for frame in frames]


def test_text_is_told_in_the_order_that_clients_rely_on():
    frames, final = told(ev.Text("Hel"), ev.Text("lo"))
    assert kinds(frames) == ["created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
                             "output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed"]
    assert [f["sequence_number"] for f in frames] == list(range(10))
    assert {(f["item_id"], f["output_index"], f["content_index"]) for f in frames[3:8]} == {(final["output"][0]["id"], 0, 0)}
    assert final["output"][0]["content"] == [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]
    assert final["usage"] == {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
                              "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14}
    assert (final["id"], final["created_at"], final["model"], final["status"]) == ("resp_t", 9, "m", "completed")


def test_thinking_is_an_item_of_its_own_wherever_it_comes():
    frames, final = told(ev.Reasoning("hm"), ev.Text("one"), ev.Reasoning("oh"), ev.Text("two"))
    assert [i["type"] for i in final["output"]] == ["reasoning", "message", "reasoning", "message"]
    assert final["output"][0]["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert kinds(frames)[2:7] == ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
                                  "reasoning_summary_text.done", "reasoning_summary_part.done"]


def test_calls_follow_the_text():
    frames, final = told(ev.Text("Hi"), ev.ToolCall(0, "c1", "f", '{"a":1}'), ev.ToolCall(1, "c2", "g", ""), finish="tool_calls",
                         tools=[{"type": "function", "name": "f"}, {"type": "function", "name": "g"}])
    assert [(i["type"], i.get("call_id"), i.get("name"), i.get("arguments")) for i in final["output"]] == [
        ("message", None, None, None), ("function_call", "c1", "f", '{"a":1}'), ("function_call", "c2", "g", "")]
    added = [f["item"] for f in frames if f["type"] == "response.output_item.added"]
    assert added[1]["arguments"] == "" and added[1]["status"] == "in_progress" and final["status"] == "completed"


def test_live_calls_may_overlap():
    frames, final = told(ev.Text("Hi"), ev.ToolStart(0, "c1", "f"), ev.ToolArgs(0, '{"a"'), ev.ToolStart(1, "c2", "g"),
                         ev.ToolArgs(1, "{}"), ev.ToolArgs(0, ":1}"), finish="tool_calls")
    assert [i.get("arguments") for i in final["output"]] == [None, '{"a":1}', "{}"]
    deltas = [(f["output_index"], f["delta"]) for f in frames if f["type"].endswith("arguments.delta")]
    assert deltas == [(1, '{"a"'), (2, "{}"), (1, ":1}")]


@pytest.mark.parametrize(("arguments", "given"), [
    ('{"input":"*** Begin\\n+\\"w\\""}', '*** Begin\n+"w"'), ('{"patch":"x"}', "x"), ("not json", "not json"), ('{"input":""}', "")])
def test_a_freeform_tool_gets_its_text_back(arguments, given):
    for events in ([ev.ToolCall(0, "c1", "patch", arguments)],
                   [ev.ToolStart(0, "c1", "patch"), ev.ToolArgs(0, arguments[:5]), ev.ToolArgs(0, arguments[5:])]):
        frames, final = told(*events, finish="tool_calls", tools=[PATCH])
        item = final["output"][0]
        assert (item["type"], item["name"], item["call_id"], item["input"]) == ("custom_tool_call", "patch", "c1", given)
        assert not any("function_call" in f["type"] for f in frames)
        assert "".join(f["delta"] for f in frames if f["type"] == "response.custom_tool_call_input.delta") == given


def test_a_namespace_is_named_again():
    tools = [{"type": "namespace", "name": "agents.v1", "tools": [{"type": "function", "name": "close"}]}]
    request = asked(tools=tools)
    flat = request.body.tools[0].name
    assert flat == "agents_v1__close" and flat in request.tools
    _, final = told(ev.ToolCall(0, "c1", flat, "{}"), finish="tool_calls", tools=tools)
    assert (final["output"][0]["name"], final["output"][0]["namespace"]) == ("close", "agents.v1")


def test_a_local_shell_is_called_as_one():
    _, final = told(ev.ToolCall(0, "c1", "local_shell", '{"command":["ls"]}'), finish="tool_calls", tools=[{"type": "local_shell"}])
    item = final["output"][0]
    assert (item["type"], item["call_id"]) == ("local_shell_call", "c1")
    assert item["action"] == {"type": "exec", "command": ["ls"], "env": {}}


@pytest.mark.parametrize(("reason", "status", "why"), [
    ("length", "incomplete", "max_output_tokens"), ("content_filter", "incomplete", "content_filter"),
    ("refusal", "incomplete", "content_filter"), ("pause", "completed", None), ("odd", "completed", None)])
def test_a_turn_that_was_cut_is_incomplete(reason, status, why):
    frames, final = told(ev.Text("Hi"), finish=reason)
    assert frames[-1]["type"] == "response." + status and final["status"] == status
    assert (final["incomplete_details"] or {}).get("reason") == why
    assert final["output"][-1]["status"] == status


def test_a_refusal_is_a_part_of_its_own_and_a_finished_answer():
    frames, final = told(ev.Text("Well. "), ev.Refusal("I can"), ev.Refusal("not."), finish="refusal")
    assert final["status"] == "completed"
    assert final["output"][0]["content"][1] == {"type": "refusal", "refusal": "I cannot."}
    assert "refusal.done" in kinds(frames)


def test_an_empty_turn_is_a_whole_response():
    frames, final = told(finish="length")
    assert final["output"] == [] and kinds(frames) == ["created", "in_progress", "incomplete"]


def test_a_failure_ends_the_stream_with_its_words_and_a_number():
    encoder = RESPONSES.encoder(shown(same=False))
    frames = read(encoder.encode([ev.Text("Hi"), ev.Fault(GatewayError("truncated", "It broke off.")), ev.End(), ev.Text("no")]))
    assert kinds(frames)[-2:] == ["output_text.delta", "failed"]
    assert frames[-1]["response"]["error"] == {"code": "upstream_failed", "message": "It broke off."}
    assert frames[-1]["sequence_number"] == 5 and encoder.encode([ev.Text("more")]) == b""
    alone = read(RESPONSES.error_frame(GatewayError("timeout", "Late."), shown(same=False)))
    assert kinds(alone)[0] == "created" and kinds(alone)[-1] == "failed"


def test_what_only_another_format_knows_is_left_out():
    _, final = told(ev.Opaque("anthropic", "server_tool_use", {"type": "content_block_start"}, counts=True), ev.Text("Hi"),
                    ev.Reasoning("", signature="c2ln"), ev.Reasoning("", redacted="x"), ev.Text("other", choice=1))
    assert [i["type"] for i in final["output"]] == ["message"]


def test_the_request_is_repeated_in_the_response():
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    _, final = told(ev.Text("Hi"), tools=tools, instructions="Be brief.", temperature=0.5, metadata={"a": "b"}, store=False,
                    previous_response_id="resp_0", reasoning={"effort": "low"}, text={"format": {"type": "json_object"}})
    assert (final["tools"], final["instructions"], final["temperature"], final["metadata"]) == (tools, "Be brief.", 0.5, {"a": "b"})
    assert (final["store"], final["previous_response_id"], final["reasoning"]) == (False, "resp_0", {"effort": "low"})


def test_halves_of_characters_and_marks_survive():
    _, final = told(ev.Text("\ud83e"), ev.Text("\udd8a \u2028\x00\"\\"))
    assert final["output"][0]["content"][0]["text"] == "🦊 \u2028\x00\"\\"


def test_errors_have_openais_shape():
    body = json.loads(RESPONSES.render_error(GatewayError("limited", "Slow.")))
    assert body["error"] == {"message": "Slow.", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}
