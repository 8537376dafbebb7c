"""What a Responses upstream's stream says, and what of it reaches a client that reads the same format."""
import json

import pytest

from gateway.core import events as ev
from tests.unit.wire.responses_turns import (
    MODEL,
    USAGE,
    call_frames,
    decode,
    dump,
    message,
    passed,
    read,
    reasoning_frames,
    response,
    sound,
    sse,
    stream,
    text_frames,
)

TOOLS = {"f": {"type": "object", "properties": {"a": {"type": "integer"}}}}


def said(events, kind=ev.Text):
    return "".join(e.text for e in events if type(e) is kind)


def finish(events):
    return [e.reason for e in events if type(e) is ev.Finish]


# ---------------------------------------------------------------- reading
def test_text_reasoning_usage_and_the_end_are_read():
    events = decode(stream(*reasoning_frames(["hm", "m"]), *text_frames(["Hel", "lo"], 1)), same=False)
    assert said(events) == "Hello" and said(events, ev.Reasoning) == "hmm" and finish(events) == ["stop"]
    usage = next(e for e in events if type(e) is ev.Usage)
    assert (usage.input, usage.cached, usage.output, usage.reasoning, usage.total) == (9, 4, 5, 2, 14)
    assert type(events[-1]) is ev.End and events[0].id == "resp_up" and events[0].model == MODEL


def test_any_cut_says_the_same():
    data = stream(*reasoning_frames(["é", "日本"]), *text_frames(["a", "🦊"], 1), *call_frames(2))
    whole = [repr(e) for e in decode(data)]
    assert all([repr(e) for e in decode(data, cut=cut)] == whole for cut in (1, 3, 64, 1000))


def test_a_call_is_told_in_pieces_and_ends_the_turn_as_one():
    events = decode(stream(*call_frames(0)), same=False)
    deltas = [e for e in events if type(e) is ev.ToolDelta]
    assert (deltas[0].id, deltas[0].name, deltas[0].kind) == ("call_1", "f", "function")
    assert "".join(d.arguments for d in deltas) == '{"a":1}' and finish(events) == ["tool_calls"]


def test_a_call_without_deltas_is_read_from_its_end():
    frames = call_frames(0)
    events = decode(stream(frames[0], frames[-1]), same=False)
    assert "".join(e.arguments for e in events if type(e) is ev.ToolDelta) == '{"a":1}'


