"""From chat to any format and back: texts, calls, thinking, counts and reasons stay; what is written is read as it was."""
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.core.reply import fold
from gateway.stream.turn import Rules, Turn
from gateway.surfaces.routes import ROUTES
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown
from tests.unit.wire.frames import dump

CHAT = WIRES["openai-chat"]
BOTH_SIDES = sorted({door.wire for door in ROUTES})
FLAGS = frozenset({"call_ids"})
# What a format has no words for, told as what comes back instead.
REASONS = {"ollama": {"content_filter": "stop"}}
ONE_WORD = {"refusal": "content_filter"}         # Messages has one word for both
UNTOLD = {"ollama": ("cached", "reasoning")}

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1, max_size=12).filter(str.strip)
names = st.text("abcde_", min_size=1, max_size=6)
values = st.none() | st.booleans() | st.integers(-9, 9) | words
inputs = st.dictionaries(names, values | st.lists(values, max_size=2), max_size=2)


def asked(wire, stream=True, operation="chat"):
    body = {"openai-chat": {"messages": [{"role": "user", "content": "x"}], "stream_options": {"include_usage": True}} if stream else
            {"messages": [{"role": "user", "content": "x"}]}, "openai-responses": {"input": "x"},
            "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
            "gemini": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
            "ollama": {"messages": [{"role": "user", "content": "x"}]}}[wire]
    return WIRES[wire].parse_request(dump({"model": "m", "stream": stream, **body}), operation, "m", stream)


def judged(decoded, stream=True):
    """What the turn lets leave of it."""
    turn = Turn(Rules(rescue=False, think_tags=False, stream=stream), 0.0)
    out = list(turn.feed(decoded, 0.0))
    out += turn.eof(0.0)
    assert turn.fault is None
    return out


def through(events, wire, streamed, cut):
    """Written to a client of this format, read as an upstream of it."""
    form = Shown(model="m", request=asked(wire, streamed), same=False, id="req_1", created=9)
    if not streamed:
        return judged(WIRES[wire].parse_reply(WIRES[wire].build_reply(fold(events), form, None), False), False)
    data, decoder = WIRES[wire].encoder(form).encode(events), WIRES[wire].decoder(False, "m", 1 << 20)
    back = [event for at in range(0, len(data), cut) for event in decoder.feed(data[at:at + cut])]
    return judged(back + decoder.close())


def gist(events, wire=""):
    """What a turn says, whatever its pieces and in whose words."""
    reply = fold(events)
    choice, usage = reply.choices[0], reply.usage
    reason = ONE_WORD.get(choice.finish.reason, choice.finish.reason)
    counts = {name: 0 if name in UNTOLD.get(wire, ()) else getattr(usage, name)
              for name in ("input", "output", "cached", "reasoning", "total")}
    return {"text": choice.text, "reasoning": choice.reasoning, "counts": counts,
            "calls": [(call.id, call.name, json.loads(call.arguments)) for call in choice.calls],
            "reason": REASONS.get(wire, {}).get(reason, reason)}


@st.composite
def answers(draw):
    """Events as a turn lets them out."""
    payload = draw(st.lists(words.map(ev.Reasoning), max_size=3)) + draw(st.lists(words.map(ev.Text), max_size=3))
    made = [ev.ToolCall(i, f"call{i}abcd", draw(names), json.dumps(draw(inputs), separators=(",", ":"), ensure_ascii=False))
            for i in range(draw(st.integers(0, 3)))]
    payload += [] if made else [ev.Text(draw(words))]
    reason = "tool_calls" if made else draw(st.sampled_from(["stop", "length", "content_filter"]))
    given_in, said, thought = draw(st.integers(1, 99)), draw(st.integers(1, 99)), draw(st.integers(0, 9))
    usage = ev.Usage(input=given_in, output=said + thought, cached=draw(st.integers(0, given_in)), reasoning=thought,
                     total=given_in + said + thought)
    return [ev.Meta("id1", "m"), *payload, *made, ev.Finish(reason), usage, ev.End()]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", BOTH_SIDES)
