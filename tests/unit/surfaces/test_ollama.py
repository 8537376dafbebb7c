"""Ollama's doors: who may come in, and what they get."""
import json

import aiohttp
import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.talk import AUTH, ask

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}}}}}
LOOPBACK, WITH_KEY = '[ollama]\nmode = "loopback"\n', '[ollama]\nmode = "key"\n'


@pytest.fixture
def door(gateway, upstream):
    """A gateway with one upstream that answers; ``door.up`` is it."""
    async def start(script=None, mode=LOOPBACK, models='["m", {id = "see", vision = true, context = 4096}]', **more):
        start.up = await upstream(script or say.stream("Hel", "lo"))
        return await gateway(client_key() + provider(start.up, models=models, **more) + mode)
    return start


async def talk(base_url, body, path="/api/chat", headers=None):
    """(answer, its lines)."""
    got = await ask(base_url, body, path=path, headers={} if headers is None else headers)
    return got, [json.loads(line) for line in got.body.splitlines()]


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/api/embed", "/api/show"])
async def test_it_is_off_by_default(door, path):
    got = await ask(await door(mode=""), CHAT, path=path)
    assert got.status == 404 and "error" in got.json


async def test_this_machine_needs_no_key_and_others_never_get_in(door):
    base_url = await door()
    assert (await ask(base_url, CHAT, path="/api/chat", headers={})).status == 200
    assert (await ask(base_url, CHAT, path="/api/chat", headers={"Authorization": "Bearer ollama"})).status == 200
    for told in ("10.1.2.3, 127.0.0.1", "127.0.0.1, 10.1.2.3"):
        got = await ask(base_url, CHAT, path="/api/chat", headers={"X-Forwarded-For": told})
        assert got.status == 403 and isinstance(got.json["error"], str)
    assert (await ask(base_url, CHAT, path="/v1/chat/completions", headers={})).status == 401


async def test_a_web_page_does_not_spend_the_keys(door):
    got = await ask(await door(), CHAT, path="/api/chat", headers={"Origin": "https://evil.example"})
    assert got.status == 403 and not door.up.requests


async def test_with_keys_a_key_is_needed(door):
    base_url = await door(mode=WITH_KEY)
    assert (await ask(base_url, CHAT, path="/api/chat", headers={})).status == 401
    assert (await ask(base_url, CHAT, path="/api/chat", headers=AUTH)).status == 200
    assert (await ask(base_url, CHAT, path="/api/chat", headers={"x-api-key": KEY})).status == 200


async def test_chat_streams_lines_unless_it_is_told_not_to(door):
    got, lines = await talk(await door(), CHAT)
    assert got.headers["Content-Type"] == "application/x-ndjson"
    assert "".join(line["message"]["content"] for line in lines) == "Hello"
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    last = lines[-1]
    assert last["done_reason"] == "stop" and last["eval_count"] > 0 and last["total_duration"] > last["eval_duration"] > 0
    assert all(line["model"] == "m" and line["created_at"].endswith("Z") for line in lines)
    got, lines = await talk(await door(say.reply("Hello")), {**CHAT, "stream": False})
    assert got.headers["Content-Type"] == "application/json" and len(lines) == 1
    assert lines[0]["message"] == {"role": "assistant", "content": "Hello"} and lines[0]["done"] is True


async def test_generate_has_its_own_words(door):
    _, lines = await talk(await door(), {"model": "m", "prompt": "hi", "system": "be kind"}, "/api/generate")
    assert "".join(line["response"] for line in lines) == "Hello" and lines[-1]["context"] == []
    assert [m["role"] for m in door.up.requests[0].json()["messages"]] == ["system", "user"]
    _, lines = await talk(await door(say.reply("Hello")), {"model": "m", "prompt": "hi", "stream": False}, "/api/generate")
    assert lines[0]["response"] == "Hello" and "message" not in lines[0]


async def test_calls_are_whole_and_objects(door):
    _, lines = await talk(await door(say.tool_stream("f", ['{"a"', ":1}"])), {**CHAT, "tools": [TOOL]})
    call = next(line for line in lines if line["message"].get("tool_calls"))["message"]["tool_calls"][0]
    assert call["function"]["name"] == "f" and call["function"]["arguments"] == {"a": 1} and lines[-1]["done_reason"] == "stop"
    assert door.up.requests[0].json()["tools"] == [{"type": "function", "function": TOOL["function"]}]