def test_a_freeform_call_keeps_its_text():
    item = {"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "c", "name": "patch", "input": "a b"}
    events = decode(stream({"type": "response.output_item.added", "output_index": 0, "item": {**item, "input": ""}},
                           {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0, "delta": "a "},
                           {"type": "response.output_item.done", "output_index": 0, "item": item}), same=False)
    deltas = [e for e in events if type(e) is ev.ToolDelta]
    assert {d.kind for d in deltas} == {"custom"} and "".join(d.arguments for d in deltas) == "a b"


def test_text_that_only_the_end_holds_is_not_lost():
    frames = text_frames(["whole"])
    for kept in ([frames[0], frames[1], *frames[3:]], [frames[0], frames[-1]], [frames[-1]], []):
        data = stream(*kept, output=[message("whole")])
        assert said(decode(data, same=False)) == "whole"
        assert sound(read(passed(data)))["output"][0]["content"][0]["text"] == "whole"


@pytest.mark.parametrize(("status", "details", "reason"), [
    ("completed", None, "stop"), ("incomplete", {"reason": "max_output_tokens"}, "length"),
    ("incomplete", {"reason": "content_filter"}, "content_filter"), ("incomplete", None, "length")])
def test_every_status_has_a_reason(status, details, reason):
    data = stream(*text_frames(["x"]), end=response(status, [message("x")], USAGE, incomplete_details=details))
    assert finish(decode(data)) == [reason]
    assert read(passed(data))[-1]["type"] == "response." + status


@pytest.mark.parametrize("frame", [
    {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None},
    {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow down"}},
    {"type": "response.failed", "response": response("failed", error={"code": "rate_limit_exceeded", "message": "Slow down"})},
    {"type": "response.completed", "response": response("failed", error={"code": "rate_limit_exceeded", "message": "Slow down"})},
])
def test_a_failure_is_told_in_every_shape_and_nothing_is_read_after_it(frame):
    events = decode(sse({"type": "response.created", "response": response()}, frame, *text_frames(["no"])))
    assert type(events[-1]) is ev.Fault and events[-1].error.message == "Slow down"
    assert not said(events)
    assert events[-1].error.verbatim["error"]["code"] == "rate_limit_exceeded"


def test_a_cut_stream_has_no_end():
    data = stream(*text_frames(["Hello"]))
    events = decode(data[:data.index(b"event: response.completed")])
    assert said(events) == "Hello" and not any(type(e) in (ev.End, ev.Finish) for e in events)


def test_a_page_instead_of_a_frame_is_a_failure_and_words_in_between_are_not():
    assert type(decode(b"data: <html>\n\n")[-1]) is ev.Fault
    data = stream(*text_frames(["Hello"]))
    at = data.index(b"event: response.output_text.delta")
    assert said(decode(data[:at] + b"data: still here\n\n: comment\n\nevent: ping\ndata: {}\n\n" + data[at:])) == "Hello"
    assert type(decode(data[:at] + b'data: {"type": "response.out\n\n' + data[at:])[-1]) is ev.Fault


def test_half_a_surrogate_pair_waits_for_the_other():
    frames = text_frames(["_one_", "_two_"])
    data = stream(*frames).replace(b"_one_\"", b'x\\ud83e"').replace(b"_two_\"", b'\\udd8a"').replace(b"_one__two_", "x🦊".encode())
    assert said(decode(data, same=False)) == "x🦊"


def test_generated_media_and_items_for_the_client_are_answers():
    for kind, counts in (("image_generation_call", True), ("local_shell_call", True), ("web_search_call", False)):
        item = {"id": "i_1", "type": kind, "status": "completed"}
        data = stream({"type": "response.output_item.added", "output_index": 0, "item": item},
                      {"type": "response.output_item.done", "output_index": 0, "item": item})
        assert any(type(e) is ev.Opaque and e.counts for e in decode(data)) is counts
        assert any(type(e) is ev.Opaque for e in decode(data, same=False)) is counts


# ---------------------------------------------------------------- passing on
def test_untouched_frames_leave_byte_for_byte():
    data = stream(*reasoning_frames(["hm"]), *text_frames(["Hel", "lo 日本 \u2028"], 1),
                  {"type": "response.brand_new", "x": [1.0, None]})
    assert passed(data) == data


def test_framing_becomes_ours():
    data = stream(*text_frames(["Hello"]))
    bare = b"".join(line + b"\r\n\r\n" for line in data.split(b"\n") if line.startswith(b"data"))
    assert passed(b": hi\n\nretry: 3\n\n" + bare + b"data: [DONE]\n\n") == data


def test_the_model_is_renamed_wherever_a_response_names_it():
    out = read(passed(stream(*text_frames(["Hello"])), model="shown"))
    assert {f["response"]["model"] for f in out if "response" in f} == {"shown"}
    assert out[-1]["response"]["x_new"] == {"kept": True}


@pytest.mark.parametrize("lacking", [
    {"sequence_number"}, {"output_index"}, {"item_id"}, {"content_index"}, {"sequence_number", "output_index", "item_id"}])
def test_missing_numbers_and_ids_are_filled_in(lacking):
    docs = read(stream(*text_frames(["Hel", "lo"]), *call_frames(1)))
    data = sse(*[{k: v for k, v in doc.items() if k not in lacking} for doc in docs])
    out = read(passed(data, tools=TOOLS))
    final = sound(out)
    assert [i["type"] for i in final["output"]] == ["message", "function_call"]
    assert all({"item_id", "output_index", "content_index"} <= set(f) for f in out if f["type"] == "response.output_text.delta")


def test_ids_that_change_from_frame_to_frame_become_one():
    docs = read(stream(*reasoning_frames(["hm"]), *text_frames(["Hel", "lo"], 1), *call_frames(2)))
    for n, doc in enumerate(docs):
        if "item_id" in doc:
            doc["item_id"] = f"rotated_{n}"
        if "item" in doc:
            doc["item"]["id"] = f"rotated_{n}"
        for item in doc.get("response", {}).get("output", ()):
            item["id"] += f"_{n}"
    sound(read(passed(sse(*docs), tools=TOOLS)))


def test_a_part_that_nobody_opened_and_a_response_without_time_or_model_are_mended():
    frames = [f for f in text_frames(["Hel", "lo"]) if f["type"] != "response.content_part.added"]
    docs = read(stream(*frames))
    for doc in docs:
        for name in ("created_at", "model", "object"):
            doc.get("response", {}).pop(name, None)
    out = read(passed(sse(*docs)))
    sound(out)
    kinds = [f["type"] for f in out]
    assert kinds.index("response.content_part.added") < kinds.index("response.output_text.delta")
    assert all(f["response"]["created_at"] and f["response"]["model"] and f["response"]["object"] == "response"
               for f in out if "response" in f)


def test_a_stream_without_its_beginning_or_its_items_gets_them():
    docs = read(stream(*text_frames(["Hello"])))
    deltas_only = [d for d in docs if d["type"] in ("response.output_text.delta", "response.completed")]
    assert sound(read(passed(sse(*deltas_only))))["output"][0]["content"][0]["text"] == "Hello"


@pytest.mark.parametrize("end", [
    response("completed", [], USAGE), response("completed", [message("Hello", "other")], USAGE),
    response("completed", [message("Hello")], None), response("completed", [message("Hello")], {"input_tokens": 9, "output_tokens": 5})])
def test_the_last_response_holds_what_was_streamed_and_counts(end):
    final = sound(read(passed(stream(*text_frames(["Hello"]), end=end))))
    assert final["output"] == [message("Hello")]


def test_calls_leave_with_their_own_ids_at_their_own_place_and_the_last_frame_untouched():
    data = stream(*text_frames(["Hi"]), *call_frames(1, namespace="n"), *call_frames(2, id_="fc_2", call_id="call_2"))
    out = passed(data, tools=TOOLS)
    final = sound(read(out))
    assert final["output"][1]["namespace"] == "n" and [i["id"] for i in final["output"]] == ["msg_1", "fc_1", "fc_2"]
    assert out.endswith(data[data.index(b"event: response.completed"):])


def test_text_behind_a_call_moves_before_it_and_is_numbered_anew():
    out = read(passed(stream(*call_frames(0), *text_frames(["Hi"], 1)), tools=TOOLS))
    assert [i["type"] for i in sound(out)["output"]] == ["message", "function_call"]
    live = read(passed(stream(*call_frames(0), *text_frames(["Hi"], 1)), tools=TOOLS, tool_calls="live"))
    assert [i["type"] for i in sound(live)["output"]] == ["function_call", "message"]


def test_broken_arguments_are_repaired_in_the_stream_and_in_the_last_response():
    out = read(passed(stream(*call_frames(0, ('{"a"', ":1,}"))), tools=TOOLS))
    assert json.loads(sound(out)["output"][0]["arguments"]) == {"a": 1}


def test_thinking_written_as_text_becomes_an_item_of_its_own():
    final = sound(read(passed(stream(*text_frames(["<think>hm</think>", "Hello"])))))
    assert [i["type"] for i in final["output"]] == ["reasoning", "message"]
    assert final["output"][1]["content"][0]["text"] == "Hello"


def test_a_call_written_as_text_becomes_a_call():
    text = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    final = sound(read(passed(stream(*text_frames([text[:9], text[9:]])), tools=TOOLS)))
    assert [i["type"] for i in final["output"]] == ["function_call"]


def test_interleaved_items_keep_the_order_of_their_frames():
    text, thought = text_frames(["Hel", "lo"]), reasoning_frames(["hm"], 1)
    data = stream(*text[:3], *thought[:3], *text[3:], *thought[3:],
                  output=[text[-1]["item"], thought[-1]["item"]])
    assert passed(data) == data


def test_a_failure_after_the_commit_is_the_last_word():
    data = stream(*text_frames(["Hello"]))
    cut = data[:data.index(b"event: response.output_text.done")]
    out = read(passed(cut))
    assert [f["type"] for f in out[-2:]] == ["response.output_text.delta", "response.failed"]
    last = out[-1]
    assert last["sequence_number"] == out[-2]["sequence_number"] + 1
    assert last["response"]["status"] == "failed" and last["response"]["error"]["message"] and last["response"]["error"]["code"]


def test_numbers_inside_strings_are_not_taken_for_the_frames_own():
    odd = '"sequence_number":0,"output_index":0'
    data = stream(*call_frames(0), *text_frames([odd, "x"], 1))
    final = sound(read(passed(data, tools=TOOLS)))
    assert final["output"][0]["content"][0]["text"] == odd + "x"


def test_frames_that_make_no_sense_do_no_harm():
    odd = [{"type": "response.output_item.added"}, {"type": "response.output_item.done", "item": 3},
           {"type": "response.output_text.delta", "delta": {"a": 1}}, {"type": "response.output_text.done", "text": None},
           {"type": "response.function_call_arguments.delta", "delta": 7}, {"type": "response.content_part.done", "part": []},
           {"type": "response.output_item.done", "output_index": 77, "item": {"type": "message"}}, {"x": 1}]
    data = stream(*text_frames(["Hello"]))
    at = data.index(b"event: response.output_text.done")
    extra = b"".join(b"data: %b\n\n" % dump(doc) for doc in odd)
    out = passed(data[:at] + extra + data[at:])
    assert read(out)[-1]["type"] in ("response.completed", "response.failed")
