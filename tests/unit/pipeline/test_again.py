"""An answer is given again to the byte, to its own tenant only, never one that was cut; identical requests at once ask once."""
import asyncio
import json

import aiohttp
import pytest

from gateway.config.load import load
from gateway.mock.script import Close, error, reply, stream
from gateway.server import compose
from tests.conftest import client_key, provider

CACHE = "[cache]\nenabled = true\n"
ASK = {"model": "m", "messages": [{"role": "user", "content": "Grüße 🙂"}]}
SURFACES = {
    "chat": ("/v1/chat/completions", ASK),
    "messages": ("/v1/messages", {**ASK, "max_tokens": 100}),
    "responses": ("/v1/responses", {"model": "m", "input": "Hi", "store": False}),
    "completions": ("/v1/completions", {"model": "m", "prompt": "Hi"}),
}


@pytest.fixture
async def http(stack):
    return await stack.enter_async_context(aiohttp.ClientSession())


async def say(http, base, body=ASK, path="/v1/chat/completions", key=None, **headers):
    auth = {"Authorization": f"Bearer {key}"} if key else {}
    async with http.post(base + path, json=body, headers={**auth, **headers}) as answer:
        return answer.status, await answer.read(), answer.headers


@pytest.mark.parametrize("surface", sorted(SURFACES))
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_repetition_is_answered_to_the_byte_without_asking(upstream, gateway, http, surface, streamed):
    up = await upstream(stream("Grüße", " 🙂") if streamed else reply("Grüße 🙂"))
    base = await gateway(CACHE + provider(up))
    path, body = SURFACES[surface]
    body = {**body, "stream": streamed}
    _, first, missed = await say(http, base, body, path)
    status, second, hit = await say(http, base, dict(reversed(body.items())), path)
    _, third, _ = await say(http, base, body, path)
    assert status == 200 and first == second == third and len(up.requests) == 1
    assert (missed["X-FreeLLM-Cache"], hit["X-FreeLLM-Cache"]) == ("MISS", "HIT")
    assert hit["X-Routed-Via"] == "cache" and hit["Content-Type"] == missed["Content-Type"]
    assert hit["X-Request-ID"] != missed["X-Request-ID"]


async def test_a_hundred_identical_misses_at_once_ask_once(upstream, gateway, http):
    up = await upstream(stream("one", " two", delay_s=0.05))
    base = await gateway(CACHE + provider(up))
    said = await asyncio.gather(*(say(http, base, {**ASK, "stream": True}) for _ in range(100)))
    assert len(up.requests) == 1 and len({body for _, body, _ in said}) == 1
    assert gateway.listener.parts.replays.status()["hits"] == 99 and not gateway.listener.parts.replays.flights


async def test_when_the_first_one_leaves_another_asks(upstream, gateway, http):
    up = await upstream(reply("late").later(0.3))
    base = await gateway(CACHE + provider(up))
    first = asyncio.ensure_future(say(http, base))
    await asyncio.sleep(0.1)
    second = asyncio.ensure_future(say(http, base))
    await asyncio.sleep(0.05)
    first.cancel()
    status, body, _ = await second
    assert status == 200 and b"late" in body and len(up.requests) == 2


@pytest.mark.parametrize("answer", [
    stream("cut", finish="length"), stream("broken").but(Close(), after=2), error(500)])
async def test_what_was_cut_or_failed_is_not_kept(upstream, gateway, http, answer):
    up = await upstream(answer)
    base = await gateway(CACHE + provider(up) + "[routing]\nmax_attempts = 1\ntransient_cooldown_s = 0\n")
    await say(http, base, {**ASK, "stream": True})
    assert gateway.listener.parts.replays.status()["stored"] == 0
    assert not gateway.listener.parts.replays.flights


async def test_tenants_do_not_share_an_answer(upstream, gateway, http):
    up = await upstream(reply("secret"))
    base = await gateway(CACHE + provider(up) + client_key("a", "key-a-123456") + client_key("b", "key-b-123456"))
    await say(http, base, key="key-a-123456")
    _, _, headers = await say(http, base, key="key-b-123456")
    assert headers["X-FreeLLM-Cache"] == "MISS" and len(up.requests) == 2


@pytest.mark.parametrize(("headers", "config", "state"), [
    ({"X-FreeLLM-Cache": "off"}, CACHE, "OFF"), ({"Cache-Control": "no-store"}, CACHE, "OFF"), ({"Cache-Control": "max-age=0, No-Cache"}, CACHE, "OFF"),
    ({"X-FreeLLM-Cache": "on"}, "", "MISS"), ({}, "", "OFF"), ({"X-FreeLLM-Cache": "perhaps"}, CACHE, "MISS"),
    ({}, CACHE + "max_temperature = 0.4\n", "OFF")])
async def test_the_caller_and_the_operator_decide(upstream, gateway, http, headers, config, state):
    up = await upstream(reply("Hi"))
    base = await gateway(config + provider(up))
    _, _, said = await say(http, base, {**ASK, "temperature": 0.5}, **headers)
    assert said["X-FreeLLM-Cache"] == state


