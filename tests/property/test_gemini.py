"""Gemini's wire: any cut gives the same events, what is built reads back as what it was, schemas stay in Google's grammar."""
import base64
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.wire.gemini import GEMINI
from gateway.wire.gemini.openapi import clean, json_schema, parameters
from tests.unit.wire.frames import dump
from tests.unit.wire.gemini_turns import MODEL, decode, from_chat, say, shown, sse, to, turn

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
visible = words.filter(lambda text: text.strip())
names = st.text("abcdefgh_", min_size=1, max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2**70, 2**70) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8)
objects = st.dictionaries(names, json_values, max_size=3)

# What frames are made of, and what they should not be made of.
parts = st.fixed_dictionaries({}, optional={
    "text": texts | json_values, "thought": st.booleans() | json_values, "thoughtSignature": texts | json_values,
    "functionCall": json_values | st.fixed_dictionaries({}, optional={
        "name": texts | json_values, "id": texts | json_values, "args": objects | json_values, "willContinue": st.booleans(),
        "partialArgs": json_values | st.lists(st.fixed_dictionaries({"jsonPath": st.sampled_from(["$.a", "$.a[1].b", "$[0]", "$.a.c", ""])},
                                                                    optional={"stringValue": texts, "numberValue": json_values}), max_size=2)}),
    "inlineData": json_values, "executableCode": json_values})
candidates = st.fixed_dictionaries({}, optional={
    "content": json_values | st.fixed_dictionaries({"parts": st.lists(parts | json_values, max_size=3) | json_values}),
    "index": st.integers(0, 2) | json_values, "groundingMetadata": json_values,
    "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", 1, None]) | json_values})
frames = st.fixed_dictionaries({}, optional={
    "candidates": st.lists(candidates | json_values, max_size=2) | json_values, "modelVersion": st.just(MODEL) | json_values,
    "responseId": json_values, "usageMetadata": json_values | st.fixed_dictionaries({"promptTokenCount": json_values}),
    "promptFeedback": json_values, "error": st.none() | st.none() | json_values})


@given(st.lists(words, min_size=1, max_size=12), st.lists(st.integers(0, 3000), max_size=10), st.booleans(),
       st.sampled_from(["chat", "chat-array"]))
@settings(max_examples=100, deadline=None)
def test_any_cut_gives_the_same_events_and_all_of_the_text(pieces, cuts, same, operation):
    data = sse(*[say(piece) for piece in pieces], say("", finish="STOP"))
    whole = decode(data, same=same)
    assert decode(data, sorted(min(cut, len(data)) for cut in cuts), same) == whole
    out = GEMINI.encoder(shown(same=same, operation=operation)).encode(whole)
    told = json.loads(out) if operation == "chat-array" else [json.loads(line[6:]) for line in out.decode().split("\n\n") if line]
    assert "".join(p["text"] for f in told for p in f["candidates"][0]["content"]["parts"]) == "".join(pieces)
    assert [f["candidates"][0].get("finishReason") for f in told][-1] == "STOP"


@given(st.lists(frames, max_size=4), st.booleans(), st.sampled_from([MODEL, "other", ""]))
@settings(max_examples=200, deadline=None)
def test_any_frames_give_events_and_what_leaves_is_well_formed(given_frames, same, model):
    data = sse(*given_frames)
    events = decode(data, same=same, model=model)
    assert repr(decode(data, range(0, len(data), 7), same, model)) == repr(events)
    for event in events:
        raw = getattr(event, "raw", None)
        if raw is None:
            continue
        assert same
        frame = json.loads(raw)
        if model:
            assert frame["modelVersion"] == model
        for candidate in frame["candidates"] if isinstance(frame.get("candidates"), list) else ():
            if isinstance(event, ev.Finish):
                assert candidate["finishReason"]
            assert not any(isinstance(part, dict) and isinstance(part.get("functionCall"), dict)
                           for part in _parts(candidate)), "calls belong to the turn"
    out = GEMINI.encoder(shown(same=same)).encode(turn(events))
    assert all(json.loads(line[6:]) for line in out.split(b"\n\n") if line)


def _parts(candidate):
    content = candidate.get("content") if isinstance(candidate, dict) else None
    found = content.get("parts") if isinstance(content, dict) else None
    return found if isinstance(found, list) else []


