"""Models that a provider lists are served without being written down; keys are tried; servers nearby are found."""
import asyncio
import json

import aiohttp
import pytest

from gateway.config.load import loads
from gateway.core.errors import GatewayError
from gateway.jobs import discovery
from gateway.jobs.listing import MAX_MODELS, address, read
from gateway.jobs.validate import validate
from gateway.mock.script import body_of, hang, reply
from gateway.server.compose import with_means
from tests.conftest import provider

JSON = {"Content-Type": "application/json"}
LIST = json.dumps({"data": [{"id": "one", "context_window": 5000}, {"id": "two"}]}).encode()


def only(text):
    return loads(text).providers[0]


def answers(models=LIST, status=200, server="x"):
    def answer(asked):
        if asked.path.endswith("/models"):
            return body_of(models, status, {**JSON, "Server": server})
        return reply("Hello")
    return answer


@pytest.mark.parametrize(("body", "names"), [
    (b'{"data":[{"id":"a"},{"id":"a"},{"id":""},{"id":7},{"id":"*"},{"id":"x\\ny"}]}', ["a"]),
    (b'{"models":[{"name":"models/gemini-x","inputTokenLimit":9}]}', ["gemini-x"]),
    (b'{"models":[{"name":"llama3:8b","model":"llama3:8b"}]}', ["llama3:8b"]),
    (b'[{"id":"a"},"b"]', ["a", "b"]),
])
def test_lists_of_every_shape_are_read(body, names):
    assert [model.id for model in read(body, only(provider("http://127.0.0.1:1/v1")))] == names


def test_a_list_has_an_end_and_garbage_is_refused():
    upstream = only(provider("http://127.0.0.1:1/v1"))
    assert len(read(json.dumps([f"m{i}" for i in range(MAX_MODELS + 5)]).encode(), upstream)) == MAX_MODELS
    for garbage in (b"", b"<html>", b"{}", b'{"data":1}'):
        with pytest.raises(GatewayError):
            read(garbage, upstream)


def test_each_wire_has_a_place_for_its_list():
    def at(**more):
        found = only(provider("https://a.example/v1", **more))
        return address(found, found.accounts[0])
    assert at() == "https://a.example/v1/models"
    assert at(wire='"gemini"', auth='"query"') == "https://a.example/v1/models?pageSize=1000&key=sk-up-1"
    assert at(wire='"ollama"', auth='"bearer"') == "https://a.example/v1/api/tags"
    assert at(wire='"bedrock-converse"') == ""


async def ask(http, base, model):
    async with http.post(base + "/v1/chat/completions", json={"model": model, "messages": [{"role": "user", "content": "Hi"}]}) as got:
        return got.status


async def test_all_that_a_provider_lists_is_served(upstream, gateway, stack):
    http = await stack.enter_async_context(aiohttp.ClientSession())
    up = await upstream(answers())
    base = await gateway(provider(up, models='[{id = "two", context = 7}, "*"]'))
    async with asyncio.timeout(5):
        while await ask(http, base, "one") != 200:
            await asyncio.sleep(0.02)
    async with http.get(base + "/v1/models") as got:
        rows = {row["id"]: row for row in (await got.json())["data"]}
    assert rows["one"]["context_window"] == 5000 and rows["two"]["context_window"] == 7


async def test_a_list_that_does_not_come_holds_up_nobody(upstream, gateway, stack):
    http = await stack.enter_async_context(aiohttp.ClientSession())
    slow, fine = await upstream(hang()), await upstream(reply("Hello"))
    base = await gateway(provider(slow, "a", models='["*"]') + provider(fine, "b"))
    assert await ask(http, base, "m") == 200


async def test_a_reload_keeps_what_was_found(upstream, gateway, stack):
    from gateway.server import compose
    up = await upstream(answers())
    await gateway(provider(up, models='["*"]'))
    listener = gateway.listener
    await listener.parts.discovery.look()
    fresh = compose.ground(loads(provider(up, models='["*"]')), listener.parts)
    assert set(fresh.catalog.providers["up"].models) == {"one", "two"}


async def test_without_a_configuration_servers_nearby_are_found(upstream, monkeypatch):
    up, gate, dead = await upstream(answers()), await upstream(answers(server="gateway")), await upstream(hang())
    places = {"ollama": up, "llamacpp": gate, "vllm": dead}
    monkeypatch.setattr(discovery, "LOCAL", tuple(places))
    monkeypatch.setattr(discovery, "local", lambda name: only(provider(places[name], name, models='["*"]')))

    async def look(means):
        found = discovery.Discovery(means)
        empty = loads("")
        assert found.apply(empty) is empty
        assert await found.look()
        return found.apply(empty)
    snapshot = await with_means(loads(""), look)
    assert [(p.id, list(p.models)) for p in snapshot.providers] == [("ollama", ["one", "two"])]


async def test_keys_are_told_apart(upstream):
    def answer(asked):
        good = asked.headers["authorization"] == "Bearer sk-good-1"
        return body_of(LIST, 200, JSON) if good else body_of(b'{"error":{"message":"bad key"}}', 401, JSON)
    up = await upstream(answer)
    snapshot = loads(provider(up, keys='["sk-good-1", {key = "sk-bad-22", label = "old"}]') + provider("http://127.0.0.1:9/v1", "down"))
    found = await with_means(snapshot, lambda means: validate(snapshot.providers, means))
    assert [(v.provider, v.account, v.state, v.models) for v in found] == [
        ("up", "key1", "good", 2), ("up", "old", "bad", 0), ("down", "key1", "unreachable", 0)]
    assert "sk-" not in repr(found)


async def test_probes_take_turns_and_cool_a_bad_key(upstream, gateway):
    up = await upstream(answers(b'{"error":{"message":"bad key"}}', 401))
    await gateway(provider(up, keys='["sk-one-11", "sk-two-22"]'))
    listener = gateway.listener
    for _ in range(2):
        await listener.jobs.probe()
    assert {asked.headers["authorization"] for asked in up.requests} == {"Bearer sk-one-11", "Bearer sk-two-22"}
    ground = listener.desk.ground
    assert all(ground.health.blocked(c, ground.clock.now()) for t in ground.catalog.targets for c in t.candidates)
    up.answer = answers()
    for _ in range(2):
        await listener.jobs.probe()
    assert not any(ground.health.blocked(c, ground.clock.now()) for t in ground.catalog.targets for c in t.candidates)