@pytest.mark.parametrize(("more", "manner", "state"), [
    ("", {}, "HIT"), ('[stream]\nmodel_echo = "requested"\n', {}, "MISS"), ('[thinking]\nmode = "off"\n', {}, "MISS"),
    ('[guardrails.pii]\nanswers = "mask"\n', {}, "MISS"), ('[context]\noverflow = "trim"\n', {}, "MISS"),
    ('[images]\nmax_side = 100\n', {}, "MISS"), ('[compression]\nmode = "lossless"\n', {}, "MISS"),
    ('[[combos]]\nname = "other"\ntargets = ["m"]\nsystem_message = "Be brief."\n', {}, "MISS"),
    ("", {"instructions": '"Answer in rhymes."'}, "MISS"), ("", {"thinking": '"off"'}, "MISS"), ("", {"guards_off": '["pii"]'}, "MISS"),
    ("[limits]\nmax_inflight = 9\n", {"rpm": "50"}, "HIT")])
async def test_another_configuration_answers_anew(upstream, gateway, http, tmp_path, more, manner, state):
    up = await upstream(reply("Hi"))
    config = CACHE + provider(up)
    base = await gateway(config + client_key())
    await say(http, base, key="gw-test-key")
    file = tmp_path / "other.toml"
    file.write_text(config + client_key(**manner) + more, encoding="utf-8")
    listener = gateway.listener
    listener.desk.ground = compose.ground(load(file, {}), listener.parts)
    _, _, headers = await say(http, base, key="gw-test-key")
    assert headers["X-FreeLLM-Cache"] == state


async def test_a_hit_takes_nothing_of_a_limit(upstream, gateway, http):
    up = await upstream(reply("Hi"))
    base = await gateway(CACHE + provider(up) + client_key(rpm="1"))
    said = [await say(http, base, key="gw-test-key") for _ in range(5)]
    assert [status for status, _, _ in said] == [200] * 5


async def test_the_record_of_a_hit_names_the_model_though_nothing_was_read(upstream, gateway, http):
    up = await upstream(reply("Hi"))
    base = await gateway(CACHE + provider(up) + '[store]\nurl = "memory:"\n')
    for _ in range(3):                               # asked, found by its meaning or its bytes, found by its bytes
        await say(http, base)
    async with http.get(base + "/admin/api/requests") as answer:
        rows = (await answer.json())["requests"]
    assert [row["asked"] for row in rows] == ["m"] * 3 and len(up.requests) == 1


async def test_a_kept_response_is_a_dialogue_of_its_own(upstream, gateway, http):
    up = await upstream(reply("Hi"))
    base = await gateway(CACHE + provider(up))
    for _ in range(2):
        _, _, headers = await say(http, base, {"model": "m", "input": "Hi"}, "/v1/responses")
        assert headers["X-FreeLLM-Cache"] == "OFF"


# ---------------------------------------------------------------------- Idempotency-Key
async def test_the_same_idempotency_key_gets_the_same_answer(upstream, gateway, http):
    up = await upstream(reply("once"))
    base = await gateway(provider(up))
    said = await asyncio.gather(*(say(http, base, **{"Idempotency-Key": "k1"}) for _ in range(5)))
    said.append(await say(http, base, **{"Idempotency-Key": "k1"}))
    assert len(up.requests) == 1 and len({body for _, body, _ in said}) == 1
    assert said[-1][2]["X-Routed-Via"] == "idempotency" and said[-1][2]["X-FreeLLM-Cache"] == "OFF"


async def test_an_idempotency_key_means_one_request(upstream, gateway, http):
    up = await upstream(reply("once"))
    base = await gateway(provider(up))
    await say(http, base, **{"Idempotency-Key": "k1"})
    status, body, _ = await say(http, base, {**ASK, "max_tokens": 5}, **{"Idempotency-Key": "k1"})
    assert status == 409 and json.loads(body)["error"]["code"] == "idempotency_key_conflict"
    status, body, _ = await say(http, base, **{"Idempotency-Key": "x" * 256})
    assert status == 400 and "idempotency" in json.loads(body)["error"]["param"]


async def test_idempotency_keys_belong_to_their_client(upstream, gateway, http):
    up = await upstream(reply("once"))
    base = await gateway(provider(up) + client_key("a", "key-a-123456") + client_key("b", "key-b-123456"))
    for key in ("key-a-123456", "key-b-123456"):
        await say(http, base, key=key, **{"Idempotency-Key": "k1"})
    assert len(up.requests) == 2


async def test_whole_answers_are_there_after_a_restart(upstream, gateway, http, tmp_path):
    up = await upstream(reply("kept"))
    config = CACHE + f'[store]\nurl = "sqlite:{tmp_path}/gateway.db"\n' + provider(up)
    first = await say(http, await gateway(config))
    await gateway.listener.close(0)
    again = await say(http, await gateway(config))
    assert again[1] == first[1] and again[2]["X-FreeLLM-Cache"] == "HIT" and len(up.requests) == 1
