"""The rest of the list by its numbers: limits that are learned and waited for, repetitions, panels (A10, R05, R06, R07)."""
import asyncio
import json

import pytest

from gateway.mock import script as say
from tests.acceptance.house import House, combo, three
from tests.talk import ASK, AUTH, ask

SPENT = {
    "openai": {"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50s"},
    "anthropic": {"anthropic-ratelimit-requests-limit": "100", "anthropic-ratelimit-requests-remaining": "0",
                  "anthropic-ratelimit-requests-reset": "2099-01-01T00:00:00Z"},
}


def told(script, headers):
    head = script.steps[0]
    return say.Script((say.Head(head.status, {**head.headers, **headers}), *script.steps[1:]))


@pytest.mark.parametrize("family", sorted(SPENT))
async def test_r05_what_is_left_is_learned_from_both_families_of_headers(gateway, upstream, family):
    house = await House.open(gateway, upstream, three(a=told(say.stream("from a"), SPENT[family])), more=combo("headroom"))
    assert (await house.ask()).headers["X-Routed-Via"] == "a/m"
    assert "a" not in await house.via(6), "an account that says it is spent is the last that is asked"


async def test_r05_a_limit_of_zero_is_none(gateway, upstream):
    house = await House.open(gateway, upstream, {"a": say.stream("from a")}, facts={"a": {"limits": "{rpm = 0, tpm = 0, concurrency = 0}"}})
    answers = await asyncio.gather(*(house.ask("a/m") for _ in range(60)))
    assert {got.status for got in answers} == {200}


async def test_r05_who_waits_for_a_place_in_vain_is_told_so(gateway, upstream):
    house = await House.open(gateway, upstream, {"a": say.stream("from a", delay_s=0.3)},
                             more=combo("priority", "a/m", queue_timeout_s="0.05", queue_depth="1"), facts={"a": {"limits": "{concurrency = 1}"}})
    first = asyncio.ensure_future(house.ask())
    await house.ups["a"].until(lambda: house.asked("a") == 1)
    late = await house.ask(stream=False)
    assert late.status in (429, 503) and late.headers["Retry-After"]
    assert (await first).status == 200 and house.asked("a") == 1


async def test_r06_a_repetition_is_one_of_tools_format_limits_and_key(gateway, upstream):
    house = await House.open(gateway, upstream, {"a": say.reply("from a")}, more="[cache]\nenabled = true\n")
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    asked = [{}, {"tools": [tool]}, {"response_format": {"type": "json_object"}}, {"max_tokens": 5}]
    for fields in asked:
        await house.ask("a/m", stream=False, **fields)
    assert house.asked("a") >= len(asked)
    before = house.asked("a")
    again = await house.ask("a/m", stream=False)
    assert house.asked("a") == before and again.headers["X-FreeLLM-Cache"] == "HIT"


async def test_r07_an_idempotency_key_is_bound_to_its_body(gateway, upstream):
    house = await House.open(gateway, upstream, {"a": say.reply("from a")})
    body, headers = {**ASK, "model": "a/m"}, {**AUTH, "Idempotency-Key": "order-1"}
    first, second = [await ask(house.base_url, body, stream=False, headers=headers) for _ in range(2)]
    other = await ask(house.base_url, {**body, "max_tokens": 5}, stream=False, headers=headers)
    assert first.body == second.body and first.status == 200 and house.asked("a") == 1
    assert other.status == 409


@pytest.fixture
async def panel(gateway, upstream):
    return await House.open(gateway, upstream, three(),
                            more=combo("fusion", quorum="2", grace_s="0.2", panel_timeout_s="1.0", judge='"c/m"'))


async def test_a10_quorum_grace_and_timeout_end_a_panel(panel):
    panel.say(a=say.reply("one"), b=say.reply("two"), c=say.stream("the verdict"))
    got = await panel.ask()
    assert got.text == "the verdict" and got.headers["X-Routed-Via"].startswith("fusion(")
    panel.say(a=say.reply("only one"), b=say.hang())
    assert (await panel.ask()).status == 200


async def test_a10_nobody_is_an_honest_status_and_calls_that_win_are_verbatim(panel):
    panel.say(**dict.fromkeys("abc", say.error(500, "it broke")))
    assert (await panel.ask(stream=False)).status in (502, 503)
    panel.clock.by += 1_000
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    panel.say(**dict.fromkeys("abc", say.reply("", finish="tool_calls", tool_calls=[call])))
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    got = await panel.ask(stream=False, tools=[tool])
    assert json.loads(got.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == {"x": 1}