async def test_what_is_asked_arrives(door):
    await talk(await door(), {**CHAT, "model": "see", "think": "high", "format": {"type": "object"}, "options": {
        "num_predict": 9, "temperature": 0.5, "top_k": 3, "stop": "x", "num_ctx": 5}, "messages": [
        {"role": "user", "content": "look", "images": ["iVBORw0KGgoAAA"]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}},
                                                            {"function": {"name": "g", "arguments": {}}}]},
        {"role": "tool", "tool_name": "g", "content": "second"}, {"role": "tool", "content": "first"}]})
    sent = door.up.requests[0].json()
    assert (sent["max_tokens"], sent["temperature"], sent["top_k"], sent["stop"]) == (9, 0.5, 3, ["x"])
    assert sent["reasoning_effort"] == "high" and sent["response_format"]["json_schema"]["schema"] == {"type": "object"}
    user, assistant, *results = sent["messages"]
    assert user["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgoAAA"
    ids = {call["function"]["name"]: call["id"] for call in assistant["tool_calls"]}
    assert {m["tool_call_id"]: m["content"] for m in results} == {ids["f"]: "first", ids["g"]: "second"}


@pytest.mark.parametrize("think, effort", [(True, "medium"), (False, "none"), ("low", "low")])
async def test_think_is_heard(door, think, effort):
    await talk(await door(), {**CHAT, "think": think})
    assert door.up.requests[0].json()["reasoning_effort"] == effort


@pytest.mark.parametrize("path, body", [("/api/chat", {"model": "m"}), ("/api/chat", {"model": "m", "messages": []}),
                                        ("/api/generate", {"model": "m:latest"}), ("/api/generate", {"model": "m", "prompt": ""})])
async def test_an_empty_request_only_loads_the_model(door, path, body):
    got, lines = await talk(await door(), body, path)
    assert got.status == 200 and (lines[0]["done"], lines[0]["done_reason"]) == (True, "load") and not door.up.requests
    _, lines = await talk(await door(), {**body, "keep_alive": 0}, path)
    assert lines[0]["done_reason"] == "unload"


async def test_errors_are_one_text(door):
    base_url = await door(say.error(401, "bad key"))
    for body, status in ((CHAT, 502), ({"messages": []}, 400), ({**CHAT, "model": "nobody"}, 404), ({**CHAT, "think": "wild"}, 400)):
        got = await ask(base_url, body, path="/api/chat", headers={})
        assert got.status == status and list(got.json) == ["error"] and isinstance(got.json["error"], str)


async def test_a_stream_that_breaks_says_so_in_its_last_line(door):
    _, lines = await talk(await door(say.half_frame("Hel", "lo")), CHAT)
    assert lines[-1]["error"] and lines[-1]["done"] is True and "done_reason" not in lines[-1]


async def test_latest_is_no_part_of_a_name_unless_it_is(door):
    base_url = await door(models='["m", "own:latest"]')
    for name in ("m:latest", "own:latest", "auto:latest"):
        assert (await ask(base_url, {**CHAT, "model": name}, path="/api/chat", headers={})).status == 200
    assert [asked.json()["model"] for asked in door.up.requests] == ["m", "own:latest", "m"]


async def test_models_are_tagged_and_shown(door):
    base_url = await door()
    tags = (await ask(base_url, method="GET", path="/api/tags", headers={})).json["models"]
    assert [row["name"] for row in tags] == ["auto", "m", "see"]
    assert (await ask(base_url, method="GET", path="/api/version", headers={})).json["version"].count(".") == 2
    card = (await ask(base_url, {"model": "see:latest"}, path="/api/show", headers={})).json
    assert card["model_info"]["general.context_length"] == 4096 and {"completion", "tools", "vision"} <= set(card["capabilities"])
    assert (await ask(base_url, {"model": "nobody"}, path="/api/show", headers={})).status == 404


async def test_vectors_in_both_forms(door):
    rows = [{"index": i, "embedding": [0.5, float(i)]} for i in range(2)]
    script = say.body_of(json.dumps({"data": rows, "model": "vec", "usage": {"prompt_tokens": 4}}).encode())
    base_url = await door(script, models='[{id = "vec", kind = "embedding"}]')
    got = await ask(base_url, {"model": "vec:latest", "input": ["a", "b"]}, path="/api/embed", headers={})
    assert got.json["embeddings"] == [[0.5, 0.0], [0.5, 1.0]] and got.json["prompt_eval_count"] == 4
    one = say.body_of(json.dumps({"data": rows[:1], "model": "vec"}).encode())
    got = await ask(await door(one, models='[{id = "vec", kind = "embedding"}]'), {"model": "vec", "prompt": "a"},
                    path="/api/embeddings", headers={})
    assert got.json == {"embedding": [0.5, 0.0]}


# ---------------------------------------------------------------- Ollama as an upstream
def lines(*docs):
    return say.body_of(b"".join(json.dumps(doc).encode() + b"\n" for doc in docs), headers={"Content-Type": "application/x-ndjson"})


SAID = lines({"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "Hel"}, "done": False, "odd": 1},
             {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "lo"}, "done": False},
             {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
              "total_duration": 7, "prompt_eval_count": 3, "eval_count": 2})


async def test_openai_clients_are_answered_by_an_ollama_server(door):
    base_url = await door(SAID, wire='"ollama"')
    got = await ask(base_url, {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
    assert got.text == "Hello" and got.finishes == ["stop"] and got.done == 1
    assert got.frames[-1]["usage"]["prompt_tokens"] == 3
    sent = door.up.requests[0]
    assert sent.path == "/v1/api/chat" and sent.json() == {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}


async def test_ollama_to_ollama_passes_lines_as_they_came(door):
    got, said = await talk(await door(SAID, wire='"ollama"'), {**CHAT, "keep_alive": "5m", "options": {"num_ctx": 9}})
    assert got.status == 200 and said[0]["odd"] == 1 and said[-1]["total_duration"] == 7
    assert door.up.requests[0].json() == {**CHAT, "keep_alive": "5m", "options": {"num_ctx": 9}}


@pytest.mark.parametrize("address", ["", "/api", "/api/"])
async def test_the_address_is_written_with_or_without_api(gateway, upstream, address):
    up = await upstream(SAID)
    base_url = await gateway(provider(f"http://127.0.0.1:{up.port}{address}", wire='"ollama"') + LOOPBACK)
    async with aiohttp.ClientSession() as session, session.post(base_url + "/api/chat", json=CHAT) as got:
        assert got.status == 200
    assert up.requests[0].path == "/api/chat"