@settings(max_examples=25, deadline=None)
@given(events=answers(), cut=st.integers(1, 300))
def test_an_answer_is_read_as_it_was_written(wire, streamed, events, cut):
    assert gist(through(events, wire, streamed, cut)) == gist(events, wire)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", BOTH_SIDES)
@settings(max_examples=25, deadline=None)
@given(events=answers(), cut=st.integers(1, 300))
def test_an_answer_of_a_chat_upstream_comes_back_to_chat_through(wire, streamed, events, cut):
    """A chat upstream, a client of the other format; that client is a gateway of its own with a chat client."""
    said = through(events, "openai-chat", streamed, cut)
    told = through(said, wire, streamed, cut)
    assert gist(through(told, "openai-chat", streamed, cut)) == gist(events, wire)


# ---------------------------------------------------------------- requests
PIXEL = "data:image/png;base64,iVBORw0KGgo="


@st.composite
def chats(draw):
    """Dialogues of a chat client: instructions, pictures, thinking, calls at once and their results."""
    fresh = (f"call{i}abcd" for i in itertools.count())
    messages = [{"role": "system", "content": draw(words)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 2))):
        picture = [{"type": "image_url", "image_url": {"url": PIXEL}}] if draw(st.booleans()) else []
        messages.append({"role": "user", "content": [{"type": "text", "text": draw(words)}, *picture]})
        calls = [{"id": next(fresh), "type": "function", "function": {"name": name, "arguments": dump(draw(inputs)).decode()}}
                 for name in draw(st.lists(st.sampled_from(["f", "g"]), max_size=2))]
        messages.append({"role": "assistant", "content": draw(words), **({"tool_calls": calls} if calls else {})})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": draw(words.filter(lambda t: t.lstrip()[:1] not in "{["))}
                     for call in calls]
        if calls:
            messages.append({"role": "assistant", "content": draw(words)})
    messages.append({"role": "user", "content": draw(words)})
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": name, "description": "d", "parameters": schema}} for name in ("f", "g")]
    more = {"stop": draw(st.lists(words, min_size=1, max_size=3))} if draw(st.booleans()) else {}
    return {"model": "m", "messages": messages, "max_tokens": draw(st.integers(16, 99)), "tools": tools, **more,
            "tool_choice": draw(st.sampled_from(["auto", "none", "required", {"type": "function", "function": {"name": "g"}}]))}


def said(body):
    """Who says what in a chat body: texts of one turn joined."""
    out = []
    for message in body["messages"]:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        calls = [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls") or ()]
        out.append((message["role"], "".join([part.get("text", "") for part in parts]), message.get("tool_call_id", ""),
                    [part["image_url"]["url"] for part in parts if part["type"] == "image_url"], calls))
    return out


UNSAID = {"ollama": ("tool_choice",), "openai-responses": ("stop",)}


@pytest.mark.parametrize("wire", BOTH_SIDES)
@settings(max_examples=25, deadline=None)
@given(body=chats())
def test_a_request_of_a_chat_client_comes_back_to_chat_through(wire, body):
    request = CHAT.parse_request(dump(body))
    request.conversation, request.wire = CHAT.open(request), "another"
    to = Outbound(model="m", provider="p", stream=False, flags=FLAGS)
    between = WIRES[wire].parse_request(WIRES[wire].build_request(request, to), "chat", "m", False)
    between.conversation, between.wire = WIRES[wire].open(between), "another"
    back = json.loads(CHAT.build_request(between, to))
    assert said(back) == said(body)
    gone = UNSAID.get(wire, ())
    for name in ("max_tokens", "stop", "tool_choice"):
        if name not in gone:
            assert back.get(name) == body.get(name), name
    if "tool_choice" not in gone:
        assert back["tools"] == body["tools"] or [tool["function"] | {"strict": False} for tool in body["tools"]] == [
            tool["function"] for tool in back["tools"]]
