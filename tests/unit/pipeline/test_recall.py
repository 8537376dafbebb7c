"""What clients drop comes back to the model that said it, through the whole gateway."""
import json

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import AUTH, ask

USER = {"role": "user", "content": "weather?"}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
GEMINI_CALL = {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]}}], "responseId": "g", "modelVersion": "m"}
GEMINI_TEXT = {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "It rains."}]}}]}


def thinking_call(stream):
    if not stream:
        return say.reply(None, finish="tool_calls", reasoning_content="I need the tool.", tool_calls=[CALL])
    frames = [say.frame(role="assistant", content=""), say.frame(reasoning_content="I need "), say.frame(reasoning_content="the tool."),
              say.frame(tool_calls=[{"index": 0, **CALL}]), say.frame(finish="tool_calls")]
    return say.script(say.Head(200, say.SSE), *map(say.Send, frames), say.Send(b"data: [DONE]\n\n"), say.End())


def by_turn(first, then):
    """The first answer until a result or a second user's word is in the request."""
    return lambda asked: then if b'"rain"' in asked.body or b'"so?"' in asked.body else first(asked.json())


async def turns(base_url, *more, model="kimi-k2-thinking", headers=None, stream=False):
    return await ask(base_url, {"model": model, "messages": [USER, *more], "tools": TOOLS}, headers=headers, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_that_the_client_dropped_comes_back(gateway, upstream, stream):
    up = await upstream(by_turn(lambda asked: thinking_call(stream), say.reply("It rains.")))
    base_url = await gateway(client_key() + provider(up, models='["kimi-k2-thinking", "other"]'))
    assert (await turns(base_url, stream=stream)).status == 200
    bare = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    await turns(base_url, bare, RESULT)
    assert up.requests[-1].json()["messages"][1]["reasoning_content"] == "I need the tool."
    await turns(base_url, {**bare, "reasoning_content": "mine"}, RESULT)
    assert up.requests[-1].json()["messages"][1]["reasoning_content"] == "mine"
    await turns(base_url, bare, RESULT, model="other")
    assert "reasoning_content" not in up.requests[-1].json()["messages"][1]


async def test_another_callers_reasoning_stays_his(gateway, upstream):
    up = await upstream(by_turn(lambda asked: thinking_call(False), say.reply("It rains.")))
    base_url = await gateway(client_key() + client_key("bob", "gw-bob") + provider(up, models='["kimi-k2-thinking"]'))
    await turns(base_url)
    await turns(base_url, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT, headers={"Authorization": "Bearer gw-bob"})
    assert "reasoning_content" not in up.requests[-1].json()["messages"][1]
    await turns(base_url, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT, headers={**AUTH, "X-Session-Id": "another"})
    assert "reasoning_content" not in up.requests[-1].json()["messages"][1]


async def test_a_plain_turn_gets_its_reasoning_back_where_the_model_wants_that(gateway, upstream):
    up = await upstream(by_turn(lambda asked: say.reply("hello", reasoning_content="Be kind."), say.reply("It rains.")))
    base_url = await gateway(client_key() + provider(up, models='["deepseek-v4-pro"]'))
    await turns(base_url, model="deepseek-v4-pro")
    await turns(base_url, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "so?"}, model="deepseek-v4-pro")
    assert up.requests[-1].json()["messages"][1]["reasoning_content"] == "Be kind."


async def test_models_that_want_nothing_back_get_their_bodies_untouched(gateway, upstream):
    up = await upstream(by_turn(lambda asked: thinking_call(False), say.reply("It rains.")))
    base_url = await gateway(client_key() + provider(up))
    await turns(base_url, model="m")
    body = {"model": "m", "messages": [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT], "tools": TOOLS, "stream": False}
    raw = json.dumps(body, indent=1).encode()
    await ask(base_url, raw=raw)
    assert up.requests[-1].body == raw
    assert len(gateway.listener.parts.traces) == 0


async def test_a_signature_comes_back_to_gemini(gateway, upstream):
    up = await upstream(by_turn(lambda asked: say.body_of(json.dumps(GEMINI_CALL).encode()), say.body_of(json.dumps(GEMINI_TEXT).encode())))
    base_url = await gateway(client_key() + provider(up, models='["gemini-3-pro"]', wire='"gemini"'))
    first = await turns(base_url, model="gemini-3-pro")
    [call] = first.json["choices"][0]["message"]["tool_calls"]
    call = {name: call[name] for name in ("id", "type", "function")}
    second = await turns(base_url, {"role": "assistant", "content": None, "tool_calls": [call]}, {**RESULT, "tool_call_id": call["id"]},
                         model="gemini-3-pro")
    assert second.status == 200
    [part] = [p for c in up.requests[-1].json()["contents"] for p in c["parts"] if "functionCall" in p]
    assert part["thoughtSignature"] == "c2ln"
