"""The official anthropic SDK against a real gateway, on chat and Messages upstreams: what a user's program sees."""
import json

import anthropic
import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider

ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]
WEATHER = {"name": "weather", "description": "The weather of a city.", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
USAGE = {"input_tokens": 11, "output_tokens": 7}
WIRES = ["openai-chat", "anthropic"]


def message(*blocks, stop="end_turn", **usage):
    """A Messages upstream's whole answer."""
    return say.body_of(json.dumps({"id": "msg_up", "type": "message", "role": "assistant", "model": "m", "content": list(blocks),
                                   "stop_reason": stop, "stop_sequence": None, "usage": USAGE | usage}).encode())


def frames(*blocks, stop="end_turn", cut=False):
    """The same as a stream; ``blocks`` are (content_block, delta …). ``cut``: it breaks off before its end."""
    said = [("message_start", {"message": {"id": "msg_up", "type": "message", "role": "assistant", "model": "m", "content": [],
                                           "stop_reason": None, "stop_sequence": None, "usage": USAGE | {"output_tokens": 1}}})]
    for index, (block, *deltas) in enumerate(blocks):
        said.append(("content_block_start", {"index": index, "content_block": block}))
        said += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        said.append(("content_block_stop", {"index": index}))
    if not cut:
        said += [("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 7}}),
                 ("message_stop", {})]
    data = b"".join(b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind} | doc).encode()) for kind, doc in said)
    return say.script(say.Head(200, say.SSE), say.Send(data), *([say.Reset()] if cut else []))


def text(*pieces):
    return ({"type": "text", "text": ""}, *[{"type": "text_delta", "text": piece} for piece in pieces])


def call(*pieces, name="weather"):
    return ({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}},
            *[{"type": "input_json_delta", "partial_json": piece} for piece in pieces])


@pytest.fixture
def sdk(stack, gateway, upstream):
    """An SDK client whose gateway has one upstream with this answer; ``sdk.up`` is it."""
    async def start(answer, wire="anthropic", key=KEY):
        start.up = await upstream(answer)
        base_url = await gateway(client_key() + provider(start.up, wire=f'"{wire}"'))
        client = anthropic.AsyncAnthropic(base_url=base_url, api_key=key, max_retries=0)
        stack.push_async_callback(client.close)
        return client
    return start


@pytest.mark.parametrize("wire", WIRES)
async def test_create(sdk, wire):
    answer = message({"type": "text", "text": "Mild."}) if wire == "anthropic" else say.reply("Mild.")
    got = await (await sdk(answer, wire)).messages.create(model="m", max_tokens=50, messages=ASK, system="Be brief.",
                                                          stop_sequences=["END"], extra_body={"temperature": 0.5})
    assert got.content[0].text == "Mild." and got.stop_reason == "end_turn" and got.role == "assistant" and got.model == "m"
    assert got.usage.input_tokens > 0 and got.usage.output_tokens > 0
    sent = sdk.up.requests[0]
    if wire == "anthropic":
        assert sent.path == "/v1/messages" and sent.headers["x-api-key"] == "sk-up-1" and sent.headers["anthropic-version"]
        assert sent.json()["stop_sequences"] == ["END"]
    else:
        assert sent.json()["messages"][0] == {"role": "system", "content": "Be brief."} and sent.json()["stop"] == ["END"]


@pytest.mark.parametrize("wire", WIRES)
async def test_stream(sdk, wire):
    client = await sdk(frames(text("Mi", "ld", " é日🦊")) if wire == "anthropic" else say.stream("Mi", "ld", " é日🦊"), wire)
    async with client.messages.stream(model="m", max_tokens=50, messages=ASK) as stream:
        pieces = [piece async for piece in stream.text_stream]
        final = await stream.get_final_message()
    assert "".join(pieces) == final.content[0].text == "Mild é日🦊" and len(pieces) > 1
    assert final.stop_reason == "end_turn" and final.usage.output_tokens > 0 and final.id.startswith("msg_")


