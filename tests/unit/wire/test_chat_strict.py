"""Chat upstreams that refuse what others bear: ids, thinking, cache marks and signatures in messages."""
import json

import pytest

from gateway.core.request import Call, Conversation, Document, Image, Message, Request, Result, Text, Thinking, Tool
from gateway.wire import WIRES
from gateway.wire.base import Outbound
from gateway.wire.openai_chat.strict import nine

CHAT, OLLAMA = WIRES["openai-chat"], WIRES["ollama"]
MARK = {"type": "ephemeral"}


def built(talk, *flags, model="m", wire=CHAT):
    foreign = Request(wire="another", raw=b"{}", body=None, model="m", stream=False, conversation=talk)
    return json.loads(wire.build_request(foreign, Outbound(model=model, provider="p", stream=False, flags=frozenset(flags))))


def passed(messages, *flags):
    raw = json.dumps({"model": "m", "messages": messages, "x_new": 1}).encode()
    to = Outbound(model="m", provider="p", stream=False, flags=frozenset(flags))
    return json.loads(CHAT.build_request(CHAT.parse_request(raw), to))


def called(call_id="call_a_long_one", **more):
    return [Message("user", [Text("hi")]), Message("assistant", [Thinking("hm"), Call(call_id, "f", "{}", **more)]),
            Message("tool", [Result(call_id, [Text("ok")])])]


def test_ids_of_nine_letters_still_meet():
    _, asked, answered = built(Conversation(called()), "tool_ids_9")["messages"]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == nine("call_a_long_one")
    assert len(answered["tool_call_id"]) == 9 and answered["tool_call_id"].isalnum()


def test_an_id_that_fits_stays():
    assert built(Conversation(called("abcDEF123")), "tool_ids_9")["messages"][2]["tool_call_id"] == "abcDEF123"


def test_no_two_ids_become_one():
    assert len({nine(f"call_{i}") for i in range(2_000)}) == 2_000


def test_a_chat_clients_own_messages_comply_too():
    calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "ok"}]
    body = passed(said, "tool_ids_9", "no_reasoning_content")
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"] == nine("call_1")
    assert "reasoning_content" not in body["messages"][1] and body["x_new"] == 1
    assert passed(said)["messages"] == said


def test_thinking_is_left_out_where_it_is_refused():
    assert "reasoning_content" in built(Conversation(called()))["messages"][1]
    assert "reasoning_content" not in built(Conversation(called()), "no_reasoning_content")["messages"][1]


def test_cache_marks_go_to_those_who_know_them():
    talk = Conversation([Message("user", [Text("hi", MARK)])], [Tool("f", cache_control=MARK)])
    plain, marked = built(talk), built(talk, "cache_control")
    assert plain["messages"][0]["content"] == "hi" and "cache_control" not in plain["tools"][0]
    assert marked["messages"][0]["content"][0]["cache_control"] == marked["tools"][0]["cache_control"] == MARK


def test_googles_signatures_go_to_gemini_models():
    talk = Conversation(called(signature="c2ln"))
    assert "extra_content" not in built(talk)["messages"][1]["tool_calls"][0]
    signed = built(talk, model="google/gemini-3-flash-preview")["messages"][1]["tool_calls"][0]
    assert signed["extra_content"] == {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize("wire", [CHAT, OLLAMA], ids=["chat", "ollama"])
@pytest.mark.parametrize("parts, said", [([Text("no net")], "Error: no net"), ([], "Error"), ([Image(data="aGk=", media_type="image/png")], "Error:"),
                                         ([Document(text="log")], "Error:")])
def test_a_failed_result_says_so(wire, parts, said):
    messages = called()
    messages[2] = Message("tool", [Result("call_a_long_one", parts, is_error=True)])
    content = built(Conversation(messages), wire=wire)["messages"][2]["content"]
    assert (content if isinstance(content, str) else content[0]["text"]).startswith(said)


def asked(body, *flags):
    """What goes up of a chat client's body."""
    raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]} | body).encode()
    return json.loads(CHAT.build_request(CHAT.parse_request(raw), Outbound(model="m", provider="p", stream=False, flags=frozenset(flags))))


@pytest.mark.parametrize(("effort", "kept"), [("high", False), ("none", True), (None, True)])
def test_sampling_gives_way_to_a_wanted_effort(effort, kept):
    body = {"temperature": 0.5, "top_p": 0.9, "seed": 7} | ({"reasoning_effort": effort} if effort else {})
    out = asked(body, "sampling_or_effort")
    assert ("temperature" in out, "top_p" in out, out["seed"], out.get("reasoning_effort")) == (kept, kept, 7, effort)
    assert asked(body)["temperature"] == 0.5


def test_an_effort_gives_way_to_tools():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    out = asked({"tools": tools, "temperature": 0.5, "reasoning_effort": "low"}, "tools_or_effort", "sampling_or_effort")
    assert "reasoning_effort" not in out and out["temperature"] == 0.5
    assert asked({"reasoning_effort": "low"}, "tools_or_effort")["reasoning_effort"] == "low"
