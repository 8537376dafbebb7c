"""Streams of the Messages format: what an upstream says becomes events, and events become what a client reads."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.base import Shown

from . import anthropic_turns
from .anthropic_turns import (
    blocks,
    decode,
    delta,
    ending,
    frame,
    judged,
    of,
    opening,
    read,
    shown,
    start,
    stop,
    text_block,
    through,
    told,
    tool_block,
)


def kinds(events):
    return [type(event).__name__ for event in events]


# ---------------------------------------------------------------- upstream -> events
def test_a_plain_answer():
    events = decode(opening() + frame("ping") + text_block(0, "Hel", "lo") + ending(), same=False)
    assert kinds(events) == ["Meta", "Usage", "Opaque", "Text", "Text", "Opaque", "Finish", "Usage", "End"]
    assert (events[0].id, events[0].model) == ("msg_up", "m-up")
    assert events[6].reason == "stop"
    assert (events[7].input, events[7].output) == (11, 5)


@pytest.mark.parametrize("cut", [1, 3, 50])
def test_any_cut_of_the_bytes_gives_the_same_events(cut):
    data = opening() + text_block(0, "Grüße 🦊") + tool_block(1, "f", '{"a":', "1}") + ending("tool_use")
    assert decode(data, cut=cut) == decode(data)


def test_a_stream_without_a_final_blank_line_loses_nothing():
    assert kinds(decode((opening() + text_block(0, "x") + ending()).rstrip(b"\n")))[-1] == "End"


def test_usage_is_inclusive_and_cumulative():
    start_usage = {"input_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    usage = [e for e in decode(opening(usage=start_usage) + text_block(0, "x") + ending()) if type(e) is ev.Usage][-1]
    assert (usage.input, usage.cached, usage.cache_write, usage.output, usage.total) == (124, 100, 20, 5, 129)
    assert usage.native["cache_read_input_tokens"] == 100


@pytest.mark.parametrize("word, neutral", [
    ("end_turn", "stop"), ("max_tokens", "length"), ("stop_sequence", "stop"), ("tool_use", "tool_calls"),
    ("refusal", "refusal"), ("pause_turn", "pause"), ("model_context_window_exceeded", "length"), ("brand_new", "brand_new"),
])
def test_stop_reasons(word, neutral):
    finish = [e for e in decode(ending(word, "###")) if type(e) is ev.Finish]
    assert [(f.reason, f.stop_sequence) for f in finish] == [(neutral, "###")]


def test_calls_are_pieces_with_the_index_of_their_block():
    events = decode(tool_block(3, "f", '{"a"', ":1}"))
    assert events == [ev.ToolDelta(3, "toolu_1", "f"), ev.ToolDelta(3, arguments='{"a"'), ev.ToolDelta(3, arguments=":1}")]


def test_input_that_stands_in_the_start_is_taken_when_no_deltas_follow():
    whole = start(0, type="tool_use", id="t", name="f", input={"a": 1}) + stop(0)
    assert decode(whole)[-1] == ev.ToolDelta(0, arguments='{"a":1}', whole=True)
    both = start(0, type="tool_use", id="t", name="f", input={"a": 1}) + delta(0, "input_json_delta", partial_json='{"a":1}')
    assert [e.arguments for e in decode(both + stop(0))] == ["", '{"a":1}']


def test_an_error_event_ends_the_turn():
    error = frame("error", error={"type": "overloaded_error", "message": "Overloaded"})
    events = decode(opening() + error + text_block(0, "never"))
    assert kinds(events)[-1] == "Fault"
    fault = events[-1].error
    assert (fault.kind, fault.message, fault.upstream_status) == ("in_band", "Overloaded", 529)


@pytest.mark.parametrize("data", [b'data: {"error":{"message":"boom"}}\n\n', b'event: error\ndata: {"message":"boom"}\n\n'])
def test_errors_of_other_shapes_are_errors_too(data):
    (fault,) = decode(data)
    assert fault.error.message == "boom"
    assert json.loads(ANTHROPIC.render_error(fault.error))["error"]["type"] == "api_error"


def test_an_event_that_is_not_json_fails_the_turn():
    assert decode(b"data: {nonsense\n\n")[0].error.kind == "bad_reply"


def test_done_and_unknown_events_say_nothing():
    assert decode(b"event: data\ndata: [DONE]\n\n" + frame("brand_new_event", x=1) + frame("ping")) == []


def test_a_frame_above_the_limit_is_refused():
    with pytest.raises(GatewayError) as caught:
        ANTHROPIC.decoder(True, "m", 100).feed(b"data: " + b"x" * 200)
    assert caught.value.kind == "bad_reply"


def test_halves_of_an_emoji_are_put_together_for_other_formats():
    data = b"".join(b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}\n\n' % half
                    for half in (b"a\\ud83e", b"\\udd8a!"))
    assert "".join(e.text for e in decode(data, same=False)) == "a🦊!"


def test_half_an_emoji_alone_is_a_replacement_character():
    data = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\udd8a!"}}\n\n'
    assert decode(data, same=False)[0].text == "\ufffd!"


# ---------------------------------------------------------------- same format
def test_frames_pass_byte_for_byte():
    data = opening(vendor={"x": 1}) + start(0, type="text", text="", citations=None) \
        + delta(0, "text_delta", text="hé", logprob=-0.5) + stop(0) \
        + frame("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "c"}},
                usage={"output_tokens": 5, "cost": 0.1}, context_management=None) + frame("message_stop")
    assert ANTHROPIC.encoder(shown()).encode(judged(decode(data))) == data


def test_the_model_is_the_one_to_show():
    frames = read(ANTHROPIC.encoder(shown()).encode(judged(decode(opening() + text_block(0, "x") + ending(), model="other"))))
    assert frames[0]["message"]["model"] == "other"


def test_thinking_keeps_its_signature_and_redacted_data():
    data = opening() + start(0, type="thinking", thinking="", signature="") + delta(0, "thinking_delta", thinking="Hm.") \
        + delta(0, "signature_delta", signature="sig==") + stop(0) + start(1, type="redacted_thinking", data="SECRET") + stop(1) \
        + text_block(2, "So.") + ending()
    assert blocks(through(data)) == [{"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
                                     {"type": "redacted_thinking", "data": "SECRET"}, {"type": "text", "text": "So."}]


def test_numbers_stay_dense_when_the_turn_moves_calls_behind_the_text():
    data = opening() + text_block(0, "one") + tool_block(1, "f", '{"a":1}', caller={"type": "direct"}) \
        + start(2, type="server_tool_use", id="srv", name="web_search", input={}) \
        + delta(2, "input_json_delta", partial_json='{"q":"index"}') + stop(2) \
        + start(3, type="web_search_tool_result", tool_use_id="srv", content=[{"index": 9, "url": "u"}]) + stop(3) \
        + text_block(4, "two") + ending("tool_use")
    frames = through(data, tools={"f": None})
    found = blocks(frames)
    assert [b["type"] for b in found] == ["text", "server_tool_use", "web_search_tool_result", "text", "tool_use"]
    assert found[2]["content"] == [{"index": 9, "url": "u"}]
    assert found[4] == {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}}
    assert of(frames, "message_delta")["delta"]["stop_reason"] == "tool_use"


def test_a_call_under_end_turn_ends_with_tool_use_and_keeps_the_counts():
    frames = through(opening() + tool_block(0, "f", "{}") + ending("end_turn"), tools={"f": None})
    last = of(frames, "message_delta")
    assert last["delta"]["stop_reason"] == "tool_use"
    assert last["usage"] == {"input_tokens": 11, "output_tokens": 5}


def test_citations_stay_in_their_block():
    cite = {"type": "char_location", "cited_text": "x"}
    data = opening() + start(0, type="text", text="") + delta(0, "citations_delta", citation=cite) \
        + delta(0, "text_delta", text="x") + stop(0) + ending()
    assert delta(0, "citations_delta", citation=cite) in ANTHROPIC.encoder(shown()).encode(judged(decode(data)))


def test_a_stream_with_holes_is_mended():
    """No message_start, no block start, no index, no stop, no event lines, no usage."""
    data = b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}\n\n' \
           b'data: {"type":"message_delta","delta":{"stop_reason":"stop"}}\n\n'
    frames = through(data)
    assert [f["type"] for f in frames] == ["message_start", "content_block_start", "content_block_delta",
                                           "content_block_stop", "message_delta", "message_stop"]
    assert frames[0]["message"]["id"].startswith("msg_")
    assert isinstance(frames[0]["message"]["usage"]["input_tokens"], int)
    assert frames[4]["delta"]["stop_reason"] == "end_turn"
    assert isinstance(frames[4]["usage"]["output_tokens"], int)


def test_a_thin_message_start_is_filled_up():
    data = frame("message_start", message={"usage": {"input_tokens": 3, "output_tokens": 0}, "x": 1})
    message = through(data + text_block(0, "x") + ending())[0]["message"]
    assert (message["role"], message["type"], message["content"], message["x"]) == ("assistant", "message", [], 1)


def test_blocks_that_overlap_are_put_one_after_the_other():
    data = opening() + start(0, type="text", text="") + delta(0, "text_delta", text="a") + start(1, type="thinking", thinking="") \
        + delta(1, "thinking_delta", thinking="b") + stop(0) + stop(1) + ending()
    assert [b["type"] for b in blocks(through(data))] == ["text", "thinking"]


def test_server_tools_are_an_answer_here_and_nothing_elsewhere():
    data = start(0, type="server_tool_use", id="s", name="advisor", input={}) + stop(0)
    assert [e.counts for e in decode(data) if type(e) is ev.Opaque][0]
    assert not any(e.counts for e in decode(data, same=False) if type(e) is ev.Opaque)


# ---------------------------------------------------------------- the fast lane
def lane(*chunks, same=True):
    decoder = ANTHROPIC.decoder(same, "m-up", 1 << 20)
    for chunk in chunks[:-1]:
        decoder.feed(chunk)
    return decoder.run(chunks[-1])


PLAIN = delta(0, "text_delta", text='say "hi" \\ 🦊')
BEGUN = opening() + start(0, type="text", text="") + delta(0, "text_delta", text="words")


def test_plain_text_frames_may_pass_unread():
    assert lane(BEGUN, PLAIN) == 1
    assert lane(BEGUN, PLAIN * 3) == 3


@pytest.mark.parametrize("chunks", [
    [BEGUN, delta(1, "text_delta", text="another block")],
    [BEGUN, PLAIN + stop(0)],
    [BEGUN, PLAIN[:-1]],
    [BEGUN + PLAIN[:20], PLAIN[20:]],
    [BEGUN, PLAIN.replace(b"event: content_block_delta\n", b"")],
    [BEGUN, PLAIN.replace(b'"text_delta"', b'"thinking_delta"')],
    [BEGUN, PLAIN.replace(b'}}\n', b'},"x":1}\n')],
    [opening() + start(0, type="text", text=""), PLAIN],
    [opening() + start(0, type="text", text="") + delta(0, "text_delta", text=" <think>"), PLAIN],
    [opening() + tool_block(0, "f", "{}") + start(1, type="text", text="") + delta(1, "text_delta", text="x"),
     delta(1, "text_delta", text="y")],
    [opening() + text_block(0, "x") + start(1, type="thinking", thinking="") + stop(1) + start(2, type="text", text="")
     + delta(2, "text_delta", text="x"), delta(2, "text_delta", text="y")],
])
def test_everything_else_is_looked_at(chunks):
    assert lane(*chunks) == 0


def test_there_is_no_fast_lane_to_another_format():
    assert lane(BEGUN, PLAIN, same=False) == 0


# ---------------------------------------------------------------- events of another format -> client
def test_thinking_text_and_calls_come_as_blocks_one_after_the_other():
    frames = told(ev.Meta("chatcmpl-1", "x"), ev.Reasoning("first "), ev.Reasoning("think"), ev.Text("Then "), ev.Text("say."),
                  ev.ToolCall(0, "call_1", "f", '{"a": 1}'), ev.ToolCall(1, "call_2", "g", ""), ev.Finish("tool_calls"),
                  ev.Usage(input=110, output=5, cached=75, cache_write=10, reasoning=2), ev.End())
    assert blocks(frames) == [{"type": "thinking", "thinking": "first think", "signature": ""},
                              {"type": "text", "text": "Then say."},
                              {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
                              {"type": "tool_use", "id": "call_2", "name": "g", "input": {}}]
    assert of(frames, "message_start")["message"] | {"usage": 0} == {
        "id": "msg_chatcmpl1", "type": "message", "role": "assistant", "model": "m-up", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": 0}
    last = of(frames, "message_delta")
    assert last["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert last["usage"] == {"input_tokens": 25, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 75,
                             "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}}
    assert frames[-1] == {"type": "message_stop"}


@pytest.mark.parametrize("reason, word", [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"),
                                          ("refusal", "refusal"), ("pause", "pause_turn"), ("eos", "end_turn")])
def test_reasons(reason, word):
    frames = told(ev.Text("x"), ev.Finish(reason), ev.End())
    assert of(frames, "message_delta")["delta"]["stop_reason"] == word


def test_a_matched_stop_sequence_is_named():
    last = of(told(ev.Text("x"), ev.Finish("stop", stop_sequence="###"), ev.End()), "message_delta")
    assert last["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "###"}


def test_a_refusal_is_text_with_its_own_reason():
    frames = told(ev.Refusal("I will not."), ev.Finish("stop"), ev.End())
    assert blocks(frames) == [{"type": "text", "text": "I will not."}]
    assert of(frames, "message_delta")["delta"]["stop_reason"] == "refusal"


def test_ids_get_the_alphabet_that_clients_must_send_back():
    frames = told(ev.ToolCall(0, "functions.f:0", "f", "{}"), ev.ToolCall(1, "functions_f:0", "f", "{}"), ev.End())
    assert [b["id"] for b in blocks(frames)] == ["functions_f_0", "functions_f_0_2"]


def test_free_text_of_a_custom_tool_is_an_object():
    assert blocks(told(ev.ToolCall(0, "c", "patch", "*** Begin", kind="custom"), ev.End()))[0]["input"] == {"input": "*** Begin"}


def test_another_makers_signatures_do_not_reach_the_client():
    frames = told(ev.Reasoning("x", signature="foreign"), ev.Reasoning("", redacted="foreign"), ev.Text("y"), ev.End())
    assert "foreign" not in json.dumps(frames)


def test_a_failure_is_an_error_event_and_the_last_one():
    encoder = ANTHROPIC.encoder(shown(False))
    first = read(encoder.encode([ev.Text("Hello")]))
    last = read(encoder.encode([ev.Fault(GatewayError("in_band", "boom"))]) + encoder.encode([ev.Finish("stop"), ev.End()]))
    assert first[-1]["delta"] == {"type": "text_delta", "text": "Hello"}
    assert last == [{"type": "error", "error": {"type": "api_error", "message": "boom", "code": "upstream_failed"}}]


def test_silence_is_broken_by_a_ping():
    assert ANTHROPIC.silence == ANTHROPIC.encoder(shown()).keepalive() == b'event: ping\ndata: {"type": "ping"}\n\n'


def test_other_choices_and_foreign_opaque_events_are_left_out():
    frames = told(ev.Text("a"), ev.Text("b", choice=1), ev.Opaque("openai-chat", "annotations", {}), ev.Finish("stop"),
                  ev.Finish("length", choice=1), ev.End())
    assert [b.get("text") for b in blocks(frames)] == ["a"]
    assert of(frames, "message_delta")["delta"]["stop_reason"] == "end_turn"


# ---------------------------------------------------------------- live calls
def test_live_calls_come_as_they_are_written():
    frames = told(ev.Text("x"), ev.ToolStart(0, "a", "f"), ev.ToolArgs(0, '{"q":'), ev.ToolArgs(0, "1}"),
                  ev.ToolStart(1, "b", "g"), ev.ToolArgs(1, "{}"), ev.Finish("tool_calls"), ev.End())
    assert [b.get("input") for b in blocks(frames)] == [None, {"q": 1}, {}]
    assert sum(f["type"] == "content_block_delta" for f in frames) == 4


def test_live_calls_that_overlap_do_not_share_a_block():
    frames = told(ev.ToolStart(0, "a", "f"), ev.ToolArgs(0, '{"q":'), ev.ToolStart(1, "b", "g"), ev.ToolArgs(1, '{"r":'),
                  ev.Text("meanwhile"), ev.ToolArgs(0, "1}"), ev.ToolArgs(1, "2}"), ev.Finish("tool_calls"), ev.End())
    assert [b.get("input", b.get("text")) for b in blocks(frames)] == [{"q": 1}, {"r": 2}, "meanwhile"]


# ---------------------------------------------------------------- what the turn makes of text
def test_a_think_tag_becomes_a_block_and_later_numbers_follow():
    data = opening() + text_block(0, "<think>plan", " b</think>The answer", " is 4.") + text_block(1, "More.") + ending()
    found = [block for block in blocks(through(data)) if block.get("text") != ""]
    assert [(b["type"], (b.get("thinking") or b.get("text")).strip()) for b in found] == [
        ("thinking", "plan b"), ("text", "The answer is 4."), ("text", "More.")]


def test_a_call_written_as_text_becomes_a_call():
    written = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    frames = through(opening() + text_block(0, written[:20], written[20:]) + ending(), tools={"f": None})
    assert blocks(frames)[-1] | {"id": ""} == {"type": "tool_use", "id": "", "name": "f", "input": {"a": 1}}
    assert "tool_call" not in json.dumps([b.get("text") for b in blocks(frames)])
    assert of(frames, "message_delta")["delta"]["stop_reason"] == "tool_use"


def test_a_delta_that_only_its_event_names_is_told_anew():
    decoder, request = ANTHROPIC.decoder(True, "m", 1 << 20), anthropic_turns.request()
    events = decoder.feed(b'event:content_block_delta\ndata:{"index":0,"delta":{"type":"text_delta","text":"e"}}\n\n')
    told = ANTHROPIC.encoder(Shown(model="m", request=request, same=True, id="x", created=1)).encode(events)
    assert b'"type":"text_delta","text":"e"' in told and all(b'"type"' in line for line in told.split(b"\n") if line.startswith(b"data"))


def test_a_stop_that_only_its_event_names_closes_its_block_and_opens_none():
    unnamed = b'event: content_block_stop\ndata: {"index": 0}\n\n'
    data = opening() + text_block(0, "hello").removesuffix(stop(0)) + unnamed + text_block(1, "you") + ending()
    assert [block["text"] for block in blocks(through(data))] == ["hello", "you"]


STRAYS = [delta(0, "thinking_delta", thinking="hm"), delta(0, "signature_delta", signature="s"),
          delta(7, "thinking_delta", thinking="hm"),
          b'event: content_block_delta\ndata: {"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}\n\n']


@pytest.mark.parametrize("stray", STRAYS)
def test_a_delta_that_gets_a_block_of_its_own_leaves_nothing_unread_after_it(stray):
    decoder, later = ANTHROPIC.decoder(True, "m-up", 1 << 20), delta(0, "text_delta", text="more")
    decoder.feed(opening() + start(0, type="text", text="") + delta(0, "text_delta", text="hello"))
    assert decoder.run(later) == 1
    decoder.feed(stray)
    assert decoder.run(later) == 0
    decoder.feed(stop(0) + start(1, type="text", text="") + delta(1, "text_delta", text="a"))
    assert decoder.run(delta(1, "text_delta", text="b")) == 0


@pytest.mark.parametrize("apart", [True, False])
def test_text_in_a_block_of_thinking_leaves_nothing_unread_after_it(apart):
    decoder, stray = ANTHROPIC.decoder(True, "m-up", 1 << 20), delta(0, "text_delta", text="stray")
    decoder.feed(opening() + start(0, type="thinking", thinking=""))
    decoder.feed(b": read frame by frame\n\n" + stray if apart else stray)
    decoder.feed(stop(0) + start(1, type="text", text="") + delta(1, "text_delta", text="a"))
    assert decoder.run(delta(1, "text_delta", text="b")) == 0