@pytest.mark.parametrize("wire", WIRES)
async def test_a_tool_round_trip(sdk, wire):
    pieces = ['{"city": ', '"Oslo"}']
    client = await sdk(frames(text("Let me see."), call(*pieces), stop="tool_use") if wire == "anthropic"
                       else say.tool_stream("weather", pieces), wire)
    async with client.messages.stream(model="m", max_tokens=50, messages=ASK, tools=[WEATHER],
                                      tool_choice={"type": "any", "disable_parallel_tool_use": True}) as stream:
        first = await stream.get_final_message()
    asked = next(block for block in first.content if block.type == "tool_use")
    assert (first.stop_reason, asked.name, asked.input) == ("tool_use", "weather", {"city": "Oslo"})
    turns = [*ASK, {"role": "assistant", "content": first.content},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": asked.id, "content": "4 degrees", "is_error": False}]}]
    client = await sdk(message({"type": "text", "text": "4 degrees."}) if wire == "anthropic" else say.reply("4 degrees."), wire)
    second = await client.messages.create(model="m", max_tokens=50, messages=turns, tools=[WEATHER])
    assert second.content[0].text == "4 degrees."
    if wire == "openai-chat":
        *_, said, result = sdk.up.requests[0].json()["messages"]
        assert said["tool_calls"][0]["id"] == result["tool_call_id"] == asked.id and result["content"] == "4 degrees"


async def test_thinking_comes_with_its_signature_from_the_one_that_made_it(sdk):
    thought = ({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "Hm. "},
               {"type": "thinking_delta", "thinking": "Cold."}, {"type": "signature_delta", "signature": "c2ln"})
    client = await sdk(frames(thought, text("Mild.")))
    async with client.messages.stream(model="m", max_tokens=5000, messages=ASK, thinking={
            "type": "enabled", "budget_tokens": 2000}) as stream:
        final = await stream.get_final_message()
    thinking, answer = final.content
    assert (thinking.type, thinking.thinking, thinking.signature, answer.text) == ("thinking", "Hm. Cold.", "c2ln", "Mild.")
    turns = [*ASK, {"role": "assistant", "content": final.content}, {"role": "user", "content": "And tomorrow?"}]
    await client.messages.create(model="m", max_tokens=5000, messages=turns, stream=True)
    assert sdk.up.requests[1].json()["messages"][1]["content"][0]["signature"] == "c2ln"


async def test_reasoning_of_a_chat_model_is_thinking(sdk):
    client = await sdk(say.reply("Mild.", reasoning_content="Hm."), "openai-chat")
    got = await client.messages.create(model="m", max_tokens=50, messages=ASK)
    assert [(block.type, getattr(block, "thinking", "")) for block in got.content] == [("thinking", "Hm."), ("text", "")]


@pytest.mark.parametrize("wire", WIRES)
async def test_count_tokens_asks_nobody(sdk, wire):
    client = await sdk(say.reply("no"), wire)
    got = await client.messages.count_tokens(model="m", messages=ASK, system="Be brief.", tools=[WEATHER])
    assert got.input_tokens > 20 and not sdk.up.requests


async def test_models_are_listed_and_found(sdk):
    client = await sdk(say.reply("no"))
    ids = [model.id async for model in await client.models.list(limit=2)]
    assert {"auto", "m", "claude-sonnet-4-5"} <= set(ids) and len(ids) == len(set(ids))
    assert (await client.models.retrieve("m")).display_name == "m"


@pytest.mark.parametrize("answer, error", [
    (say.error(400, "max_tokens: too large", type="invalid_request_error"), anthropic.BadRequestError),
    (say.error(429, "slow down"), anthropic.RateLimitError), (say.error(529, "Overloaded"), anthropic.InternalServerError),
    (say.error(401, "bad key"), anthropic.InternalServerError)])
async def test_errors_are_the_sdks_own(sdk, answer, error):
    with pytest.raises(error) as failed:
        await (await sdk(answer)).messages.create(model="m", max_tokens=50, messages=ASK)
    assert failed.value.body["type"] == "error" and failed.value.body["error"]["message"] and failed.value.request_id


async def test_who_may_not_or_asks_for_nothing_is_told_so(sdk):
    with pytest.raises(anthropic.AuthenticationError):
        await (await sdk(say.reply("no"), key="wrong")).messages.create(model="m", max_tokens=50, messages=ASK)
    with pytest.raises(anthropic.NotFoundError):
        await (await sdk(say.reply("no"))).messages.create(model="other/m", max_tokens=50, messages=ASK)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_that_breaks_raises(sdk, wire):
    client = await sdk(frames(text("Mild ", "and "), cut=True) if wire == "anthropic" else say.half_frame("Mild ", "and "), wire)
    with pytest.raises(anthropic.APIError):
        async with client.messages.stream(model="m", max_tokens=50, messages=ASK) as stream:
            await stream.get_final_message()


async def test_a_family_name_is_served_by_whoever_there_is(sdk):
    got = await (await sdk(say.reply("Mild."), "openai-chat")).messages.create(model="claude-sonnet-9", max_tokens=50, messages=ASK)
    assert got.content[0].text == "Mild."
