"""Messages, there and back: what is built reads as what it was built from, for any dialogue, answer and stream."""
import json
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Image,
    Message,
    Request,
    Result,
    Sampling,
    Text,
    Thinking,
    Thought,
    Tool,
    ToolChoice,
)
from gateway.stream.turn import Rules, Turn
from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.anthropic.mend import mend, sound
from gateway.wire.base import Outbound, Shown

TO = Outbound(model="claude-x", provider="p", stream=False)
ASKED = ANTHROPIC.parse_request(b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}')

words = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=12).filter(lambda s: s.strip())
ids = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
names = st.from_regex(r"[a-z_]{1,10}", fullmatch=True)
marks = st.none() | st.just({"type": "ephemeral"})
values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | words, lambda inner: st.lists(inner, max_size=2)
                      | st.dictionaries(names, inner, max_size=2), max_leaves=4)
inputs = st.dictionaries(names, values, max_size=3)
texts = st.builds(Text, words, marks)
pictures = st.builds(Image, st.just("iVBORw0KGgo="), st.just("image/png"), cache_control=marks) | st.builds(
    Image, url=st.just("https://x/y.png"))
documents = st.builds(Document, st.just("text/plain"), text=words, title=words | st.just(""), cache_control=marks)
thoughts = st.builds(Thinking, words, words, st.just(""), st.just("anthropic")) | st.builds(
    Thinking, st.just(""), st.just(""), words, st.just("anthropic"))


@st.composite
def dialogues(draw):
    """Canonical ones: instructions first, turns alternate, every call answered where it should be."""
    messages = [Message("system", draw(st.lists(texts, min_size=1, max_size=2)))] if draw(st.booleans()) else []
    fresh = iter(draw(st.lists(ids, unique=True, min_size=9, max_size=9)))
    messages.append(Message("user", draw(st.lists(texts | pictures | documents, min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 3))):
        parts = draw(st.lists(thoughts, max_size=1)) + draw(st.lists(texts, min_size=1, max_size=2))
        calls = [Call(name, draw(names), json.dumps(draw(inputs), separators=(",", ":"), ensure_ascii=False), cache_control=draw(marks))
                 for name in islice(fresh, draw(st.integers(0, 3)))]
        messages.append(Message("assistant", parts + calls))
        if calls:
            messages.append(Message("tool", [Result(call.id, draw(st.lists(texts | pictures, max_size=2)),
                                                    is_error=draw(st.booleans()), cache_control=draw(marks)) for call in calls]))
        if not calls or draw(st.booleans()):
            messages.append(Message("user", draw(st.lists(texts, min_size=1, max_size=2))))
    return messages


@st.composite
def conversations(draw):
    tools = [Tool(name, draw(words | st.just("")), {"type": "object", "properties": draw(inputs)}, cache_control=draw(marks))
             for name in draw(st.lists(names, unique=True, max_size=2))]
    choice = draw(st.none() | st.builds(ToolChoice, st.sampled_from(["auto", "none"]))) if tools else None
    if tools and draw(st.booleans()):
        choice = ToolChoice("named", tools[0].name, draw(st.none() | st.booleans()))
    thinks = draw(st.booleans()) and (choice is None or choice.mode == "auto")
    messages = draw(dialogues())
    if thinks and messages[-1].role == "tool" and not isinstance(messages[-2].parts[0], Thinking):
        thinks = False
    return Conversation(messages, tools, choice, Sampling(
        max_tokens=draw(st.integers(3000, 9000)), temperature=None if thinks else draw(st.none() | st.floats(0, 1)),
        top_k=None if thinks else draw(st.none() | st.integers(1, 50)), stop=draw(st.none() | st.lists(words, min_size=1, max_size=2))),
        Thought(budget_tokens=draw(st.integers(1024, 2000))) if thinks else None, user=draw(words | st.just("")))


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_a_dialogue_survives_being_said(talk):
    foreign = Request(wire="another", raw=b"", body=None, model="m", stream=False, conversation=talk)
    parsed = ANTHROPIC.parse_request(ANTHROPIC.build_request(foreign, TO))
    assert parsed.clean, "what we build needs no mending"
    assert ANTHROPIC.open(parsed) == talk


blocks = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=3)),
    st.builds(lambda t, s: {"type": "thinking", "thinking": t, "signature": s}, words, st.sampled_from(["", "s"])),
    st.builds(lambda i: {"type": "tool_use", "id": i, "name": "f", "input": {}}, st.sampled_from(["a", "b", "a.b", "a:b"])),
    st.builds(lambda i: {"type": "tool_result", "tool_use_id": i, "content": "r"}, st.sampled_from(["a", "b", "a.b", "zzz"])),
    st.just({"type": "unheard_of", "x": 1}))
