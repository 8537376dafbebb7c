"""What an upstream's chat stream says, frame by frame; frames that may pass on are whole and carry the client's model name."""
import json

import pytest

from gateway.core import events as ev
from tests.unit.wire.frames import CHAT, MODEL, chunk, dump, sse, text

LIMIT = 1 << 20


def decoded(data: bytes, same: bool = True, model: str = MODEL) -> list[ev.Event]:
    decoder = CHAT.decoder(same, model, LIMIT)
    return decoder.feed(data) + decoder.close()


def payload(data: bytes, **how) -> list[ev.Event]:
    """Without the Meta that opens every stream."""
    return [event for event in decoded(data, **how) if type(event) is not ev.Meta]


def fault(data: bytes) -> ev.Fault:
    event = decoded(data)[-1]
    assert isinstance(event, ev.Fault)
    return event


# ---------------------------------------------------------------- plain frames
def test_a_plain_frame_is_one_text_and_passes_byte_for_byte():
    frame = dump(chunk({"content": "hé", "unknown": [1.50]}, system_fingerprint="fp", obfuscation="xx"))
    assert decoded(sse(frame)) == [ev.Meta("chatcmpl-up", MODEL, 1_700_000_000, None), ev.Text("hé", frame)]


def test_the_model_is_renamed_and_nothing_else():
    frame = dump(chunk({"content": "x"}, model="org/real", z=1.0))
    [event] = payload(sse(frame), model="shown")
    assert event.raw == frame.replace(b'"model":"org/real"', b'"model":"shown"')


def test_the_upstreams_own_name_is_told_and_kept_if_no_other_is_wanted():
    frame = dump(chunk({"content": "x"}, model="org/real"))
    meta, said = decoded(sse(frame), model="")
    assert (meta.model, said.raw) == ("org/real", frame)


def test_a_model_named_twice_in_a_frame_is_renamed_at_the_top_only():
    frame = chunk({"content": "x"}, model="real", more={"model": "real"})
    [event] = payload(sse(frame), model="shown")
    out = json.loads(event.raw)
    assert (out["model"], out["more"]) == ("shown", {"model": "real"})


def test_for_another_format_no_frames_are_kept():
    assert decoded(text("a", "b", "c", "d"), same=False)[1:] == [ev.Text(c) for c in "abcd"]


def test_the_opening_is_meta_with_its_frame():
    frame = dump(chunk({"role": "assistant", "content": ""}))
    assert decoded(sse(frame)) == [ev.Meta("chatcmpl-up", MODEL, 1_700_000_000, frame)]


def test_an_empty_delta_is_meta():
    assert [type(e) for e in decoded(sse(chunk({}), chunk({"content": None}), chunk({"role": None})))] == [ev.Meta] * 3


def test_text_may_hold_any_line_separator():
    odd = "L\u2028P\u2029N\u0085V\x0bF\x0cE"
    assert payload(text(odd))[0].text == odd


# ---------------------------------------------------------------- the envelope
@pytest.mark.parametrize("lacking", ["id", "object", "created", "model"])
def test_what_client_libraries_rely_on_is_filled_in(lacking):
    frames = [chunk({"content": c}, **{lacking: None}) for c in "abcde"]
    outs = [json.loads(e.raw) for e in payload(sse(*frames))]
    assert all(isinstance(out["created"], int) and out["object"] == "chat.completion.chunk" for out in outs)
    assert {out["model"] for out in outs} == {MODEL}
    assert len({out["id"] for out in outs}) == 1 and outs[0]["id"]
    assert "".join(out["choices"][0]["delta"]["content"] for out in outs) == "abcde"


def test_empty_envelope_fields_are_filled_in_and_numeric_ids_are_text():
    [event] = payload(sse(chunk({"content": "x"}, id=7, object="", model="")))
    out = json.loads(event.raw)
    assert (out["id"], out["object"], out["model"]) == ("7", "chat.completion.chunk", MODEL)


def test_frames_from_before_the_id_is_known_get_the_streams_id():
    early = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    meta, said = decoded(sse(early, chunk({"content": "x"})))
    out = json.loads(meta.raw)
    assert (out["id"], out["choices"], out["prompt_filter_results"]) == ("chatcmpl-up", [], [{"prompt_index": 0}])
    assert isinstance(said, ev.Text)


def test_missing_index_and_finish_reason_are_filled_in():
    frame = chunk(choices=[{"delta": {"content": "x"}}])
    [event] = payload(sse(frame))
    assert json.loads(event.raw)["choices"] == [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]