@given(st.binary(max_size=100) | frames.map(dump) | st.lists(frames, max_size=2).map(dump), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_body_is_an_answer_or_our_error(raw, same):
    try:
        events = GEMINI.parse_reply(raw, same)
    except GatewayError as error:
        assert error.kind == "bad_reply"
        return
    assert isinstance(events[-1], (ev.End, ev.Fault))
    if isinstance(events[-1], ev.Fault):
        return
    reply = fold([ev.ToolCall(i, f"c{i}", e.name, e.arguments, e.choice, extra=e.extra) if isinstance(e, ev.ToolDelta) else e
                  for i, e in enumerate(events)])
    for touched in (True, False):
        out = json.loads(GEMINI.build_reply(reply, shown(same=same, touched=touched), raw if same else None))
        assert out["modelVersion"] == MODEL


@given(st.binary(max_size=60) | json_values.map(dump) | st.fixed_dictionaries({"contents": st.lists(
    st.fixed_dictionaries({}, optional={"role": st.sampled_from(["user", "model", ""]), "parts": st.lists(parts | json_values, max_size=3)}),
    max_size=3) | json_values}, optional={"tools": json_values, "generationConfig": json_values, "toolConfig": json_values}).map(dump))
@settings(max_examples=200, deadline=None)
def test_any_request_is_read_or_refused_with_its_field(raw):
    try:
        request = GEMINI.parse_request(raw, "chat", "m", True)
        talk = GEMINI.open(request)
    except GatewayError as error:
        assert error.status == 400 and error.message
        return
    request.wire, request.conversation = "other", talk
    try:
        GEMINI.build_request(request, to())
    except GatewayError as error:
        assert error.kind in ("unsupported", "bad_request") and error.param


# ---------------------------------------------------------------- there and back
calls = st.builds(lambda name, args: (name, json.dumps(args, separators=(",", ":"), ensure_ascii=False)),
                  names, st.dictionaries(names, texts | st.integers(-9, 9), max_size=2))


@given(st.lists(visible, max_size=2), st.lists(visible, min_size=1, max_size=3), st.lists(calls, max_size=3),
       st.sampled_from(["stop", "length", "content_filter"]), st.tuples(*[st.integers(1, 999)] * 3), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_turn_that_is_written_reads_back_as_it_was(thoughts, said, made, reason, counts, streamed):
    given_in, output, reasoning = counts
    usage = ev.Usage(input=given_in, output=output + reasoning, cached=given_in // 2, reasoning=reasoning, total=given_in + output + reasoning)
    events = [ev.Meta("i", "m"), *[ev.Reasoning(t) for t in thoughts], *[ev.Text(t) for t in said],
              *[ev.ToolCall(i, f"id{i}", name, args, extra={"thought_signature": "s"}) for i, (name, args) in enumerate(made)],
              ev.Finish("tool_calls" if made else reason), usage, ev.End()]
    form = shown(same=False)
    if streamed:
        back = decode(GEMINI.encoder(form).encode(events), same=False)
    else:
        back = GEMINI.parse_reply(GEMINI.build_reply(fold(events), form, None), False)
    assert "".join(e.text for e in back if isinstance(e, ev.Reasoning)) == "".join(thoughts)
    assert "".join(e.text for e in back if isinstance(e, ev.Text)) == "".join(said)
    assert [(e.id, e.name, e.arguments, e.extra) for e in back if isinstance(e, ev.ToolDelta)] == [
        (f"id{i}", name, args, {"thought_signature": "s"}) for i, (name, args) in enumerate(made)]
    assert [e.reason for e in back if isinstance(e, ev.Finish)] == ["tool_calls" if made else reason]
    told = next(e for e in back if isinstance(e, ev.Usage))
    assert (told.input, told.output, told.cached, told.reasoning, told.total) == (
        usage.input, usage.output, usage.cached, usage.reasoning, usage.total)


blob = st.binary(min_size=1, max_size=6).map(lambda b: base64.b64encode(b).decode())
said_by_user = st.one_of(words.map(rq.Text), blob.map(lambda d: rq.Image(data=d, media_type="image/webp")),
                         blob.map(lambda d: rq.Document("audio/wav", d)), blob.map(lambda d: rq.Document("application/pdf", d)))


@st.composite
def dialogues(draw):
    """System, then rounds of user, calls with signatures, their results, an answer."""
    messages = [rq.Message("system", [rq.Text(draw(words.filter(str.strip)))])]
    for i in range(draw(st.integers(1, 3))):
        messages.append(rq.Message("user", draw(st.lists(said_by_user, min_size=1, max_size=3))))
        made = [rq.Call(f"call_{i}_{j}", name, args, signature=draw(st.sampled_from(["", "c2ln"])))
                for j, (name, args) in enumerate(draw(st.lists(calls, max_size=3)))]
        if made:
            messages.append(rq.Message("assistant", [*draw(st.lists(words.map(rq.Text), max_size=1)), *made]))
            messages.append(rq.Message("tool", [rq.Result(call.id, [rq.Text(draw(words.filter(lambda t: t.lstrip()[:1] not in ("{", "["))))],
                                                          call.name, draw(st.booleans())) for call in made]))
        messages.append(rq.Message("assistant", [rq.Text(draw(words))]))
    return messages


@given(dialogues(), st.sampled_from(["auto", "none", "required"]), st.integers(1, 9999), st.lists(words, min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_dialogue_that_is_built_reads_back_as_it_was(messages, mode, limit, stop):
    request = from_chat()
    request.conversation = rq.Conversation(
        messages, tools=[rq.Tool("f", "d", {"type": "object", "properties": {"a": {"type": "string"}}})], tool_choice=rq.ToolChoice(mode),
        sampling=rq.Sampling(max_tokens=limit, temperature=0.5, top_p=0.25, seed=7, stop=stop))
    raw = GEMINI.build_request(request, to(flags=frozenset({"call_ids"})))
    back = GEMINI.open(GEMINI.parse_request(raw, "chat", "m", True))
    assert back.messages == messages
    assert back.tools == request.conversation.tools and back.tool_choice == rq.ToolChoice(mode)
    assert back.sampling == request.conversation.sampling


# ---------------------------------------------------------------- schemas
schemas = st.recursive(
    st.fixed_dictionaries({}, optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", ["string", "null"], ["a", "array"]]) | json_values,
        "enum": st.lists(json_values, max_size=3), "const": json_values, "format": texts, "minLength": json_values, "$ref": st.sampled_from(["#", "#/$defs/a", "x"]),
        "required": json_values | st.lists(names, max_size=2), "additionalProperties": st.booleans(), "minimum": json_values}),
    lambda inner: st.fixed_dictionaries({}, optional={
        "type": st.sampled_from(["array", "object"]), "properties": st.dictionaries(names, inner, max_size=3), "items": inner | st.lists(inner, max_size=2),
        "anyOf": st.lists(inner | json_values, max_size=3), "oneOf": st.lists(inner, max_size=2), "allOf": st.lists(inner | json_values, max_size=2),
        "$defs": st.fixed_dictionaries({"a": inner}), "$ref": st.sampled_from(["#", "#/$defs/a"])}), max_leaves=10)
KEYWORDS = {"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minLength",
            "maxLength", "minProperties", "maxProperties", "pattern", "anyOf", "items", "minimum", "maximum", "propertyOrdering"}


def grammatical(node):
    assert set(node) <= KEYWORDS
    if "anyOf" in node:
        assert set(node) == {"anyOf"} and len(node["anyOf"]) > 1
    else:
        assert node["type"] in {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}
        assert (node["type"] == "ARRAY") == ("items" in node)
        assert all(isinstance(value, str) for value in node.get("enum", ()))
        assert set(node.get("required", ())) <= set(node.get("properties", ()))
    for inner in [*node.get("properties", {}).values(), *node.get("anyOf", ()), *([node["items"]] if "items" in node else ())]:
        grammatical(inner)


@given(schemas | json_values)
@settings(max_examples=300, deadline=None)
def test_any_schema_becomes_one_that_google_takes(schema):
    made = clean(schema)
    grammatical(made)
    assert clean(json_schema(made)) == made or "anyOf" in json.dumps(made)      # said once more, it is the same
    top = parameters(schema if isinstance(schema, dict) else None)
    assert top is None or (top["type"] == "OBJECT" and top["properties"])
