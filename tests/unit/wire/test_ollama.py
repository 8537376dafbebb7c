"""Ollama's format: what is asked, what is answered, the same for every cut of the bytes."""
import json

import pytest

from gateway.core import events as ev
from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.core.reply import Choice, Reply
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown

OLLAMA = WIRES["ollama"]
TO = Outbound(model="big", provider="p", stream=True)
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def parsed(operation="chat", **body):
    return OLLAMA.parse_request(json.dumps(BODY | body).encode(), operation)


def lines(*docs):
    return b"".join(json.dumps(doc).encode() + b"\n" for doc in docs)


def said(done=False, **message):
    return {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": ""} | message, "done": done}


STREAM = lines(said(thinking="Hm"), said(content="Hé"), said(content="llo"),
               said(tool_calls=[{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}]),
               said(tool_calls=[{"function": {"name": "g", "arguments": {}}}]),
               said(True) | {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4})


# ---------------------------------------------------------------- requests
def test_streaming_is_the_habit():
    assert parsed().stream and parsed(stream=True).stream and not parsed(stream=False).stream


@pytest.mark.parametrize("body, param", [
    ({"model": ""}, "model"), ({"messages": [{"role": "robot"}]}, "messages.0.role"), ({"think": "hard"}, "think"),
    ({"format": "xml"}, "format"), ({"tools": [{"type": "function"}]}, "tools.0.function.name"), ({"messages": 5}, "messages"),
    ({"options": {"num_predict": "many"}}, "options.num_predict")])
def test_what_is_wrong_is_named(body, param):
    with pytest.raises(GatewayError) as wrong:
        parsed(**body)
    assert (wrong.value.kind, wrong.value.param) == ("bad_request", param)


def test_the_same_format_keeps_the_bytes():
    asked = parsed(options={"num_ctx": 4096}, keep_alive="5m")
    assert json.loads(OLLAMA.build_request(asked, TO)) == {**BODY, "model": "big", "options": {"num_ctx": 4096}, "keep_alive": "5m"}
    whole = json.loads(OLLAMA.build_request(asked, Outbound(model="big", provider="p", stream=False)))
    assert whole["stream"] is False and whole["keep_alive"] == "5m"


def talk(**more):
    return rq.Conversation([
        rq.Message("developer", [rq.Text("Be kind.")]),
        rq.Message("user", [rq.Text("look"), rq.Image(data="AAAA", media_type="image/png"), rq.Document(text="body", title="t")]),
        rq.Message("assistant", [rq.Thinking("Hm"), rq.Text("Well"), rq.Call("c1", "f", '{"a":1}')]),
        rq.Message("tool", [rq.Result("c1", [rq.Text("ok")])])], **more)


def built(conversation, to=TO):
    asked = rq.Request(wire="openai-chat", raw=b"", body=None, model="m", stream=to.stream, conversation=conversation)
    return json.loads(OLLAMA.build_request(asked, to))


def test_a_dialogue_of_another_format_is_said_in_this_one():
    system, user, assistant, tool = built(talk())["messages"]
    assert system == {"role": "system", "content": "Be kind."}
    assert user == {"role": "user", "content": "look\n\nt\n\nbody", "images": ["AAAA"]}
    assert assistant["thinking"] == "Hm" and assistant["tool_calls"] == [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}]
    assert tool == {"role": "tool", "content": "ok", "tool_name": "f", "tool_call_id": "c1"}


def test_options_tools_and_format_find_their_names():
    sampling = rq.Sampling(max_tokens=9, temperature=0.5, stop=["x"], seed=3)
    body = built(talk(sampling=sampling, thought=rq.Thought(effort="minimal"), format=rq.Format("json_schema", {"type": "object"}),
                      tools=[rq.Tool("f", "d"), rq.Tool("g"), rq.Tool("web", kind="server")], tool_choice=rq.ToolChoice("named", "g")))
    assert body["options"] == {"num_predict": 9, "temperature": 0.5, "stop": ["x"], "seed": 3}
    assert (body["think"], body["format"]) == ("low", {"type": "object"})
    assert [tool["function"]["name"] for tool in body["tools"]] == ["g"]
    assert "tools" not in built(talk(tools=[rq.Tool("f")], tool_choice=rq.ToolChoice("none")))


@pytest.mark.parametrize("conversation", [
    rq.Conversation([rq.Message("user", [rq.Image(url="https://example.com/a.png")])]),
    rq.Conversation([rq.Message("user", [rq.Document(data="AAAA", media_type="application/pdf")])]), talk(sampling=rq.Sampling(n=2))])
def test_what_it_cannot_say_is_refused(conversation):
    with pytest.raises(GatewayError) as no:
        built(conversation)
    assert no.value.kind == "unsupported"