def test_an_empty_finish_reason_is_none():
    events = payload(sse(*[chunk({"content": c}, finish="") for c in "pqrs"]))
    assert [e.text for e in events] == list("pqrs")
    assert all(json.loads(e.raw)["choices"][0]["finish_reason"] is None for e in events)


def test_a_message_instead_of_a_delta_is_read():
    assert payload(sse(chunk(choices=[{"index": 0, "message": {"role": "assistant", "content": "whole"}}])))[0].text == "whole"


# ---------------------------------------------------------------- rich frames
def test_text_with_a_finish_and_usage_is_three_events():
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    said, finish, used = payload(sse(chunk({"content": "end"}, "stop", usage=usage, provider="x")))
    assert (said.text, finish.reason, used.input, used.output) == ("end", "stop", 3, 4)
    assert used.native == usage
    left, last = json.loads(said.raw), json.loads(finish.raw)
    assert "usage" not in left and "usage" not in last
    assert left["provider"] == last["provider"] == "x"
    assert left["choices"] == [{"index": 0, "delta": {"content": "end"}, "finish_reason": None}]
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]


def test_logprobs_stay_with_the_text():
    frame = chunk(choices=[{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": []}, "finish_reason": "length"}])
    said, finish = payload(sse(frame))
    assert json.loads(said.raw)["choices"][0]["logprobs"] == {"content": []}
    assert "logprobs" not in json.loads(finish.raw)["choices"][0]


def test_role_reasoning_and_calls_together_are_taken_apart():
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    delta = {"role": "assistant", "content": "", "reasoning": "hm", "tool_calls": [call]}
    thought, piece = payload(sse(chunk(delta)))
    assert isinstance(thought, ev.Reasoning) and thought.text == "hm"
    out = json.loads(thought.raw)["choices"][0]["delta"]
    assert out["reasoning"] == "hm" and "tool_calls" not in out
    assert piece == ev.ToolDelta(0, "c1", "f", "")


@pytest.mark.parametrize("delta", [
    {"reasoning_content": "hm"}, {"reasoning": "hm", "content": ""}, {"reasoning": "hm", "reasoning_details": [{"text": "hm"}]},
    {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]}, {"thinking": "hm"}, {"reasoning": {"content": "hm"}},
])
def test_reasoning_has_many_names_and_its_frame_passes(delta):
    frame = dump(chunk(delta))
    assert payload(sse(frame)) == [ev.Reasoning("hm", frame)]


def test_parts_become_text_and_reasoning():
    delta = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]}
    thought, said = payload(sse(chunk(delta, p="pad")))
    assert (thought.text, said.text) == ("hm", "yes")
    assert json.loads(thought.raw)["choices"][0]["delta"] == {"reasoning_content": "hm"}
    assert json.loads(said.raw)["choices"][0]["delta"] == {"content": "yes"}


def test_a_refusal_is_one():
    frame = dump(chunk({"refusal": "no"}))
    assert payload(sse(frame)) == [ev.Refusal("no", frame)]


def test_calls_may_come_as_they_like():
    calls = [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
             {"index": 3, "type": "custom", "custom": {"name": "g", "input": "raw"}},
             {"name": "h", "arguments": "{}"},
             {"index": 1, "function": {"arguments": None}, "extra_content": {"google": {"thought_signature": "s"}}}]
    assert payload(sse(chunk({"tool_calls": calls}))) == [
        ev.ToolDelta(None, "a", "f", '{"x":1}', whole=True), ev.ToolDelta(3, "", "g", "raw", kind="custom"),
        ev.ToolDelta(None, "", "h", "{}"),
        ev.ToolDelta(1, extra={"extra_content": {"google": {"thought_signature": "s"}}})]


def test_a_legacy_function_call_is_a_call():
    frames = [chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}}),
              chunk({}, "function_call")]
    first, second, finish = payload(sse(*frames))
    assert (first, second) == (ev.ToolDelta(0, "", "f"), ev.ToolDelta(0, arguments="{}"))
    assert finish.reason == "tool_calls"


def test_several_choices_are_told_apart():
    frame = chunk(choices=[{"index": i, "delta": {"content": c}, "finish_reason": None} for i, c in enumerate("ab")])
    assert [(e.text, e.choice, json.loads(e.raw)["choices"][0]["index"]) for e in payload(sse(frame))] == [("a", 0, 0), ("b", 1, 1)]


