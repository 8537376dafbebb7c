"""A session is what the client says it is, else how the conversation began; and always one caller's."""
import json

import pytest

from gateway.routing.affinity import HEADERS, opening, session_key
from gateway.wire import WIRES

CHAT = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]}
MORE = [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "and now?"}]


def asked(wire, body, operation="chat"):
    return WIRES[wire].parse_request(json.dumps(body).encode(), operation, "m", False)


def key(body=None, headers=None, who="ann", wire="openai-chat"):
    return session_key(headers or {}, asked(wire, body or CHAT), who)


@pytest.mark.parametrize("name", HEADERS)
def test_a_clients_header_is_the_session_whatever_is_said(name):
    other = {**CHAT, "messages": MORE}
    assert key(headers={name: "s1"}) == key(other, {name: "s1"}) != key(headers={name: "s2"})


def test_a_clients_own_header_goes_before_the_general_one():
    both = {"x-session-id": "general", "x-codex-session-id": "own"}
    assert key(headers=both) == key(headers={"x-codex-session-id": "own"})


def test_without_a_header_the_cache_key_is_the_session():
    assert key({**CHAT, "prompt_cache_key": "k"}) == key({**CHAT, "messages": MORE, "prompt_cache_key": "k"}) != key()


def test_else_it_is_the_beginning_and_stays_while_the_conversation_grows():
    grown = {**CHAT, "messages": CHAT["messages"] + MORE, "temperature": 0.5}
    assert key() == key(grown) != key({**CHAT, "messages": MORE})


def test_nobody_shares_a_session_with_somebody_else():
    assert key(who="ann") != key(who="bob")
    assert key(who="ann", headers={"x-session-id": "s"}) != key(who="bob", headers={"x-session-id": "s"})


def test_a_header_is_not_mistaken_for_words():
    assert key(headers={"x-session-id": "hello there"}) != key()


@pytest.mark.parametrize(("wire", "body"), [
    ("openai-chat", CHAT),
    ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello "}, {"type": "text", "text": "there"}]}]}),
    ("anthropic", {"max_tokens": 5, "messages": [{"role": "user", "content": "hello there"}]}),
    ("anthropic", {"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "text", "text": "hello there"}]}]}),
    ("openai-responses", {"input": "hello there"}),
    ("openai-responses", {"input": [{"role": "developer", "content": "x"}, {"role": "user", "content": [{"type": "input_text", "text": "hello there"}]}]}),
    ("gemini", {"contents": [{"parts": [{"text": "hello there"}]}]}),
])
def test_the_beginning_is_the_first_words_of_the_user(wire, body):
    assert opening(asked(wire, body)) == "hello there"


def test_a_prompt_is_a_beginning_too():
    assert opening(asked("openai-chat", {"prompt": "once upon"}, "completions")) == "once upon"


def test_where_nobody_says_anything_the_body_is_the_beginning():
    picture = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]}
    assert opening(asked("openai-chat", picture)).startswith('{"messages"')