histories = st.lists(st.builds(lambda r, c: {"role": r, "content": c}, st.sampled_from(["user", "assistant"]),
                               st.lists(blocks, max_size=4) | st.text(max_size=3)), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(histories, st.booleans())
def test_any_history_is_mended_into_a_sound_one(history, merge):
    before = json.dumps(history)
    mended = mend(history, merge=merge)
    assert json.dumps(history) == before, "the caller's own messages stay as they are"
    assert not mended or sound(mended)
    assert mend(mended, merge=merge) == mended
    if merge:
        assert [t["role"] for t in mended] == [("user", "assistant")[i % 2] for i in range(len(mended))]


@st.composite
def answers(draw):
    """Events as a turn lets them out: payload, calls, the reason, counts."""
    payload = draw(st.lists(st.builds(ev.Text, words) | st.builds(ev.Reasoning, words), max_size=4)) + [ev.Text(draw(words))]
    calls = [ev.ToolCall(i, name, draw(names), json.dumps(draw(inputs), separators=(",", ":"), ensure_ascii=False))
             for i, name in enumerate(draw(st.lists(ids, unique=True, max_size=3)))]
    reason = "tool_calls" if calls else draw(st.sampled_from(["stop", "length", "refusal", "pause"]))
    sequence = draw(st.none() | words) if reason == "stop" else None
    cached, written, fresh = draw(st.integers(0, 50)), draw(st.integers(0, 50)), draw(st.integers(1, 50))
    output = draw(st.integers(1, 99))
    given_ = cached + written + fresh
    usage = ev.Usage(input=given_, output=output, cached=cached, cache_write=written, reasoning=draw(st.integers(0, output)),
                     total=given_ + output)
    return [*payload, *calls, ev.Finish(reason, stop_sequence=sequence), usage, ev.End()]


def plain(events):
    """What a turn says, whatever its pieces: texts and thinking joined, no frames, no ids of ours."""
    reply = fold(judged(events))
    choice = reply.choices[0]
    usage = reply.usage
    assert usage is not None and choice.finish is not None
    return (choice.text, choice.reasoning, [(c.id, c.name, json.loads(c.arguments)) for c in choice.calls],
            choice.finish.reason, choice.finish.stop_sequence,
            (usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning, usage.total))


def judged(events):
    if any(type(event) is ev.ToolCall for event in events):
        return events
    turn = Turn(Rules(think_tags=False), 0.0)
    out = list(turn.feed(events, 0.0))
    return out + turn.eof(0.0)


def shown(same):
    return Shown(model="m", request=ASKED, same=same, id="req_1")


@settings(max_examples=100, deadline=None)
@given(answers(), st.booleans())
def test_an_answer_survives_being_written(events, same):
    raw = ANTHROPIC.build_reply(fold(events), shown(same), None)
    assert plain(ANTHROPIC.parse_reply(raw, same)) == plain(events)


@settings(max_examples=100, deadline=None)
@given(answers(), st.booleans(), st.integers(1, 40))
def test_a_stream_survives_being_written_and_cut(events, same, cut):
    data = ANTHROPIC.encoder(shown(same)).encode(events)
    decoder = ANTHROPIC.decoder(same, "m", 1 << 20)
    back = [event for at in range(0, len(data), cut) for event in decoder.feed(data[at:at + cut])] + decoder.close()
    assert plain(back) == plain(events)
    if same and not any(type(event) is ev.ToolDelta for event in back):
        assert ANTHROPIC.encoder(shown(True)).encode(back) == data


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | values.map(lambda v: json.dumps(v).encode()) | st.dictionaries(
    st.sampled_from(["model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "metadata"]),
    values | histories, max_size=6).map(lambda v: json.dumps(v).encode()))
def test_any_body_is_understood_or_refused(raw):
    try:
        parsed = ANTHROPIC.parse_request(raw)
    except GatewayError as error:
        assert error.kind == "bad_request"
        return
    ANTHROPIC.open(parsed)
    assert json.loads(ANTHROPIC.build_request(parsed, TO))["model"] == "claude-x"


frames = st.builds(lambda k, d: d | {"type": k}, st.sampled_from([
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]),
    st.dictionaries(st.sampled_from(["index", "delta", "content_block", "message", "usage"]), values | st.builds(
        lambda t, v: {"type": t, "text": v, "id": "a", "name": v, "input": v, "thinking": v, "partial_json": v, "stop_reason": v},
        st.sampled_from(["text", "tool_use", "text_delta", "thinking_delta", "input_json_delta", "thinking"]), values), max_size=3))


@settings(max_examples=100, deadline=None)
@given(st.lists(frames, max_size=6), st.booleans())
def test_any_frames_are_read_and_told(docs, same):
    decoder = ANTHROPIC.decoder(same, "m", 1 << 20)
    turn = Turn(Rules(), 0.0)
    out = turn.feed(decoder.feed(b"".join(b"data: %b\n\n" % json.dumps(doc).encode() for doc in docs)) + decoder.close(), 0.0)
    ANTHROPIC.encoder(shown(same)).encode(list(out) + turn.eof(0.0))