@pytest.mark.parametrize(("delta", "kind", "counts"), [
    ({"audio": {"id": "a", "data": "AAAA"}}, "audio", True), ({"images": [{"image_url": {"url": "data:"}}]}, "images", True),
    ({"annotations": [{"type": "url_citation"}]}, "annotations", False), ({"provider_metadata": {"x": 1}}, "provider_metadata", False),
])
def test_payload_without_a_neutral_form_passes_whole(delta, kind, counts):
    frame = dump(chunk(delta))
    [event] = payload(sse(frame))
    assert (event.kind, event.raw, event.counts, event.wire) == (kind, frame, counts, "openai-chat")


def test_encrypted_thoughts_beside_a_call_are_kept():
    details = [{"type": "reasoning.encrypted", "data": "xyz"}]
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    piece, kept = payload(sse(chunk({"tool_calls": [call], "reasoning_details": details})))
    assert isinstance(piece, ev.ToolDelta)
    assert json.loads(kept.raw)["choices"][0]["delta"] == {"reasoning_details": details}


# ---------------------------------------------------------------- the end
@pytest.mark.parametrize(("word", "reason"), [
    ("stop", "stop"), ("eos", "stop"), ("end_turn", "stop"), ("STOP", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"),
    ("MAX_TOKENS", "length"), ("function_call", "tool_calls"), ("tool_use", "tool_calls"), ("SAFETY", "content_filter"),
    ("whatever", "stop"),
])
def test_foreign_finish_words_are_ours(word, reason):
    [finish] = payload(sse(chunk({}, word)))
    assert finish.reason == reason
    assert json.loads(finish.raw)["choices"][0]["finish_reason"] == reason


def test_usage_of_every_place_is_read():
    native = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4},
              "completion_tokens_details": {"reasoning_tokens": 2}}
    for frame in (chunk(choices=[], usage=native), chunk({}, "stop", usage=native), chunk({}, "stop", x_groq={"usage": native})):
        used = payload(sse(frame))[-1]
        assert (used.input, used.output, used.total, used.cached, used.reasoning) == (10, 5, 15, 4, 2)
        assert used.native == native


def test_a_usage_frame_passes_whole_and_a_finish_frame_loses_it():
    native = {"prompt_tokens": 1, "completion_tokens": 1}
    frame = dump(chunk(choices=[], usage=native, cost=0.5))
    [used] = payload(sse(frame))
    assert json.loads(used.raw) == json.loads(frame)
    finish, _ = payload(sse(chunk({}, "stop", x_groq={"id": "r", "usage": native})))
    assert json.loads(finish.raw)["x_groq"] == {"id": "r"}


@pytest.mark.parametrize(("native", "input_", "output", "cached"), [
    ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}, 9, 1, 8),                     # DeepSeek
    ({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 7}, 9, 1, 7),                               # Moonshot
    ({"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 15, "completion_tokens_details": {"reasoning_tokens": 5}},
     9, 6, 0),                                                                                                  # xAI
    ({"input_tokens": 3, "output_tokens": 2}, 3, 2, 0), ({"prompt_tokens": None, "completion_tokens": "x"}, 0, 0, 0),
])
def test_usage_of_every_habit_is_read(native, input_, output, cached):
    [used] = payload(sse(chunk(choices=[], usage=native)))
    assert (used.input, used.output, used.cached) == (input_, output, cached)


def test_done_ends_and_nothing_is_read_after_it():
    assert decoded(text("a") + b"data: [DONE]\n\ndata: null\n\n" + text("b") + b"data: [DONE]\n\n")[1:] == [
        ev.Text("a", dump(chunk({"content": "a"}))), ev.End()]


# ---------------------------------------------------------------- failures
@pytest.mark.parametrize(("frame", "message"), [
    ({"error": {"message": "overloaded", "code": 502}}, "overloaded"),
    ({"error": "overloaded"}, "overloaded"),
    (chunk(choices=[], error={"message": "worker gone"}), "worker gone"),
    (chunk({"content": ""}, error={"code": 400, "message": "token limit"}), "token limit"),
    ({"object": "error", "message": "too long", "code": 40303}, "too long"),
    ({"detail": "Not Found"}, "Not Found"),
    ({"detail": [{"loc": ["body"], "msg": "bad value"}]}, "bad value"),
    ({"id": "", "choices": None, "error_type": "BadRequestError", "error_message": "context length"}, "context length"),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
    ({"message": "limit reached", "code": "rate"}, "limit reached"),
    ([{"error": {"message": "in an array"}}], "in an array"),
])
def test_every_shape_of_error_is_a_fault(frame, message):
    error = fault(text("a") + sse(dump(frame))).error
    assert error.kind == "in_band"
    assert message in error.message
    assert error.verbatim["error"]["message"]