def test_a_request_survives_the_way_through_the_neutral_form():
    body = built(talk(sampling=rq.Sampling(max_tokens=9, top_k=3)))
    again = OLLAMA.open(OLLAMA.parse_request(json.dumps(body).encode()))
    assert built(again) == body


# ---------------------------------------------------------------- answers
def decode(data, same=False, cut=None):
    decoder = OLLAMA.decoder(same, "m", 1 << 20)
    reads = [data[i:i + cut] for i in range(0, len(data), cut)] if cut else [data]
    return [event for read in reads for event in decoder.feed(read)] + decoder.close()


def test_a_stream_is_read_whatever_the_cut():
    whole = decode(STREAM)
    assert [type(event).__name__ for event in whole] == [
        "Meta", "Reasoning", "Text", "Text", "ToolDelta", "ToolDelta", "Finish", "Usage", "End"]
    assert [(e.index, e.id, e.name, e.arguments) for e in whole if isinstance(e, ev.ToolDelta)] == [(0, "c1", "f", '{"a":1}'), (1, "", "g", "{}")]
    assert whole[-3].reason == "tool_calls" and (whole[-2].input, whole[-2].output) == (3, 4)
    for cut in (1, 2, 3, 7, 50):
        assert decode(STREAM, cut=cut) == whole
    assert decode(STREAM.rstrip(b"\n")) == whole


@pytest.mark.parametrize("data", [b'{"error": "model not loaded"}\n', lines(said(content="x")) + b'{"error":"gone"}'])
def test_an_error_line_is_a_fault(data):
    last = decode(data)[-1]
    assert isinstance(last, ev.Fault) and last.error.kind == "in_band"


def test_no_line_is_too_long_or_no_json():
    for data in (b"<html>\n", b"x" * 200):
        with pytest.raises(GatewayError) as bad:
            OLLAMA.decoder(False, "m", 100).feed(data)
        assert bad.value.kind == "bad_reply"


def encode(events, operation="chat", same=False):
    shown = Shown(model="m", request=parsed(), same=same, created=1_700_000_000, operation=operation, elapsed=lambda: 2.0)
    return [json.loads(line) for line in OLLAMA.encoder(shown).encode(events).splitlines()]


TURN = [ev.Meta(), ev.Reasoning("Hm"), ev.Text("Hi"), ev.ToolCall(0, "c1", "f", '{"a":1}'), ev.Finish("tool_calls"),
        ev.Usage(input=3, output=4), ev.End()]


def test_a_turn_is_told_line_by_line():
    thought, text, call, last = encode(TURN)
    assert thought["message"] == {"role": "assistant", "content": "", "thinking": "Hm"}
    assert text["message"]["content"] == "Hi" and text["created_at"].startswith("2023-11-14T")
    assert call["message"]["tool_calls"][0]["function"] == {"index": 0, "name": "f", "arguments": {"a": 1}}
    assert (last["done"], last["done_reason"], last["prompt_eval_count"], last["eval_count"]) == (True, "stop", 3, 4)
    assert last["total_duration"] == 2_000_000_000


def test_frames_of_the_same_format_leave_as_they_came():
    odd = lines(said(content="x") | {"odd": 1}, said(True) | {"done_reason": "stop", "eval_count": 1, "odd": 2})
    assert [line.get("odd") for line in encode(decode(odd, same=True), same=True)] == [1, 2]


def test_a_whole_answer_both_ways():
    choice = Choice(text="Hi", reasoning="Hm", calls=[TURN[3]], finish=ev.Finish("length"))
    reply = Reply(ev.Meta(), {0: choice}, ev.Usage(input=3, output=4))
    shown = Shown(model="m", request=parsed(), same=False)
    body = OLLAMA.build_reply(reply, shown, None)
    assert json.loads(body)["done_reason"] == "length"
    events = OLLAMA.parse_reply(body, False)
    assert [type(event).__name__ for event in events] == ["Meta", "Reasoning", "Text", "ToolDelta", "Finish", "Usage", "End"]
    for bad in (b"[]", b"<html>", b"{}"):
        with pytest.raises(GatewayError):
            OLLAMA.parse_reply(bad, False)


def test_arguments_that_are_no_object_are_kept():
    for arguments, seen in (("[1]", {"arguments": "[1]"}), ("", {}), ("{oops", {"arguments": "{oops"})):
        [call] = encode([ev.ToolCall(0, "c", "f", arguments)])
        assert call["message"]["tool_calls"][0]["function"]["arguments"] == seen


def test_a_line_is_one_for_every_reader():
    """A carriage return is a blank for JSON and the end of a line for clients that split at any."""
    decoder = OLLAMA.decoder(True, "m", 1 << 20)
    raws = [event.raw for event in decoder.feed(lines(said(content="a")) + lines(said(content="b")).replace(b', "done"', b'\r, "done"'))
            if isinstance(event, ev.Text)]
    assert raws[0] is not None and raws[1:] == [None]
