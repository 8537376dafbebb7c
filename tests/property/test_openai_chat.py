"""The chat wire: any cut gives the same events, text in is text out, the fast lane agrees with the slow one, nothing crashes."""
import base64
import json
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.wire import splice
from gateway.wire.openai_chat import edges, envelope, reply
from tests.unit.wire.frames import CHAT, MODEL, chunk, dump, shown, sse, to

LIMIT = 1 << 20
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2**70, 2**70) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8)

# What frames are made of, and what they should not be made of.
deltas = st.fixed_dictionaries({}, optional={
    "role": st.just("assistant") | json_values, "content": texts | json_values, "reasoning_content": texts | json_values,
    "reasoning": texts | json_values, "reasoning_details": json_values, "refusal": texts | json_values, "audio": json_values,
    "tool_calls": json_values | st.lists(st.fixed_dictionaries({}, optional={
        "index": st.integers(0, 3) | json_values, "id": texts | json_values, "type": texts, "extra_content": json_values,
        "function": json_values | st.fixed_dictionaries({}, optional={"name": texts, "arguments": texts | json_values})}), max_size=2),
    "function_call": json_values})
choices = st.fixed_dictionaries({}, optional={
    "index": st.integers(0, 2) | json_values, "delta": deltas | json_values, "text": json_values, "message": deltas | json_values,
    "finish_reason": st.sampled_from([None, "", "stop", "length", "eos", "error"]) | json_values, "logprobs": json_values})
frames = st.fixed_dictionaries({}, optional={
    "id": st.just("i") | json_values, "object": st.just("chat.completion.chunk") | json_values, "created": json_values,
    "model": st.just(MODEL) | json_values, "choices": st.lists(choices | json_values, max_size=2) | json_values,
    "usage": json_values | st.fixed_dictionaries({"prompt_tokens": json_values, "prompt_tokens_details": json_values}),
    "x_groq": json_values, "error": st.none() | st.none() | json_values, "extra": json_values})


def decode(data, cuts=(), same=True, model=MODEL):
    decoder, out, at = CHAT.decoder(same, model, LIMIT), [], 0
    for cut in [*cuts, len(data)]:
        out += decoder.feed(data[at:cut])
        at = cut
    return out + decoder.close()


def plain(event):
    """An event as comparable data."""
    return repr(event)