def test_an_event_named_error_is_a_fault():
    error = fault(b'event: error\ndata: {"status_code":400,"message":"nope"}\n\n').error
    assert (error.message, error.upstream_status) == ("nope", 400)


def test_a_failed_generation_is_kept_for_the_rescue():
    error = fault(sse({"error": {"message": "m", "code": "tool_use_failed", "failed_generation": "<function=f>{}"}})).error
    assert error.extra == {"failed_generation": "<function=f>{}"}


def test_a_finish_that_says_error_is_a_fault():
    assert fault(sse(chunk({}, "error"))).error.kind == "in_band"


def test_a_frame_that_is_no_json_is_a_fault_at_the_beginning():
    assert fault(b"data: <html>\n\n").error.kind == "bad_reply"


def test_a_cut_object_in_the_middle_is_a_fault_since_its_text_is_missing():
    assert fault(text("a") + b'data: {"id":"x","choices":[{"del\n\n' + text("b")).error.kind == "bad_reply"


def test_a_keep_alive_word_in_the_middle_is_passed_over():
    assert [e.text for e in payload(text("a") + b"data: ping\n\n" + b"event: ping\ndata: {}\n\n" + text("b"))] == ["a", "b"]


def test_a_last_frame_that_was_cut_is_not_told():
    assert [type(e) for e in payload(text("a") + b'data: {"id":"x","cho')] == [ev.Text]


# ---------------------------------------------------------------- halves
def halves(*pieces: str) -> bytes:
    return b"".join(b'data: {"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
                    b'{"content":"%b"},"finish_reason":null}]}\n\n' % piece.encode() for piece in pieces)


def test_halves_of_a_character_pass_as_they_came_and_are_joined_for_others():
    data = halves("a", "\\ud83d", "\\ude42", "z")
    events = payload(data)
    assert b"".join(b"data: %b\n\n" % e.raw for e in events) == data
    assert "".join(e.text for e in events) == "a🙂z"
    assert "".join(e.text for e in payload(data, same=False)) == "a🙂z"


def test_a_half_without_its_other_is_a_replacement_character():
    assert "".join(e.text for e in payload(halves("a\\ud83d", "z"), same=False)) == "a\ufffdz"
    end = payload(halves("a\\ud83d") + sse(chunk({}, "stop")), same=False)
    assert "".join(e.text for e in end if isinstance(e, ev.Text)) == "a\ufffd"


def test_bytes_that_are_no_utf8_do_not_leave():
    frame = dump(chunk({"content": "ok"}, note="@")).replace(b"@", b"\xff")
    [event] = payload(sse(frame))
    assert event.text == "ok"
    event.raw.decode()


def test_numbers_that_are_no_json_do_not_leave():
    frame = dump(chunk({"content": "ok"}, note=0)).replace(b'"note":0', b'"note":-Infinity')
    [event] = payload(sse(frame))
    assert json.loads(event.raw)["note"] is None


# ---------------------------------------------------------------- lanes
def test_the_fast_lane_takes_what_it_has_seen_often_enough():
    decoder = CHAT.decoder(True, MODEL, LIMIT)
    assert decoder.run(text("a")) == 0
    decoder.feed(text("one", "two", "three"))
    assert decoder.run(text("four", "fünf", 'si"x\\n')) == 3


@pytest.mark.parametrize("read", [
    sse(chunk({"content": ""})), sse(chunk({}, "stop")), sse(chunk({"content": "x"}, "stop")), b"data: [DONE]\n\n", b": hi\n\n",
    sse(chunk({"content": "x"}, model="other")), sse(chunk({"reasoning": "x"})), sse(chunk({"content": "x"}, index=1)),
    text("x")[:-1], text("x")[1:], text("x") + b"\n", text("x").replace(b"\n", b"\r\n"), sse({"error": {"message": "x"}}),
    halves("\\ud83d"), sse(chunk({"content": "x", "refusal": "y"})), sse(chunk({"content": "x"}, usage={"a": 1})),
    text("x").replace(b'"x"', b'"x","y"'), text("x").replace(b'"x"', b'5'), text("x").replace(b'"x"', b'"\xff"'),
])
def test_the_fast_lane_leaves_everything_else(read):
    decoder = CHAT.decoder(True, MODEL, LIMIT)
    decoder.feed(text("one", "two", "three"))
    assert decoder.run(text("x")) == 1
    assert decoder.run(read) == 0
    assert decoder.run(text("x") + read) == 0


