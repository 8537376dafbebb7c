"""The Responses wire: any cut is the same stream, what is said comes back, bodies go there and back, nothing crashes."""
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.stream.turn import Rules, Turn
from tests.unit.wire.responses_turns import (
    CHAT,
    MODEL,
    RESPONSES,
    USAGE,
    asked,
    call_frames,
    decode,
    dump,
    passed,
    read,
    reasoning_frames,
    shown,
    sound,
    sse,
    stream,
    text_frames,
    to,
)

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
pieces = st.lists(words, min_size=1, max_size=4)
json_values = st.recursive(st.none() | st.booleans() | st.integers(-2**40, 2**40) | words,
                           lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6)
arguments = st.dictionaries(words, json_values, max_size=3).map(lambda d: json.dumps(d, ensure_ascii=False))
usages = st.builds(lambda i, o: ev.Usage(input=i, output=o, cached=i // 2, reasoning=o // 2, total=i + o), st.integers(1, 999),
                   st.integers(1, 999))
calls = st.lists(st.tuples(words, arguments), max_size=3)
TOOLS = {"type": "function", "name": "f"}


@st.composite
def turns(draw):
    """A finished turn, as the turn machine lets it leave."""
    said = draw(st.lists(st.builds(ev.Reasoning, words) | st.builds(ev.Text, words) | st.builds(ev.Refusal, words), max_size=5))
    made = [ev.ToolCall(n, f"call_{n}", name, args) for n, (name, args) in enumerate(draw(calls))]
    reason = "tool_calls" if made else draw(st.sampled_from(["stop", "length", "content_filter"]))
    return [*said, *made, ev.Finish(reason), draw(usages), ev.End()]


def gist(events):
    """What a turn says, whatever the cuts."""
    reply = fold(events)
    choice = reply.choices[0]
    usage = reply.usage
    return (choice.text, choice.reasoning, choice.refusal, [(c.id, c.name, c.arguments) for c in choice.calls],
            choice.finish.reason, (usage.input, usage.output, usage.cached, usage.reasoning, usage.total))


def judged(events):
    turn = Turn(Rules(rescue=False, think_tags=False), 0.0)
    return turn.feed(events, 0.0) + turn.eof(0.0)


@given(turns())
@settings(max_examples=50, deadline=None)
def test_what_is_told_is_read_again(events):
    data = RESPONSES.encoder(shown(same=False)).encode(events)
    sound(read(data))
    turn = Turn(Rules(rescue=False, think_tags=False), 0.0)
    again = turn.feed(decode(data, same=False), 0.0) + turn.eof(0.0)
    if turn.fault is None:
        assert gist(again) == gist(events)
    whole = RESPONSES.build_reply(fold(events), shown(same=False), None)
    turn = Turn(Rules(rescue=False, think_tags=False, stream=False), 0.0)
    again = turn.feed(RESPONSES.parse_reply(whole, False), 0.0) + turn.eof(0.0)
    if turn.fault is None:
        assert gist(again) == gist(events)


@given(turns())
@settings(max_examples=40, deadline=None)
def test_chat_to_responses_and_back_says_the_same(events):
    """An answer of a chat upstream, told to a Responses client, read as an upstream's, told to a chat client."""
    data = RESPONSES.encoder(shown(same=False)).encode(events)
    turn = Turn(Rules(rescue=False, think_tags=False), 0.0)
    between = turn.feed(decode(data, same=False), 0.0) + turn.eof(0.0)
    if turn.fault is not None:
        return
    request = CHAT.parse_request(dump({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}))
    chat = CHAT.encoder(shown(same=False, request=request, id="r")).encode(between)
    decoder = CHAT.decoder(False, MODEL, 1 << 20)
    final = judged(decoder.feed(chat) + decoder.close())
    assert gist(final) == gist(events)


@given(pieces, pieces, st.integers(1, 700), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_cut_passes_the_same_bytes(thought, text, cut, numbered):
    data = stream(*reasoning_frames(thought), *text_frames(text, 1), numbered=numbered)
    if numbered:
        assert passed(data, rescue=False, think_tags=False) == data
    turn = Turn(Rules(rescue=False, think_tags=False), 0.0)
    decoder, encoder, out = RESPONSES.decoder(True, MODEL, 1 << 20), RESPONSES.encoder(shown()), b""
    for at in range(0, len(data), cut):
        out += encoder.encode(turn.feed(decoder.feed(data[at:at + cut]), 0.0))
    out += encoder.encode(turn.eof(0.0))
    if turn.fault is None:
        assert out == passed(data, rescue=False, think_tags=False)
        assert sound(read(out))["usage"] == USAGE


@given(st.lists(st.sampled_from(["text", "call", "thought"]), min_size=1, max_size=5), st.sampled_from(["whole", "live"]),
       st.sets(st.sampled_from(["output_index", "item_id", "sequence_number", "content_index"])), st.data())
@settings(max_examples=40, deadline=None)
def test_every_mixture_of_items_is_told_soundly(kinds, mode, lacking, data):
    frames = []
    for n, kind in enumerate(kinds):
        if kind == "text":
            frames += text_frames(data.draw(pieces), n, f"msg_{n}")
        elif kind == "call":
            frames += call_frames(n, ('{"a":', "1}"), id=f"fc_{n}", id_=f"fc_{n}", call_id=f"call_{n}")
        else:
            frames += [{**f, **({"item_id": f"rs_{n}"} if "item_id" in f else {}),
                        **({"item": {**f["item"], "id": f"rs_{n}"}} if "item" in f else {})}
                       for f in reasoning_frames(data.draw(pieces), n)]
    docs = [{k: v for k, v in doc.items() if k not in lacking} for doc in read(stream(*frames))]
    show = shown(request=asked(tools=[TOOLS]))
    out = read(passed(sse(*docs), show=show, tools={"f": None}, tool_calls=mode, rescue=False, think_tags=False))
    if out:
        final = sound(out) if out[-1]["type"] != "response.failed" else {}
        if final:
            assert sorted(i["type"] for i in final["output"]) == sorted(
                {"text": "message", "call": "function_call", "thought": "reasoning"}[k] for k in kinds)


@given(st.lists(st.fixed_dictionaries({"type": st.sampled_from([
    "response.created", "response.output_item.added", "response.output_item.done", "response.content_part.added",
    "response.content_part.done", "response.output_text.delta", "response.output_text.done", "response.refusal.delta",
    "response.reasoning_summary_text.delta", "response.function_call_arguments.delta", "response.function_call_arguments.done",
    "response.completed", "response.failed", "error"])}, optional={
        "response": json_values | st.fixed_dictionaries({}, optional={"output": json_values, "usage": json_values, "id": json_values}),
        "item": json_values | st.fixed_dictionaries({}, optional={
            "type": st.sampled_from(["message", "function_call", "custom_tool_call", "reasoning", "x"]), "id": json_values,
            "content": json_values, "summary": json_values, "arguments": json_values, "name": json_values, "call_id": json_values}),
        "delta": json_values, "text": json_values, "part": json_values | st.fixed_dictionaries({"type": st.just("output_text")}),
        "output_index": st.integers(-1, 2) | json_values, "item_id": json_values, "content_index": json_values,
        "sequence_number": json_values, "arguments": json_values, "refusal": json_values}), max_size=8), st.booleans())
@settings(max_examples=120, deadline=None)
def test_no_frame_crashes(docs, same):
    data = b"".join(b"data: %b\n\n" % dump(doc) for doc in docs)
    turn = Turn(Rules(), 0.0)
    events = turn.feed(decode(data, same), 0.0) + turn.eof(0.0)
    RESPONSES.encoder(shown(same=same)).encode(events)


@given(json_values | st.fixed_dictionaries({}, optional={
    "model": words | json_values, "input": json_values | st.lists(st.fixed_dictionaries({}, optional={
        "type": st.sampled_from(["message", "function_call", "function_call_output", "custom_tool_call", "reasoning", "local_shell_call",
                                 "additional_tools", "item_reference"]) | json_values,
        "role": st.sampled_from(["user", "assistant"]) | json_values, "content": json_values, "call_id": words | json_values,
        "name": words | json_values, "arguments": json_values, "output": json_values, "summary": json_values, "tools": json_values,
        "namespace": json_values}), max_size=4),
    "tools": json_values, "tool_choice": json_values, "text": json_values, "reasoning": json_values, "instructions": json_values,
    "response_format": json_values, "stream": json_values, "metadata": json_values}))
@settings(max_examples=120, deadline=None)
def test_no_request_crashes(body):
    try:
        request = RESPONSES.parse_request(dump(body))
        RESPONSES.open(request)
        RESPONSES.build_request(request, to())
        CHAT.build_request(request, to())
    except GatewayError as error:
        assert error.kind in ("bad_request", "unsupported")


parts = st.lists(st.builds(rq.Text, words) | st.builds(rq.Image, data=st.just("aGk="), media_type=st.just("image/png"),
                                                      detail=st.just("low")), min_size=1, max_size=3)


@st.composite
def dialogues(draw):
    messages = [rq.Message("user", draw(parts))]
    for n in range(draw(st.integers(0, 3))):
        made = [rq.Call(f"c{n}_{i}", "f", draw(arguments)) for i in range(draw(st.integers(0, 2)))]
        said = [rq.Text(draw(words))] if draw(st.booleans()) or not made else []
        messages.append(rq.Message("assistant", [*said, *made]))
        if made:
            messages.append(rq.Message("tool", [rq.Result(c.id, [rq.Text(draw(words))], "f") for c in made]))
        messages.append(rq.Message("user", draw(parts)))
    return rq.Conversation(messages, [rq.Tool("f", "d", {"type": "object"}, False)], rq.ToolChoice("auto", parallel=True),
                           rq.Sampling(max_tokens=50, temperature=0.5), rq.Thought("low"),
                           rq.Format("json_schema", {"type": "object"}, True, "n"), "u", {"a": "b"}, "k", "flex")


@given(dialogues())
@settings(max_examples=50, deadline=None)
def test_a_dialogue_goes_there_and_comes_back(conversation):
    request = asked()
    request.wire, request.conversation = "other", conversation
    again = RESPONSES.open(RESPONSES.parse_request(RESPONSES.build_request(request, to())))
    assert again == conversation