@given(st.lists(words, min_size=1, max_size=12), st.lists(st.integers(0, 3000), max_size=10), st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_cut_gives_the_same_events_and_all_of_the_text(pieces, cuts, same):
    data = sse(chunk({"role": "assistant", "content": ""}), *[chunk({"content": p}) for p in pieces], chunk({}, "stop"), done=True)
    whole = decode(data, same=same)
    assert [plain(e) for e in decode(data, sorted(min(c, len(data)) for c in cuts), same)] == [plain(e) for e in whole]
    assert "".join(e.text for e in whole if isinstance(e, ev.Text)) == "".join(pieces)
    out = CHAT.encoder(shown(same=same)).encode(whole)
    told = [json.loads(line[6:]) for line in out.decode().split("\n\n") if line.startswith("data: {")]
    assert "".join(c["delta"].get("content") or "" for f in told for c in f["choices"]) == "".join(pieces)
    assert out.count(b"data: [DONE]") == 1


@given(st.lists(frames, max_size=5), st.booleans(), st.sampled_from([MODEL, "other", ""]))
@settings(max_examples=300, deadline=None)
def test_any_frames_give_events_and_what_leaves_is_well_formed(given_frames, same, model):
    data = sse(*given_frames, done=True)
    with patch.object(envelope, "token", lambda: "made"), patch.object(envelope.SystemClock, "wall", lambda: 7.0):
        events = decode(data, same=same, model=model)
        assert [plain(e) for e in decode(data, range(0, len(data), 7), same, model)] == [plain(e) for e in events]
    for event in events:
        raw = getattr(event, "raw", None)
        if raw is None:
            continue
        assert same
        frame = json.loads(raw)
        assert frame["id"] and isinstance(frame["created"], int) and frame["model"] == (model or frame["model"])
        assert isinstance(event, ev.Usage) or not frame.get("usage")
        for choice in frame["choices"]:
            assert isinstance(choice["index"], int)
            assert (choice["finish_reason"] is None) != isinstance(event, ev.Finish)
    assert CHAT.encoder(shown(same=same)).encode(events) is not None


@given(st.binary(max_size=200) | frames.map(lambda f: dump(f)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_body_is_an_answer_or_our_error(raw, same):
    try:
        events = CHAT.parse_reply(raw, same)
    except GatewayError as error:
        assert error.kind == "bad_reply"
        return
    assert isinstance(events[-1], (ev.End, ev.Fault))
    events = [ev.ToolCall(i, f"c{i}", e.name, e.arguments, e.choice) if isinstance(e, ev.ToolDelta) else e
              for i, e in enumerate(events)]
    for touched in (True, False):
        out = json.loads(CHAT.build_reply(fold(events), shown(same=same, touched=touched), raw if same else None))
        assert out["object"] == "chat.completion" and out["id"] and isinstance(out["created"], int)


nothing = st.sampled_from([None, "", [], {}])
messages = st.fixed_dictionaries({"role": st.sampled_from(["assistant", "user"]), "content": words | nothing}, optional={
    "refusal": nothing | words, "tool_calls": nothing, "annotations": nothing | st.just([1]), "reasoning": nothing | words, "x": words})
answers = st.builds(
    lambda message, finish, index, **more: {"id": "i", "object": "chat.completion", "created": 1, "model": MODEL, **more, "choices": [
        {"index": index, "message": message, "finish_reason": finish}]},
    messages, st.sampled_from(["stop", "length", "tool_calls", "eos", "error", None]), st.sampled_from([0, 0, 0, 1]),
    usage=nothing | st.fixed_dictionaries({"prompt_tokens": st.integers(-1, 9), "completion_tokens": st.integers(0, 9)}),
    error=nothing | words)


@given(answers, st.booleans(), st.sampled_from([MODEL, "other"]))
@settings(max_examples=200, deadline=None)
def test_whole_answers_say_the_same_in_both_lanes(answer, same, model):
    raw = dump(answer)
    quick = CHAT.parse_reply(raw, same)
    with patch.object(reply, "_plain", lambda raw, same: None):
        slow = CHAT.parse_reply(raw, same)
    passes = type(quick[0]) is ev.Meta and quick[0].passes
    if passes:                                   # then nothing but the model's name is changed for the client
        quick[0].passes = False
        told = shown(same=True, model=model)
        assert json.loads(CHAT.build_reply(fold(slow), told, raw)) == {**answer, "model": model}
    assert repr(quick) == repr(slow)


reads = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=4)


@given(reads, st.sampled_from([",", ", "]), st.booleans(), st.dictionaries(words, json_values, max_size=2),
       st.binary(max_size=3), st.integers(0, 500))
@settings(max_examples=150, deadline=None)
def test_what_the_fast_lane_takes_the_slow_one_reads_as_the_same_frames(groups, comma, escaped, extra, noise, at):
    def frame(piece):
        body = {**chunk({"content": piece}), **{f"x{key}": value for key, value in extra.items()}}
        return json.dumps(body, separators=(comma, ":"), ensure_ascii=escaped).encode()

    fast, slow = CHAT.decoder(True, MODEL, LIMIT), CHAT.decoder(True, MODEL, LIMIT)
    for _ in range(3):
        opening = sse(frame("opening"))
        fast.feed(opening)
        slow.feed(opening)
    for group in groups:
        raws = [frame(piece) for piece in group]
        data = sse(*raws)
        n_frames = fast.run(data)
        assert n_frames in (0, len(raws))
        events = slow.feed(data)
        if n_frames:
            assert events == [ev.Text(piece, raw) for piece, raw in zip(group, raws, strict=True)]
        # Damaged anywhere, a read is either refused or still exactly that many frames.
        place = at % (len(data) + 1)
        damaged = data[:place] + noise + data[place:]
        n_frames = fast.run(damaged)
        if n_frames:
            fresh = CHAT.decoder(True, MODEL, LIMIT)
            fresh.feed(opening)
            fresh._lessons = fresh._recalls = 0                  # the typed lane only
            said = fresh.feed(damaged)
            assert [type(e) for e in said] == [ev.Text] * n_frames
            assert b"".join(b"data: %b\n\n" % e.raw for e in said) == damaged


first_or_last = st.builds(
    lambda delta, finish, **more: chunk(delta, finish, **more),
    st.fixed_dictionaries({}, optional={"role": st.sampled_from(["assistant", None, 1]), "content": nothing | words,
                                        "refusal": nothing | words, "reasoning": nothing | words, "tool_calls": nothing, "x": words}),
    st.sampled_from([None, "stop", "length", "tool_calls", "eos", "error"]),
    usage=nothing | st.fixed_dictionaries({"prompt_tokens": st.integers(-1, 9), "total_tokens": st.integers(0, 9) | words,
                                           "completion_tokens": st.integers(0, 9)}),
    error=nothing | words, type=st.sampled_from([None, "error"]), success=st.sampled_from([None, False]), detail=nothing | words)


@given(st.lists(first_or_last | st.builds(lambda frame: {**frame, "choices": []}, first_or_last), min_size=1, max_size=4),
       st.booleans(), st.sampled_from([MODEL, "other", ""]))
@settings(max_examples=200, deadline=None)
def test_first_and_last_frames_say_the_same_in_both_lanes(given_frames, same, model):
    def told():
        events = decode(sse(*given_frames, done=True), same=same, model=model)
        for event in events:
            if getattr(event, "raw", None) is not None:
                event.raw = json.loads(event.raw)
                for choice in event.raw["choices"]:              # null is the same as absent
                    choice["delta"] = {key: value for key, value in choice["delta"].items() if value is not None}
        return [plain(event) for event in events]

    quick = told()
    with patch.object(edges, "decoded", lambda data: None):
        assert quick == told()


# ---------------------------------------------------------------- requests
names = st.text("abcdefgh_", min_size=1, max_size=8)
blob = st.binary(min_size=1, max_size=6).map(lambda b: base64.b64encode(b).decode())
user_parts = st.one_of(
    words.map(rq.Text), st.builds(lambda d: rq.Image(data=d, media_type="image/png"), blob),
    names.map(lambda n: rq.Image(url=f"https://example.com/{n}")),
    st.builds(lambda d: rq.Document(media_type="audio/wav", data=d), blob),
    st.builds(lambda d: rq.Document(media_type="application/pdf", data=d, title="a.pdf"), blob))


@st.composite
def dialogues(draw):
    messages = []
    if draw(st.booleans()):
        messages.append(rq.Message("system", [rq.Text(draw(words))]))
    tools = draw(st.lists(names, unique=True, max_size=3))
    for turn in range(draw(st.integers(1, 3))):
        messages.append(rq.Message("user", draw(st.lists(user_parts, min_size=1, max_size=3))))
        parts = [rq.Thinking(draw(words), owner="openai-chat")] if draw(st.booleans()) else []
        parts += [rq.Text(draw(words))]
        calls = [rq.Call(f"call_{turn}_{i}", name, json.dumps(draw(json_values))) for i, name in enumerate(tools) if draw(st.booleans())]
        messages.append(rq.Message("assistant", [*parts, *calls]))
        if calls:
            messages.append(rq.Message("tool", [rq.Result(c.id, [rq.Text(draw(words))], c.name) for c in calls]))
    sampling = rq.Sampling(
        max_tokens=draw(st.none() | st.integers(1, 9)), temperature=draw(st.none() | st.floats(0, 2)),
        stop=draw(st.none() | st.lists(words, min_size=1, max_size=4)), seed=draw(st.none() | st.integers(0, 99)))
    return rq.Conversation(
        messages, tools=[rq.Tool(name, draw(texts), {"type": "object"}, strict=draw(st.sampled_from([None, True]))) for name in tools],
        tool_choice=draw(st.sampled_from([None, rq.ToolChoice("required"), rq.ToolChoice("named", tools[0], False)])) if tools else None,
        sampling=sampling, thought=draw(st.sampled_from([None, rq.Thought("low")])), user=draw(texts),
        format=draw(st.sampled_from([None, rq.Format("json_object"), rq.Format("json_schema", {"type": "object"}, True, "n")])))


@given(dialogues())
@settings(max_examples=150, deadline=None)
def test_a_dialogue_that_is_built_is_read_as_the_same(talk):
    request = rq.Request(wire="anthropic", raw=b"{}", body=None, model="m", stream=False, conversation=talk)
    assert CHAT.open(CHAT.parse_request(CHAT.build_request(request, to()))) == talk


bodies = st.dictionaries(st.sampled_from(["model", "messages", "stream", "tools", "n", "stop", "prompt", "tool_choice", "x"]),
                         json_values, max_size=5)


@given(st.binary(max_size=60) | bodies.map(dump), st.sampled_from(["chat", "completions"]))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_request_or_a_refusal_of_ours(raw, operation):
    try:
        request = CHAT.parse_request(raw, operation)
        json.loads(CHAT.build_request(request, to(stream=request.stream)))
    except GatewayError as error:
        assert error.status == 400


@given(st.dictionaries(words.filter(lambda w: w != "model"), json_values, max_size=4), st.text(max_size=8), words)
@settings(max_examples=100, deadline=None)
def test_renaming_the_model_changes_nothing_else(fields, old, new):
    try:
        raw = json.dumps({**fields, "model": old, "last": 1}).encode()
        out = splice.set_model(raw, old, new)
    except UnicodeEncodeError:
        return
    if out is not None:
        assert json.loads(out) == {**json.loads(raw), "model": new}
