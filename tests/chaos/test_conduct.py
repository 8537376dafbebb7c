"""What the operator makes of requests: dialogues that fit, instructions of a key, less thinking; on every surface."""
import json

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import AUTH, ask
from tests.unit.wire.test_history import WIRES

LONG = [(f"question {n} " + "word " * 300, [(f"c{n}", "result " * 200)], f"answer {n}") for n in range(6)] + [("the last question", [], "")]
TOOL = {"type": "object", "properties": {}}
# wire -> (path, what else a request needs)
SURFACES = {
    "openai-chat": ("/v1/chat/completions", {"model": "m"}),
    "anthropic": ("/v1/messages", {"model": "m", "max_tokens": 9}),
    "openai-responses": ("/v1/responses", {"model": "m", "store": False}),
    "gemini": ("/v1beta/models/m:generateContent", {}),
    "ollama": ("/api/chat", {"model": "m"}),
}
OLLAMA = '[ollama]\nmode = "key"\n'
MODELS = '[{id = "m", context = 2000}]'


async def sent(gateway, upstream, wire, body, config="", key="", to="openai-chat", models='["m"]', status=200):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key(**({"instructions": json.dumps(key)} if isinstance(key, str) and key else key or {}))
                             + provider(up, wire=f'"{to}"', auth='"bearer"', models=models) + OLLAMA + config)
    path, more = SURFACES[wire]
    got = await ask(base_url, {**more, **body}, path=path, stream=None if wire == "gemini" else False, headers=AUTH)
    assert status == 200 or got.status == status, got.body
    return up.requests[0].json() if up.requests else None



@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("wire", SURFACES)
async def test_a_dialogue_over_the_largest_window_is_trimmed(gateway, upstream, wire, same):
    told = json.dumps(await sent(gateway, upstream, wire, WIRES[wire](LONG), '[context]\noverflow = "trim"\n',
                                 to=wire if same else "openai-chat", models=MODELS))
    assert "the last question" in told and "be kind" in told and "question 0" not in told
    assert "left out" in told
    assert len(told) < 8_000


@pytest.mark.parametrize("wire", SURFACES)
async def test_it_is_refused_where_that_is_not_allowed(gateway, upstream, wire):
    assert await sent(gateway, upstream, wire, WIRES[wire](LONG), models=MODELS, status=413) is None


async def test_nothing_is_left_out_as_long_as_somebody_has_room(gateway, upstream):
    small, large = await upstream(say.reply("s")), await upstream(say.reply("l"))
    base_url = await gateway(client_key() + provider(small, "small", models=MODELS, keys='["sk-a-12345"]')
                             + provider(large, "large", models='[{id = "m", context = 100000}]', keys='["sk-b-12345"]')
                             + '[context]\noverflow = "trim"\n')
    got = await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG)}, stream=False)
    assert got.headers["X-Routed-Via"] == "large/m"
    assert "left out" not in json.dumps(large.requests[0].json())


def houses(*ups):
    """Three targets of one model: the first takes all of it, the next a part, the last a smaller one."""
    return client_key() + "".join(provider(up, name, models=f'[{{id = "m", context = {room}}}]', keys=f'["sk-{name}-12345"]')
                                  for up, name, room in zip(ups, ("small", "middle", "large"), (1_500, 2_500, 100_000), strict=False))


@pytest.mark.parametrize("stream", [False, True])
async def test_who_has_no_room_is_asked_with_less_when_everybody_who_has_it_failed(gateway, upstream, stream):
    small, large = await upstream(say.stream("s") if stream else say.reply("s")), await upstream(say.error(500))
    base_url = await gateway(houses(small, await upstream(say.error(503)), large) + '[context]\noverflow = "trim"\n')
    got = await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG)}, stream=stream)
    assert got.status == 200 and got.headers["X-Routed-Via"] == "small/m", got.body
    assert "left out" not in json.dumps(large.requests[0].json()) and len(large.requests) == 1
    told = json.dumps(small.requests[0].json())
    assert "left out" in told and "the last question" in told and "be kind" in told and "question 0" not in told


