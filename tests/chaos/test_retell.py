"""What a combo makes of requests, as every upstream gets it: other instructions, fewer tools, no tags of routing."""
import json

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, ask

COMBO = '[[combos]]\nname = "best"\ntargets = ["up/m"]\n'
SCHEMA = {"type": "object", "properties": {}}
NAMES = ["read_file", "web_search", "read_page"]
# path -> (a request with instructions and three tools, where the instructions are, the names of its tools)
CLIENTS = {
    "/v1/chat/completions": ({
        "model": "best", "messages": [{"role": "system", "content": "old"}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES],
        "tool_choice": {"type": "function", "function": {"name": "web_search"}}}, "openai-chat"),
    "/v1/responses": ({
        "model": "best", "instructions": "old", "input": [{"role": "developer", "content": "old too"}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in NAMES], "store": False}, "openai-responses"),
    "/v1/messages": ({
        "model": "best", "max_tokens": 9, "system": [{"type": "text", "text": "old"}], "messages": ASK["messages"],
        "tools": [{"name": name, "input_schema": SCHEMA} for name in NAMES], "tool_choice": {"type": "auto"}}, "anthropic"),
    "/v1beta/models/best:generateContent": ({
        "system_instruction": "old", "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"function_declarations": [{"name": name} for name in NAMES]}, {"google_search": {}}]}, "gemini"),
    "/api/chat": ({
        "model": "best", "messages": [{"role": "system", "content": "old"}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]}, "ollama"),
}


async def sent(gateway, upstream, path, combo, wire="openai-chat", body=None):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key() + provider(up, wire=f'"{wire}"', auth='"bearer"') + '[ollama]\nmode = "key"\n' + COMBO + combo)
    await ask(base_url, body or CLIENTS[path][0], path=path, stream=None if "gemini" in wire or "beta" in path else False)
    return up.requests[0].json()


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("path", CLIENTS)
async def test_a_combo_s_own_instructions_take_the_place_of_the_client_s(gateway, upstream, path, across):
    wire = "openai-chat" if across else CLIENTS[path][1]
    told = json.dumps(await sent(gateway, upstream, path, 'system_message = "NEW ORDERS"\n', wire))
    assert told.count("NEW ORDERS") == 1
    assert "old" not in told
    assert "hi" in told


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("path", CLIENTS)
async def test_tools_with_other_names_are_left_out(gateway, upstream, path, across):
    wire = "openai-chat" if across else CLIENTS[path][1]
    doc = await sent(gateway, upstream, path, 'tool_filter = "^read_"\n', wire)
    told = json.dumps(doc)
    assert [name for name in NAMES if name in told] == ["read_file", "read_page"]
    assert "googleSearch" not in told
    assert '{"name": "web_search"}' not in json.dumps(doc.get("tool_choice")), "what is gone cannot be chosen"
    none = await sent(gateway, upstream, path, 'tool_filter = "^nothing$"\n', wire)
    assert not {"tools", "tool_choice", "toolConfig"} & none.keys()


async def test_what_a_combo_does_not_ask_for_stays_byte_for_byte(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key() + provider(up, models='["best"]') + COMBO.replace("up/m", "up/best") + 'tool_filter = "."\n')
    raw = json.dumps({**CLIENTS["/v1/chat/completions"][0], "stream": False}, indent=1).encode()
    await ask(base_url, raw=raw)
    assert up.requests[0].body == raw


async def test_the_instructions_of_a_text_completion_stand_before_its_prompt(gateway, upstream):
    doc = await sent(gateway, upstream, "/v1/completions", 'system_message = "NEW ORDERS"\n', body={"model": "best", "prompt": "Once"})
    assert json.dumps(doc).index("NEW ORDERS") < json.dumps(doc).index("Once")


async def test_a_tool_that_was_left_out_is_no_call_of_the_answer(gateway, upstream):
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    up = await upstream(say.reply(None, finish="tool_calls", tool_calls=[call]))
    base_url = await gateway(client_key() + provider(up, models='[{id = "m", tools = false}]') + COMBO + 'tool_filter = "^none$"\n')
    got = await ask(base_url, CLIENTS["/v1/chat/completions"][0], stream=False)
    assert len(up.requests) == 1, "without tools a model that has none will do"
    assert got.status == 200


def two(gateway_keys):
    return '[[combos]]\nname = "best"\ntargets = [{target = "a/m", tags = ["eu"]}, {target = "b/m", tags = ["us", "fast"]}]\n' + gateway_keys


@pytest.mark.parametrize(("metadata", "via"), [
    ({"tags": ["us"], "team": "x"}, "b/m"), ({"tags": "fast, us", "tag_match": "all"}, "b/m"), ({"tags": ["eu", "us"]}, "a/m"),
    ({"tags": ["fast", "eu"], "tag_match": "all"}, "a/m"), ({"tags": ["moon"]}, "a/m"), ({"team": "x"}, "a/m")])
async def test_tags_choose_places_and_are_not_sent_on(gateway, upstream, metadata, via):
    ups = {"a/m": await upstream(say.reply("a")), "b/m": await upstream(say.reply("b"))}
    base_url = await gateway(client_key() + provider(ups["a/m"], "a", keys='["sk-a-123456"]')
                             + provider(ups["b/m"], "b", keys='["sk-b-123456"]') + two(""))
    got = await ask(base_url, {**ASK, "model": "best", "metadata": metadata}, stream=False)
    assert got.headers["X-Routed-Via"] == via
    left = {"team": "x"} if "team" in metadata else None
    assert ups[via].requests[0].json().get("metadata") == left


async def test_tags_of_an_account_choose_it(gateway, upstream):
    up = await upstream(say.reply("hello"))
    keys = '[{key = "sk-one-1234", tags = ["eu"]}, {key = "sk-two-1234", tags = ["us"]}]'
    base_url = await gateway(client_key() + provider(up, keys=keys))
    for _ in range(3):
        await ask(base_url, {**ASK, "metadata": {"tags": "us"}}, stream=False, headers={**AUTH, "X-Session-Id": "x"})
    assert {asked.headers["authorization"] for asked in up.requests} == {"Bearer sk-two-1234"}


async def test_a_pinned_session_falls_through_when_its_target_is_out_for_long(gateway, upstream):
    up_a = await upstream([say.reply("a"), say.reply("a"), say.error(429, headers={**say.JSON, "Retry-After": "600"}), say.reply("a")])
    up_b = await upstream(say.reply("b"))
    base_url = await gateway(client_key() + provider(up_a, "a", keys='["sk-a-123456"]') + provider(up_b, "b", keys='["sk-b-123456"]')
                             + '[[combos]]\nname = "best"\nstrategy = "round-robin"\ncontext_pin = true\ntargets = ["a/m", "b/m"]\n')
    via = [(await ask(base_url, {**ASK, "model": "best"}, stream=False, headers={**AUTH, "X-Session-Id": "x"})).headers["X-Routed-Via"]
           for _ in range(4)]
    assert via[:3] == ["a/m", "a/m", "b/m"]
    assert via[3] == "b/m"
    assert len(up_a.requests) == 3, "a pin sends nobody to a target that rests"


async def test_the_settings_of_a_place_go_before_those_of_its_combo(gateway, upstream):
    up_a, up_b = await upstream(say.error(503)), await upstream(say.error(503))
    base_url = await gateway(client_key() + provider(up_a, "a", keys='["sk-a-123456"]') + provider(up_b, "b", keys='["sk-b-123456"]')
                             + '[routing.combo_defaults]\nmax_retries = 1\n'
                             + '[[combos]]\nname = "best"\ntargets = ["a/m", {target = "b/m", max_retries = 3}]\n')
    await ask(base_url, {**ASK, "model": "best"}, stream=False)
    assert (len(up_a.requests), len(up_b.requests)) == (2, 4)


async def test_only_the_providers_of_a_combo_are_asked(gateway, upstream):
    up_a, up_b = await upstream(say.reply("a")), await upstream(say.reply("b"))
    base_url = await gateway(client_key() + provider(up_a, "a", keys='["sk-a-123456"]') + provider(up_b, "b", keys='["sk-b-123456"]')
                             + '[[combos]]\nname = "best"\ntargets = ["m", "*"]\nallowed_providers = ["b"]\n')
    assert (await ask(base_url, {**ASK, "model": "best"}, stream=False)).headers["X-Routed-Via"] == "b/m"
