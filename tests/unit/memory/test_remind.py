"""A request gets back what its client dropped: for the target that said it, on a copy, and never against the client's own word."""
import json

import pytest

from gateway.core import events as ev
from gateway.memory.needs import Needs
from gateway.memory.remind import reminded, turns_before
from gateway.memory.traces import Notes, Traces
from gateway.wire import WIRES
from gateway.wire.base import Outbound

THINKS = Needs(reasoning=True)
ALWAYS = Needs(reasoning=True, always=True)
SIGNS = Needs(signatures=True)
TO = Outbound(model="lab/Kimi-K2", provider="p", stream=False)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def call(id_="c1", **more):
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}, **more}


def assistant(*calls, **more):
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def chat(*turns, **more):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, *turns], "tools": [TOOL], "odd": 1.50, **more}
    return WIRES["openai-chat"].parse_request(json.dumps(body).encode())


def known(needs, *calls, said="because", provider="p", model="kimi-k2", turn=0):
    traces, notes = Traces(), Notes(needs)
    notes.hear([ev.Reasoning(said), *(ev.ToolCall(0, id_, "f", "{}", extra={"thought_signature": "sig"}) for id_ in calls)])
    traces.remember("s", notes, provider, model, turn, 0.0)
    return traces.find("s", 0.0)


def sent(request, session, needs, to=TO, wire="openai-chat"):
    if wire != request.wire:
        WIRES[request.wire].open(request)
        request.conversation = WIRES[request.wire].open(request)
    return json.loads(WIRES[wire].build_request(reminded(request, session, needs, to, wire), to))


# ---------------------------------------------------------------- a chat body
def test_reasoning_comes_back_to_the_turn_that_called():
    request = chat(assistant(call("c0")), {"role": "tool", "tool_call_id": "c0", "content": "x"},
                   assistant(call()), {"role": "tool", "tool_call_id": "c1", "content": "x"})
    body = sent(request, known(THINKS, "c1"), THINKS)
    assert "reasoning_content" not in body["messages"][1]
    assert body["messages"][3]["reasoning_content"] == "because"
    assert body["odd"] == 1.5 and body["model"] == "lab/Kimi-K2"


def test_the_request_itself_stays_as_it_was():
    request = chat(assistant(call()))
    raw = request.raw
    assert reminded(request, known(THINKS, "c1"), THINKS, TO, "openai-chat") is not request
    assert request.raw is raw


@pytest.mark.parametrize("own", ["reasoning_content", "reasoning"])
def test_the_clients_own_reasoning_wins(own):
    body = sent(chat(assistant(call(), **{own: "mine"})), known(THINKS, "c1"), THINKS)
    assert body["messages"][1][own] == "mine"
    assert "because" not in json.dumps(body)


def test_an_empty_reasoning_is_replaced():
    body = sent(chat(assistant(call(), reasoning_content="")), known(THINKS, "c1"), THINKS)
    assert body["messages"][1]["reasoning_content"] == "because"


def test_another_model_gets_nothing():
    request = chat(assistant(call()))
    assert reminded(request, known(THINKS, "c1", model="glm-5"), THINKS, TO, "openai-chat") is request


def test_the_same_model_at_another_provider_gets_it():
    body = sent(chat(assistant(call())), known(THINKS, "c1", provider="q"), THINKS)
    assert body["messages"][1]["reasoning_content"] == "because"


def test_unknown_calls_change_nothing():
    request = chat(assistant(call("c9")))
    assert reminded(request, known(THINKS, "c1"), THINKS, TO, "openai-chat") is request


def test_a_plain_turn_gets_its_own_where_the_model_wants_that():
    plain = {"role": "assistant", "content": "hello"}
    request = chat(plain, {"role": "user", "content": "so?"}, plain)
    body = sent(request, known(ALWAYS, turn=1), ALWAYS)
    assert ["reasoning_content" in m for m in body["messages"]] == [False, False, False, True]
    assert reminded(request, known(ALWAYS, turn=1), THINKS, TO, "openai-chat") is request


def test_a_signature_comes_back_where_googles_chat_endpoint_keeps_it():
    body = sent(chat(assistant(call())), known(SIGNS, "c1"), SIGNS)
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "sig"}}


@pytest.mark.parametrize("own", [{"extra_content": {"google": {"thought_signature": "mine"}}}, {"thought_signature": "mine"}])
def test_the_clients_own_signature_wins(own):
    request = chat(assistant(call(**own)))
    assert reminded(request, known(SIGNS, "c1"), SIGNS, TO, "openai-chat") is request


def test_nobody_else_gets_a_providers_signature():
    request = chat(assistant(call()))
    assert reminded(request, known(SIGNS, "c1", provider="q"), SIGNS, TO, "openai-chat") is request


# ---------------------------------------------------------------- another format
CLIENTS = {
    "openai-chat": lambda: chat(assistant(call("functions.f:0")), {"role": "tool", "tool_call_id": "functions.f:0", "content": "x"}),
    "anthropic": lambda: WIRES["anthropic"].parse_request(json.dumps({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "functions_f_0", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "functions_f_0", "content": "x"}]}]}).encode()),
    "openai-responses": lambda: WIRES["openai-responses"].parse_request(json.dumps({"model": "m", "input": [
        {"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "functions.f:0", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "functions.f:0", "output": "x"}]}).encode()),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_signature_comes_back_to_gemini_whoever_asked(client):
    body = sent(CLIENTS[client](), known(SIGNS, "functions.f:0"), SIGNS, wire="gemini")
    [part] = [p for c in body["contents"] for p in c["parts"] if "functionCall" in p]
    assert part["thoughtSignature"] == "sig"


@pytest.mark.parametrize("client", ["anthropic", "openai-responses"])
def test_reasoning_comes_back_whoever_asked(client):
    body = sent(CLIENTS[client](), known(THINKS, "functions.f:0"), THINKS)
    [turn] = [m for m in body["messages"] if m["role"] == "assistant"]
    assert turn["reasoning_content"] == "because"


def test_the_conversation_that_other_targets_share_stays_as_it_was():
    request = CLIENTS["anthropic"]()
    request.conversation = WIRES["anthropic"].open(request)
    made = reminded(request, known(SIGNS, "functions.f:0"), SIGNS, TO, "gemini")
    assert made is not request and made.conversation is not request.conversation
    assert all(not getattr(part, "signature", "") for m in request.conversation.messages for part in m.parts)
    assert reminded(request, known(SIGNS, "other"), SIGNS, TO, "gemini") is request


def test_turns_are_counted_alike_in_every_form():
    request = CLIENTS["openai-chat"]()
    assert turns_before(request) == 1
    request.conversation = WIRES["openai-chat"].open(request)
    assert turns_before(request) == 1
    other = CLIENTS["openai-responses"]()
    other.conversation = WIRES["openai-responses"].open(other)
    assert turns_before(other) == 1
