"""OpenAI's own library against stored responses: going on, reading, listing, deleting, counting."""
import openai
import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider


@pytest.fixture
async def client(gateway, upstream, stack):
    up = await upstream(lambda asked: say.stream("hel", "lo") if asked.json().get("stream") else say.reply("hello"))
    base_url = await gateway(client_key() + provider(up))
    made = openai.AsyncOpenAI(base_url=base_url + "/v1", api_key=KEY, max_retries=0)
    stack.push_async_callback(made.close)
    made.up = up
    return made


async def test_one_response_goes_on_from_another(client):
    first = await client.responses.create(model="m", input="my name is Zoe")
    async with client.responses.stream(model="m", input="who am I?", previous_response_id=first.id) as events:
        async for _ in events:
            pass
        second = await events.get_final_response()
    assert second.previous_response_id == first.id and second.output_text == "hello"
    third = await client.responses.create(model="m", input="sure?", previous_response_id=second.id)
    assert third.output_text == "hello"
    assert [m["role"] for m in client.up.requests[-1].json()["messages"]] == ["user", "assistant", "user", "assistant", "user"]


async def test_a_response_can_be_read_listed_and_deleted(client):
    made = await client.responses.create(model="m", input="hi")
    assert await client.responses.retrieve(made.id) == made
    items = [item async for item in client.responses.input_items.list(made.id, limit=1)]
    assert [item.content[0].text for item in items] == ["hi"]
    with pytest.raises(openai.BadRequestError):
        await client.responses.cancel(made.id)
    await client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(made.id)


async def test_what_is_unknown_is_an_error_of_its_own(client):
    with pytest.raises(openai.NotFoundError) as missing:
        await client.responses.create(model="m", input="hi", previous_response_id="resp_nowhere")
    assert missing.value.code == "previous_response_not_found"


async def test_input_is_counted(client):
    counted = await client.responses.input_tokens.count(model="m", input="hello there")
    assert counted.input_tokens > 0 and counted.object == "response.input_tokens"