async def test_of_those_who_have_no_room_the_largest_is_asked_first_and_with_the_most(gateway, upstream):
    small, middle = await upstream(say.reply("s")), await upstream(say.error(500))
    base_url = await gateway(houses(small, middle, await upstream(say.error(500))) + '[context]\noverflow = "trim"\n')
    got = await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG)}, stream=False)
    assert got.status == 200 and got.headers["X-Fallback-Trail"].count("middle/m") == 1
    assert len(small.requests) == len(middle.requests) == 1 and len(small.requests[0].body) < len(middle.requests[0].body)


async def test_who_is_not_asked_for_another_reason_is_nobody_to_be_trimmed_for(gateway, upstream):
    blind, large = await upstream(say.reply("b")), await upstream(say.error(500))
    base_url = await gateway(client_key() + provider(blind, "blind", models='[{id = "m", context = 1500, tools = false}]', keys='["sk-a-12345"]')
                             + provider(large, "large", models='[{id = "m", context = 100000}]', keys='["sk-b-12345"]')
                             + '[context]\noverflow = "trim"\n')
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    got = await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG), "tools": tools}, stream=False)
    assert got.status >= 500 and not blind.requests


async def test_where_that_is_not_allowed_nobody_is_asked_with_less(gateway, upstream):
    small = await upstream(say.reply("s"))
    base_url = await gateway(houses(small, await upstream(say.error(500)), await upstream(say.error(500))))
    got = await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG)}, stream=False)
    assert got.status >= 500 and not small.requests


async def test_a_window_that_nobody_knew_is_learned_from_the_refusal(gateway, upstream):
    def answer(asked):
        if len(asked.body) < 6_000:
            return say.reply("hello")
        return say.error(400, "This model's maximum context length is 1600 tokens. However, your messages resulted in 4000 tokens.",
                         code="context_length_exceeded")
    up = await upstream(answer)
    base_url = await gateway(client_key() + provider(up) + '[context]\noverflow = "trim"\n')
    got = await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG)}, stream=False)
    assert got.status == 200, got.body
    told = json.dumps(up.requests[-1].json())
    assert len(up.requests) == 2 and "left out" in told and "the last question" in told


async def test_a_last_turn_that_is_too_long_by_itself_is_still_refused(gateway, upstream):
    body = {"messages": [{"role": "user", "content": "word " * 3_000}]}
    assert await sent(gateway, upstream, "openai-chat", body, '[context]\noverflow = "trim"\n', models=MODELS, status=413) is None


async def test_what_was_left_out_stands_in_the_record(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key() + provider(up, models=MODELS) + '[context]\noverflow = "trim"\n[admin]\nkey = "operators-key-1234"\n')
    await ask(base_url, {"model": "m", **WIRES["openai-chat"](LONG)}, stream=False)
    got = await ask(base_url, path="/admin/api/requests", method="GET", headers={"Authorization": "Bearer operators-key-1234"})
    assert "context trimmed" in got.body.decode()


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("wire", SURFACES)
async def test_instructions_of_a_key_stand_behind_the_client_s_own(gateway, upstream, wire, same):
    told = json.dumps(await sent(gateway, upstream, wire, WIRES[wire]([("hi", [], "")]), key="HOUSE RULES",
                                 to=wire if same else "openai-chat"))
    assert told.count("HOUSE RULES") == told.count("be kind") == 1
    assert told.index("be kind") < told.index("HOUSE RULES")


async def test_thinking_is_capped_for_everybody_and_a_key_has_its_own_word(gateway, upstream):
    cap = '[thinking]\nmode = "cap"\nmax_effort = "low"\n'
    body = {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"}
    assert (await sent(gateway, upstream, "openai-chat", body, cap))["reasoning_effort"] == "low"
    assert (await sent(gateway, upstream, "openai-chat", body, cap, key={"thinking": '"pass"'}))["reasoning_effort"] == "high"
    claude = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 20_000, "thinking": {"type": "enabled", "budget_tokens": 9_000}}
    key = {"thinking": '"cap"', "thinking_max_tokens": "2048"}
    told = await sent(gateway, upstream, "anthropic", claude, key=key, to="anthropic")
    assert told["thinking"]["budget_tokens"] == 2048


async def test_a_model_is_loaded_without_instructions(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key(instructions='"HOUSE RULES"') + provider(up) + OLLAMA)
    got = await ask(base_url, {"model": "m", "messages": []}, path="/api/chat", stream=False)
    assert got.status == 200 and not up.requests
