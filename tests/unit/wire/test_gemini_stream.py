"""A Gemini upstream's stream as events, and a turn as a stream for a Gemini client."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.gemini import GEMINI
from tests.unit.wire.frames import dump
from tests.unit.wire.gemini_turns import MODEL, USAGE, decode, frame, kinds, say, shown, sse, turn

TOOLS = {"f": None, "g": None}


def call(name="f", args=None, part=None, **more):
    return {"functionCall": {"name": name, **({"args": args} if args is not None else {}), **more}, **(part or {})}


def encoded(events, **fields):
    """The frames that a client gets, as JSON."""
    data = GEMINI.encoder(shown(**fields)).encode(events)
    assert b"event:" not in data and b"[DONE]" not in data and not data.startswith(b":")
    if fields.get("operation") == "chat-array":
        return json.loads(data)
    return [json.loads(line[6:]) for line in data.split(b"\n") if line]


# ---------------------------------------------------------------- reading
def test_plain_frames_carry_their_bytes_and_usage_is_told_with_the_reason():
    frames = [dump(say("Hel", usage=USAGE)), dump(say("lo", usage=USAGE)), dump(say("", finish="STOP", usage=USAGE))]
    events = decode(sse(*frames))
    assert kinds(events) == ["Meta", "Text", "Text", "Finish", "Usage", "End"]
    assert [event.raw for event in events[1:3]] == frames[:2]
    assert events[0] == ev.Meta("r1", MODEL) and events[-2].native == USAGE and events[3].reason == "stop"
    assert all(event.raw is None for event in decode(sse(*frames), same=False)[1:4])


def test_the_model_is_renamed_inside_the_bytes():
    spaced = b'{"candidates": [{"content": {"parts": [{"text": "a"}]},"index": 0}],"modelVersion": "up","x_new": 1.0}'
    event = decode(sse(spaced), model="shown")[1]
    assert event.raw == spaced.replace(b'"up"', b'"shown"')


def test_an_end_without_a_reason_is_a_cut():
    assert kinds(decode(sse(say("a")))) == ["Meta", "Text"]
    assert kinds(decode(sse(say("a")) + b'data: {"candi')) == ["Meta", "Text"]
    assert kinds(decode(sse(say("a"), say("b", finish="STOP"))[:-4])) == ["Meta", "Text", "Text", "Finish", "End"]


def test_a_reason_in_every_frame_ends_nothing_early():
    events = turn(decode(sse(*[say(text, finish="STOP") for text in "abc"])))
    assert "".join([e.text for e in events if type(e) is ev.Text]) == "abc" and kinds(events).count("Finish") == 1


def test_one_frame_that_says_everything_is_taken_apart():
    grounded = {"groundingMetadata": {"webSearchQueries": ["q"]}}
    events = decode(sse(frame({"text": "th", "thought": True}, {"text": "say"}, {"text": ""}, call(args={"a": 1}), finish="STOP",
                              usage=USAGE, **grounded)))
    assert kinds(events) == ["Meta", "Reasoning", "Text", "ToolDelta", "Finish", "Usage", "End"]
    thought, text, delta, finish = events[1:5]
    assert json.loads(thought.raw)["candidates"][0]["content"]["parts"] == [{"text": "th", "thought": True}]
    assert json.loads(text.raw)["candidates"][0] == {"content": {"parts": [{"text": "say"}], "role": "model"}, "index": 0}
    assert delta == ev.ToolDelta(0, "", "f", '{"a":1}', whole=True) and finish.reason == "tool_calls"
    assert json.loads(finish.raw)["candidates"][0]["groundingMetadata"] == grounded["groundingMetadata"]


def test_parallel_calls_of_one_name_stay_two_with_ids_of_their_own():
    same = [call(args={"a": 1}, part={"thoughtSignature": "sig"}), call(args={"a": 1}), call("g", {}, id="x")]
    events = turn(decode(sse(frame(*same, finish="STOP"))), tools=TOOLS)
    calls = [event for event in events if type(event) is ev.ToolCall]
    assert [(c.index, c.name) for c in calls] == [(0, "f"), (1, "f"), (2, "g")]
    assert len({c.id for c in calls} | {""}) == 4 and calls[2].id == "x" and calls[0].extra == {"thought_signature": "sig"}


def test_a_call_that_is_told_twice_by_its_id_is_one():
    twice = frame(call(args={"a": 1}, id="x"))
    calls = [e for e in decode(sse(twice, twice, frame(finish="STOP"))) if type(e) is ev.ToolDelta]
    assert len(calls) == 1


def test_arguments_in_pieces_are_put_together():
    pieces = [{"willContinue": True, "partialArgs": [{"jsonPath": "$.list[0].name", "stringValue": "a", "willContinue": True}]},
              {"willContinue": True, "partialArgs": [{"jsonPath": "$.list[0].name", "stringValue": "b"}, {"jsonPath": "$.n", "numberValue": 2}]},
              {"willContinue": True, "partialArgs": [{"jsonPath": "$.list[1]['odd key']", "boolValue": True}]}]
    events = decode(sse(frame({"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "s"}),
                        *[frame({"functionCall": piece}) for piece in pieces], frame({"functionCall": {}}),
                        frame({"functionCall": {"name": "g"}}), frame({"functionCall": {}}), frame({"text": ""}, finish="STOP")))
    first, second = [event for event in events if type(event) is ev.ToolDelta]
    assert json.loads(first.arguments) == {"list": [{"name": "ab"}, {"odd key": True}], "n": 2}
    assert first.extra == {"thought_signature": "s"} and (second.name, second.arguments) == ("g", "{}")


@pytest.mark.parametrize(("word", "reason"), [("STOP", "stop"), (1, "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"),
                                              ("RECITATION", "content_filter"), ("BLOCKLIST", "content_filter"),
                                              ("PROHIBITED_CONTENT", "content_filter"), ("SPII", "content_filter"), ("NEW_WORD", "new_word")])
def test_reasons(word, reason):
    assert decode(sse(frame(finish=word)))[1].reason == reason


@pytest.mark.parametrize("word", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", 9])
def test_a_model_that_stumbled_is_a_failure_to_be_tried_again(word):
    fault = decode(sse(say("a"), frame(finish=word, finishMessage="bad call")))[-1]
    assert type(fault) is ev.Fault and fault.error.kind == "in_band" and "bad call" in fault.error.message


def test_a_candidate_without_content_has_its_reason():
    assert decode(sse({"candidates": [{"finishReason": "SAFETY", "safetyRatings": []}]}))[1].reason == "content_filter"
    assert kinds(decode(sse({"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]}))) == ["Meta", "Finish", "End"]


def test_a_blocked_prompt_is_a_content_filter():
    events = turn(decode(sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": 4}})))
    assert [e.reason for e in events if type(e) is ev.Finish] == ["content_filter"]
    assert encoded(events)[-1]["promptFeedback"] == {"blockReason": "SAFETY"}


def test_a_frame_of_counts_ends_nothing():
    events = decode(sse(say("a"), {"usageMetadata": USAGE}, say("b", finish="STOP"), {"usageMetadata": {**USAGE, "totalTokenCount": 11}}))
    assert [e.text for e in events if type(e) is ev.Text] == ["a", "b"]
    assert [e.total for e in events if type(e) is ev.Usage][-1] == 11


@pytest.mark.parametrize("data", [b"data: [DONE]\r\n\r\n", b": ping\n\n", b"event: x\n\n"])
def test_what_says_nothing_is_passed_over(data):
    assert kinds(decode(sse(say("a", finish="STOP")) + data)) == ["Meta", "Text", "Finish", "End"]


def test_an_error_object_is_a_failure_with_its_status():
    fault = decode(sse(say("a"), {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}, say("b")))[-1]
    assert (fault.error.upstream_status, fault.error.message) == (503, "overloaded")
    named = decode(sse([{"error": {"message": "slow down", "status": "RESOURCE_EXHAUSTED"}}]))[-1]
    assert named.error.upstream_status == 429
    assert decode(b"data: <html>\n\n")[-1].error.kind == "bad_reply"


def test_pictures_are_an_answer():
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    own = decode(sse(frame(image)))[1]
    assert own.counts and own.wire == "gemini" and own.raw == dump(frame(image))
    chat = decode(sse(frame(image)), same=False)[1]
    assert chat.counts and chat.payload[0]["image_url"]["url"] == "data:image/png;base64,AAAA"


def test_what_google_runs_itself_passes_for_its_own_clients_only():
    code = {"executableCode": {"code": "1", "language": "PYTHON"}}
    event = decode(sse(frame(code)))[1]
    assert type(event) is ev.Opaque and event.raw == dump(frame(code)) and not event.counts
    assert decode(sse(frame(code)), same=False)[1].raw is None


def test_candidates_keep_their_numbers():
    two = {"candidates": [say("a", finish="STOP")["candidates"][0], {**say("b", finish="STOP")["candidates"][0], "index": 1}],
           "modelVersion": MODEL}
    events = decode(sse(two))
    assert [(e.text, e.choice) for e in events if type(e) is ev.Text] == [("a", 0), ("b", 1)]
    frames = encoded(turn(events, n=2))
    assert [(c["index"], c.get("finishReason")) for f in frames for c in f["candidates"]] == [(0, None), (1, None), (0, "STOP"), (1, "STOP")]


def test_thoughts_and_their_tokens_count_as_output():
    usage = {"promptTokenCount": 5, "toolUsePromptTokenCount": 2, "cachedContentTokenCount": 3, "candidatesTokenCount": 4,
             "thoughtsTokenCount": 6, "totalTokenCount": 17}
    event = decode(sse(frame(finish="STOP", usage=usage)))[2]
    assert (event.input, event.output, event.cached, event.reasoning, event.total) == (7, 10, 3, 6, 17)
    missing = decode(sse(frame(finish="STOP", usage={"promptTokenCount": 5, "thoughtsTokenCount": 2, "totalTokenCount": 9})))[2]
    assert missing.output == 4


# ---------------------------------------------------------------- writing
def test_untouched_frames_leave_as_they_came():
    frames = [dump({**say("Hel", usage=USAGE), "new": {"a_b": 1}}), dump(say("lo"))]
    data = GEMINI.encoder(shown()).encode(turn(decode(sse(*frames, say("", finish="STOP", usage=USAGE)))))
    assert data.startswith(b"data: %b\n\ndata: %b\n\n" % tuple(frames))
    last = json.loads(data.split(b"data: ")[-1])
    assert last["usageMetadata"] == USAGE and last["candidates"][0]["finishReason"] == "STOP"


def test_a_frame_of_a_thought_and_a_text_leaves_as_it_came_if_both_leave_together():
    both = dump(frame({"text": "th", "thought": True}, {"text": "hi"}, {"text": "again", "thought": True}, newField=1))
    events = decode(sse(both, say("", finish="STOP")))
    assert kinds(events)[1:4] == ["Reasoning", "Text", "Reasoning"]
    assert GEMINI.encoder(shown()).encode(events).startswith(b"data: " + both + b"\n\n")
    apart = GEMINI.encoder(shown())
    first, rest = apart.encode(events[:2]), apart.encode([ev.Text("hi"), *events[3:]])
    texts = [p["text"] for line in (first + rest).split(b"\n\n") if line for p in json.loads(line[6:])["candidates"][0]["content"]["parts"]]
    assert texts == ["th", "hi", "again", ""]


def test_an_answer_that_did_not_stream_shows_the_clients_name_of_the_model():
    events = GEMINI.parse_reply(dump({**say("a", finish="STOP"), "modelVersion": "up", "new": 1}), True)
    frames = encoded(events)
    assert [f["modelVersion"] for f in frames] == [MODEL, MODEL] and frames[0]["new"] == 1


def foreign():
    return [ev.Meta("x", "up"), ev.Reasoning("th"), ev.Text("hi"), ev.ToolCall(0, "c1", "f", '{"a":1}', extra={"thought_signature": "s"}),
            ev.ToolCall(1, "c2", "g", "{}"), ev.Finish("tool_calls"), ev.Usage(input=9, output=5, cached=4, reasoning=2, total=14), ev.End()]


def test_a_foreign_turn_in_frames_of_this_format():
    thought, text, calls, last = encoded(foreign(), same=False)
    assert thought == {"candidates": [{"content": {"parts": [{"text": "th", "thought": True}], "role": "model"}, "index": 0}],
                       "modelVersion": MODEL, "responseId": "req1"}
    assert text["candidates"][0]["content"]["parts"] == [{"text": "hi"}]
    assert calls["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}, "thoughtSignature": "s"},
        {"functionCall": {"name": "g", "args": {}, "id": "c2"}}]
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["usageMetadata"] == {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 14,
                                     "cachedContentTokenCount": 4, "thoughtsTokenCount": 2}


def test_the_array_is_one_json_value_with_the_same_frames():
    assert encoded(foreign(), same=False, operation="chat-array") == encoded(foreign(), same=False)
    assert GEMINI.encoder(shown(operation="chat-array")).encode(foreign()[1:3]).startswith(b"[{")


def test_live_calls_leave_whole():
    events = [ev.ToolStart(0, "c", "f"), ev.ToolArgs(0, '{"a"'), ev.ToolArgs(0, ":1}"), ev.Finish("tool_calls"), ev.End()]
    assert encoded(events, same=False)[0]["candidates"][0]["content"]["parts"] == [{"functionCall": {"name": "f", "args": {"a": 1}, "id": "c"}}]


@pytest.mark.parametrize(("reason", "word"), [("stop", "STOP"), ("tool_calls", "STOP"), ("length", "MAX_TOKENS"), ("refusal", "SAFETY"),
                                              ("content_filter", "SAFETY"), ("pause", "STOP"), ("odd", "STOP")])
def test_reasons_for_a_client(reason, word):
    assert encoded([ev.Finish(reason), ev.End()], same=False)[-1]["candidates"][0]["finishReason"] == word


def test_the_upstreams_own_reason_survives_where_it_means_the_same():
    assert encoded(turn(decode(sse(say("a", finish="RECITATION")))))[-1]["candidates"][0]["finishReason"] == "RECITATION"


@pytest.mark.parametrize("operation", ["chat", "chat-array"])
def test_a_failure_is_the_last_thing_of_a_stream(operation):
    error = GatewayError("overloaded", "busy", retry_after_s=2)
    frames = encoded([ev.Text("a"), ev.Fault(error), ev.Text("b")], same=False, operation=operation)
    assert len(frames) == 2 and frames[1]["error"]["code"] == 503 and frames[1]["error"]["status"] == "UNAVAILABLE"
    assert {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.000s"} in frames[1]["error"]["details"]


def test_silence_has_no_words():
    assert GEMINI.silence == b""
