"""What reaches the upstream is smaller, says so, and is what the caller would have sent had it known; counting counts that."""
import json
import threading

import pytest

from gateway.core.errors import GatewayError
from gateway.mock.script import reply
from gateway.pipeline import shrink
from tests.conftest import provider
from tests.talk import ask

QUEUE = "waiting for the queue to become ready\n"
RESULT = QUEUE * 40 + "port 8431 is taken"
SHORT = QUEUE + "[the line above 39 more times]\nport 8431 is taken"
ARGUMENTS = '{"command":"./deploy"}'
CHAT = {"model": "m", "messages": [
    {"role": "user", "content": "Deploy it."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": ARGUMENTS}}]},
    {"role": "tool", "tool_call_id": "c", "content": RESULT}]}
MESSAGES = {"model": "m", "max_tokens": 50, "messages": [
    {"role": "user", "content": "Deploy it."},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": json.loads(ARGUMENTS)}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": RESULT}]}]}
RESPONSES = {"model": "m", "input": [
    {"role": "user", "content": "Deploy it."}, {"type": "function_call", "call_id": "c", "name": "bash", "arguments": ARGUMENTS},
    {"type": "function_call_output", "call_id": "c", "output": RESULT}]}
GEMINI = {"contents": [
    {"role": "user", "parts": [{"text": "Deploy it."}]}, {"role": "model", "parts": [{"functionCall": {"name": "bash", "args": json.loads(ARGUMENTS)}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": RESULT}}}]}]}
SURFACES = {"chat": ("/v1/chat/completions", CHAT), "messages": ("/v1/messages", MESSAGES), "responses": ("/v1/responses", RESPONSES),
            "gemini": ("/v1beta/models/m:generateContent", GEMINI)}
STANDARD = '[compression]\nmode = "standard"\n'


def tool_result(up):
    return next(message["content"] for message in up.requests[-1].json()["messages"] if message["role"] == "tool")


@pytest.mark.parametrize("surface", SURFACES)
async def test_every_surface_sends_less_and_says_so(upstream, gateway, surface):
    up = await upstream(reply("ok"))
    base = await gateway(STANDARD + provider(up))
    path, body = SURFACES[surface]
    got = await ask(base, body, path=path, headers={})
    assert got.status == 200 and tool_result(up) == SHORT
    assert got.headers["X-FreeLLM-Compress"] == f"standard; saved~={(len(RESULT) - len(SHORT)) // 4}"
    assert got.headers["X-FreeLLM-Cache"] == "OFF"
    assert gateway.listener.parts.tally.compressed == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_format_passes_with_only_the_text_changed(upstream, gateway, stream):
    up = await upstream(reply("ok"))
    base = await gateway(STANDARD + provider(up))
    await ask(base, CHAT | {"seed": 7}, headers={}, stream=stream)
    sent = up.requests[-1].json()
    assert sent["messages"][:2] == CHAT["messages"][:2] and sent["seed"] == 7


@pytest.mark.parametrize(("configured", "header", "told"), [
    ("off", "aggressive", None), ("standard", "off", "off; saved~=0"), ("lossless", "aggressive", "lossless; saved~=0"),
    ("lossless", "standard", "lossless; saved~=0"), ("aggressive", "lossless", "lossless; saved~=0"), ("standard", "on", "standard; saved~=362"),
])
async def test_the_header_cannot_raise(upstream, gateway, configured, header, told):
    up = await upstream(reply("ok"))
    base = await gateway(f'[compression]\nmode = "{configured}"\n' + provider(up))
    got = await ask(base, CHAT, headers={"X-FreeLLM-Compress": header})
    assert got.headers.get("X-FreeLLM-Compress") == told
    assert (tool_result(up) == RESULT) == (not told or told.endswith("=0"))


async def test_a_large_body_is_made_smaller_off_the_loop(upstream, gateway, monkeypatch):
    threads = []
    work = shrink.smaller
    monkeypatch.setattr(shrink, "smaller", lambda *args: (threads.append(threading.current_thread().name), work(*args))[1])
    up = await upstream(reply("ok"))
    base = await gateway(STANDARD + provider(up))
    large = CHAT | {"messages": [*CHAT["messages"][:2], CHAT["messages"][2] | {"content": RESULT * 30}]}
    await ask(base, CHAT, headers={})
    await ask(base, large, headers={})
    assert not threads[0].startswith("gateway-alone") and threads[1].startswith("gateway-alone")
    assert len(up.requests[-1].body) < len(up.requests[0].body) * 30


async def test_what_fails_here_is_sent_as_it_came(upstream, gateway, monkeypatch):
    def broken(*args):
        raise ValueError("no")
    monkeypatch.setattr("gateway.compress.wires.write", broken)
    up = await upstream(reply("ok"))
    got = await ask(await gateway(STANDARD + provider(up)), CHAT, headers={})
    assert got.status == 200 and tool_result(up) == RESULT
    assert got.headers["X-FreeLLM-Compress"] == "standard; saved~=0"


async def test_a_response_is_kept_as_the_client_said_it(upstream, gateway):
    up = await upstream(reply("ok"))
    base = await gateway(STANDARD + provider(up))
    first = (await ask(base, RESPONSES, path="/v1/responses", headers={})).json
    kept = await ask(base, path=f"/v1/responses/{first['id']}/input_items", headers={}, method="GET")
    assert any(item.get("output") == RESULT for item in kept.json["data"])
    await ask(base, {"model": "m", "input": "And?", "previous_response_id": first["id"]}, path="/v1/responses", headers={})
    assert tool_result(up) == SHORT


@pytest.mark.parametrize(("path", "body", "field"), [
    ("/v1/messages/count_tokens", MESSAGES, "input_tokens"), ("/v1/responses/input_tokens", RESPONSES, "input_tokens"),
    ("/v1beta/models/m:countTokens", GEMINI, "totalTokens")])
async def test_what_is_counted_is_what_would_be_sent(upstream, gateway, path, body, field):
    up = await upstream(reply("ok"))
    base = await gateway(STANDARD + provider(up))
    whole = (await ask(base, body, path=path, headers={"X-FreeLLM-Compress": "off"})).json[field]
    less = (await ask(base, body, path=path, headers={})).json[field]
    assert less < whole / 4 and gateway.listener.parts.tally.requests == 0


async def test_the_operator_sees_sums_and_a_preview(upstream, gateway):
    up = await upstream(reply("ok"))
    base = await gateway(STANDARD + provider(up))
    await ask(base, CHAT, headers={})
    ground = gateway.listener.desk.ground
    told = shrink.status(ground)
    assert (told["requests"], told["compressed"], told["by_mode"]["standard"], told["config"]["mode"]) == (1, 1, 1, "standard")
    assert told["engines"]["toolfilter"]["saved_chars"] == len(RESULT) - len(SHORT) and told["savings_percent"] > 90
    shown = shrink.preview(json.dumps(CHAT).encode(), "openai-chat", "standard", ground)
    assert json.loads(shown["body"])["messages"][2]["content"] == SHORT
    assert [stage["engine"] for stage in shown["stages"]][:2] == ["read-lifecycle", "toolfilter"]
    assert shrink.status(ground)["requests"] == 1
    for wire, mode in (("openai-chat", "off"), ("cohere", "standard")):
        with pytest.raises(GatewayError):
            shrink.preview(b"{}", wire, mode, ground)