def test_the_fast_lane_is_closed_where_frames_must_change_or_do_not_pass():
    for same, model in ((True, "shown"), (False, MODEL)):
        decoder = CHAT.decoder(same, model, LIMIT)
        decoder.feed(text("one", "two", "three"))
        assert decoder.run(text("x")) == 0


def test_the_fast_lane_waits_while_half_a_frame_is_held():
    decoder = CHAT.decoder(True, MODEL, LIMIT)
    decoder.feed(text("one", "two", "three") + b"data: {")
    assert decoder.run(text("x")) == 0


def test_legacy_completions_are_read_too():
    frame = dump({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL,
                  "choices": [{"text": "hi", "index": 0, "logprobs": None, "finish_reason": None}]})
    end = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL,
           "choices": [{"text": "!", "index": 0, "finish_reason": "length"}]}
    first, said, finish = payload(sse(frame, end))
    assert (first.text, first.raw) == ("hi", frame)
    assert json.loads(said.raw)["choices"] == [{"text": "!", "index": 0, "finish_reason": None}]
    assert json.loads(finish.raw)["choices"] == [{"index": 0, "text": "", "finish_reason": "length"}]


def stream_of_calls() -> tuple[bytes, list[ev.Event]]:
    frames: list[bytes] = []
    events: list[ev.Event] = []
    for index in range(2):
        call = {"index": index, "id": f"c{index}", "type": "function", "function": {"name": "f", "arguments": ""}}
        frames.append(sse(chunk({"tool_calls": [call]})))
        events.append(ev.ToolDelta(index, f"c{index}", "f"))
        for piece in ('{"a', '": "', "x\\", 'n"', ", ", '"b":', "1", "}"):
            frames.append(sse(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})))
            events.append(ev.ToolDelta(index, arguments=piece))
    frames.append(sse(chunk({}, "tool_calls"), done=True))
    return b"".join(frames), events


@pytest.mark.parametrize("size", [1, 50, 1000, 100_000])
def test_pieces_of_arguments_are_the_same_for_every_lane(size):
    data, events = stream_of_calls()
    decoder = CHAT.decoder(True, MODEL, LIMIT)
    out = [e for at in range(0, len(data), size) for e in decoder.feed(data[at:at + size])]
    assert [e for e in out if isinstance(e, ev.ToolDelta)] == events
    assert [type(e) for e in out[-2:]] == [ev.Finish, ev.End]


@pytest.mark.parametrize("odd", [
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "x"}, "extra_content": {"google": {}}}], "images": [1]}),
    chunk({"tool_calls": [{"index": 0, "id": "again", "function": {"arguments": "x"}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "x", "name": "f"}}]}), chunk({"content": "x"}, "stop"),
])
def test_a_frame_of_another_shape_among_many_alike_is_read_for_what_it_is(odd):
    alike = [chunk({"tool_calls": [{"index": 0, "function": {"arguments": f"{i}"}}]}) for i in range(6)]
    data = sse(*alike, odd, *alike)
    whole = [repr(e) for e in decoded(data)]
    apart = CHAT.decoder(True, MODEL, LIMIT)
    apart._lessons = apart._recalls = 0
    assert whole == [repr(e) for e in apart.feed(data)]


def test_what_one_stream_taught_the_next_one_knows_but_for_its_id_and_time():
    def stream(name: str, created: int) -> bytes:
        return sse(*[chunk({"content": piece}, id=name, created=created, model="taught") for piece in "abcd"])

    first, second = CHAT.decoder(True, "taught", LIMIT), CHAT.decoder(True, "taught", LIMIT)
    first.feed(stream("one", 1))
    data = stream("two", 20)
    opening = data.index(b"\n\n") + 2
    second.feed(data[:opening])
    assert second.run(data[opening:]) == 0       # not looked for yet
    events = second.feed(data[opening:])
    assert [(event.text, json.loads(event.raw)["id"]) for event in events] == [("b", "two"), ("c", "two"), ("d", "two")]
    assert second.run(data[opening:]) == 3 and second.run(stream("one", 1)) == 0


def test_a_stream_that_looks_otherwise_is_not_read_by_what_another_taught():
    CHAT.decoder(True, "changed", LIMIT).feed(sse(*[chunk({"content": p}, model="changed") for p in "abcd"]))
    frames = [chunk({"content": p}, model="changed", service_tier="x") for p in "abcd"]
    assert [e.text for e in payload(sse(*frames), model="changed")] == list("abcd")
