"""The official openai SDK on Responses and embeddings, against a real gateway whose upstream speaks chat."""
import json

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider

WEATHER = {"type": "function", "name": "weather", "description": "The weather of a city.", "strict": False, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


class Forecast(BaseModel):
    city: str
    days: list[int]


@pytest.fixture
def sdk(stack, gateway, upstream):
    """An SDK client whose gateway has one upstream with this answer; ``sdk.up`` is it."""
    async def start(answer, models='["m"]', **more):
        start.up = await upstream(answer)
        base_url = await gateway(client_key() + provider(start.up, models=models, **more))
        client = AsyncOpenAI(base_url=base_url + "/v1", api_key=KEY, max_retries=0)
        stack.push_async_callback(client.close)
        return client
    return start


async def test_create(sdk):
    got = await (await sdk(say.reply("Mild."))).responses.create(model="m", input="Weather?", instructions="Be brief.",
                                                                 max_output_tokens=50)
    assert got.output_text == "Mild." and got.status == "completed" and got.id.startswith("resp_") and got.usage.total_tokens > 0
    sent = sdk.up.requests[0].json()
    assert sent["messages"][0]["content"] == "Be brief." and sent["messages"][1] == {"role": "user", "content": "Weather?"}


async def test_stream_helper(sdk):
    client = await sdk(say.stream("Mi", "ld", "."))
    async with client.responses.stream(model="m", input="Weather?") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == "Mild." and events[0].type == "response.created" and events[-1].type == "response.completed"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Mild."
    assert [event.sequence_number for event in events] == sorted({event.sequence_number for event in events})


async def test_a_tool_round_trip_goes_on_from_the_response(sdk):
    client = await sdk([say.tool_stream("weather", ['{"city": ', '"Oslo"}']), say.reply("4 degrees.")])
    async with client.responses.stream(model="m", input="Weather in Oslo?", tools=[WEATHER]) as stream:
        first = await stream.get_final_response()
    call = next(item for item in first.output if item.type == "function_call")
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})
    second = await client.responses.create(model="m", tools=[WEATHER], previous_response_id=first.id, input=[
        {"type": "function_call_output", "call_id": call.call_id, "output": "4"}])
    assert second.output_text == "4 degrees." and second.previous_response_id == first.id
    user, said, result = sdk.up.requests[1].json()["messages"]
    assert user["content"] == "Weather in Oslo?" and said["tool_calls"][0]["id"] == result["tool_call_id"] == call.call_id


async def test_a_stored_response_is_found_until_it_is_deleted(sdk):
    client = await sdk(say.reply("Mild."))
    made = await client.responses.create(model="m", input="Weather?")
    assert (await client.responses.retrieve(made.id)).output_text == "Mild."
    assert [item.role async for item in await client.responses.input_items.list(made.id)] == ["user"]
    await client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError) as missing:
        await client.responses.create(model="m", input="More", previous_response_id=made.id)
    assert missing.value.code == "previous_response_not_found"


async def test_what_is_not_to_be_stored_is_not(sdk):
    client = await sdk(say.reply("Mild."))
    made = await client.responses.create(model="m", input="Weather?", store=False)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(made.id)


async def test_parsed_output(sdk):
    client = await sdk(say.reply('{"city": "Oslo", "days": [1, 2]}'))
    got = await client.responses.parse(model="m", input="Forecast", text_format=Forecast)
    assert got.output_parsed == Forecast(city="Oslo", days=[1, 2])
    assert sdk.up.requests[0].json()["response_format"]["json_schema"]["strict"] is True


async def test_an_answer_that_was_cut_is_incomplete(sdk):
    got = await (await sdk(say.reply("Mi", finish="length"))).responses.create(model="m", input="Weather?")
    assert got.status == "incomplete" and got.incomplete_details.reason == "max_output_tokens" and got.output_text == "Mi"


async def test_a_stream_that_breaks_is_a_failed_response(sdk):
    client = await sdk(say.half_frame("Mild ", "and "))
    events = [event async for event in await client.responses.create(model="m", input="Weather?", stream=True)]
    assert events[-1].type == "response.failed" and events[-1].response.error.message


@pytest.mark.parametrize("answer, error", [(say.error(429, "slow down"), openai.RateLimitError),
                                           (say.error(400, "bad", type="invalid_request_error"), openai.BadRequestError)])
async def test_errors_are_the_sdks_own(sdk, answer, error):
    with pytest.raises(error):
        await (await sdk(answer)).responses.create(model="m", input="Weather?")


@pytest.mark.parametrize("form", [None, "float", "base64"])
async def test_embeddings_whatever_form_the_sdk_asks_for(sdk, form):
    rows = [{"object": "embedding", "index": i, "embedding": [0.25, -0.5, float(i)]} for i in range(2)]
    answer = say.body_of(json.dumps({"object": "list", "data": rows, "model": "vec", "usage": {"prompt_tokens": 4, "total_tokens": 4}}).encode())
    client = await sdk(answer, models='[{id = "vec", kind = "embedding"}]')
    got = await client.embeddings.create(model="vec", input=["a", "b"], **({"encoding_format": form} if form else {}))
    assert [row.index for row in got.data] == [0, 1] and got.usage.total_tokens == 4 and got.model == "vec"
    if form != "base64":
        assert got.data[1].embedding == [0.25, -0.5, 1.0]
