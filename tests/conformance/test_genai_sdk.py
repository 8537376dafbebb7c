"""The official google-genai SDK against a real gateway: what a user's program sees."""
import json

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.unit.wire import gemini_turns as gem

WEATHER = types.Tool(function_declarations=[types.FunctionDeclaration(
    name="weather", description="The weather of a city.",
    parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})])


class Forecast(BaseModel):
    city: str
    days: list[int]


def by_wire(wire: str, *, text: str = "", call: str = "", stream: bool = False):
    """The same turn of an upstream that speaks ``wire``."""
    if wire == "gemini":
        part = {"functionCall": {"name": "weather", "args": json.loads(call)}} if call else {"text": text}
        frames = [gem.frame(part), gem.frame({"text": ""}, finish="STOP", usage=gem.USAGE)] if stream else \
            [gem.frame(part, finish="STOP", usage=gem.USAGE)]
        return say.script(say.Head(200, say.SSE), say.Send(gem.sse(*frames))) if stream else say.body_of(gem.dump(frames[0]))
    if call:
        calls = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": call}}]
        return say.tool_stream("weather", [call]) if stream else say.reply(None, finish="tool_calls", tool_calls=calls)
    return say.stream(text) if stream else say.reply(text)


@pytest.fixture(params=["openai-chat", "gemini"])
def wire(request):
    return request.param


@pytest.fixture(params=["v1", "v1beta"])
def sdk(request, gateway, upstream):
    """An SDK client whose gateway has one upstream with this answer; ``sdk.up`` is it."""
    async def start(answer, wire):
        start.up = await upstream(answer)
        base_url = await gateway(client_key() + provider(start.up, wire=f'"{wire}"'))
        options = types.HttpOptions(base_url=base_url, api_version=request.param)
        return genai.Client(api_key=KEY, http_options=options).aio.models
    return start


async def test_generate(sdk, wire):
    got = await (await sdk(by_wire(wire, text="Mild."), wire)).generate_content(
        model="m", contents="Weather?", config=types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.5,
                                                                           stop_sequences=["END"], max_output_tokens=50))
    assert got.text == "Mild." and got.candidates[0].finish_reason == types.FinishReason.STOP and got.usage_metadata.total_token_count
    sent = json.loads(sdk.up.requests[0].body)
    if wire == "openai-chat":
        assert sent["messages"][0] == {"role": "system", "content": "Be brief."} and sent["stop"] == ["END"] and sent["max_tokens"] == 50


async def test_stream(sdk, wire):
    models = await sdk(by_wire(wire, text="Mild.", stream=True), wire)
    chunks = [chunk async for chunk in await models.generate_content_stream(model="m", contents="Weather?")]
    assert "".join(chunk.text or "" for chunk in chunks) == "Mild."
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP and chunks[-1].usage_metadata.total_token_count


@pytest.mark.parametrize("stream", [False, True])
async def test_a_function_and_its_answer(sdk, wire, stream):
    models = await sdk(by_wire(wire, call='{"city":"Oslo"}', stream=stream), wire)
    config = types.GenerateContentConfig(tools=[WEATHER], automatic_function_calling={"disable": True})
    if stream:
        calls = [c async for chunk in await models.generate_content_stream(model="m", contents="?", config=config)
                 for c in chunk.function_calls or ()]
    else:
        calls = (await models.generate_content(model="m", contents="?", config=config)).function_calls
    assert [(call.name, call.args) for call in calls] == [("weather", {"city": "Oslo"})] and calls[0].id
    history = [types.Content(role="user", parts=[types.Part(text="?")]),
               types.Content(role="model", parts=[types.Part(function_call=calls[0])]),
               types.Content(role="user", parts=[types.Part.from_function_response(name="weather", response={"result": "mild"})])]
    if not stream:
        await models.generate_content(model="m", contents=history, config=config)
        if wire == "openai-chat":
            asked, answered = json.loads(sdk.up.requests[1].body)["messages"][1:]
            assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] and answered["content"] == "mild"


async def test_a_structured_answer(sdk, wire):
    models = await sdk(by_wire(wire, text='{"city":"Oslo","days":[1]}'), wire)
    got = await models.generate_content(model="m", contents="?", config=types.GenerateContentConfig(
        response_mime_type="application/json", response_schema=Forecast))
    assert got.parsed == Forecast(city="Oslo", days=[1])
    if wire == "openai-chat":
        schema = json.loads(sdk.up.requests[0].body)["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["days"] == {"type": "array", "items": {"type": "integer"}, "title": "Days"}


async def test_tokens_are_counted(sdk, wire):
    got = await (await sdk(by_wire(wire, text="x"), wire)).count_tokens(model="m", contents="one two three")
    assert got.total_tokens > 1


async def test_errors_are_googles(sdk, wire):
    models = await sdk(say.error(401, "bad key"), wire)
    with pytest.raises(errors.ServerError) as failed:
        await models.generate_content(model="m", contents="?")
    assert (failed.value.code, failed.value.status) == (502, "UNAVAILABLE")
    with pytest.raises(errors.ClientError) as unknown:
        await models.generate_content(model="nobody", contents="?")
    assert (unknown.value.code, unknown.value.status) == (404, "NOT_FOUND")


async def test_a_stream_that_breaks_is_an_error_and_no_end(sdk, wire):
    cut = say.script(say.Head(200, say.SSE), say.Send(gem.sse(gem.say("Hel")))) if wire == "gemini" else \
        say.stream("Hel", done=False).but(say.Close(), after=2)
    models = await sdk(cut, wire)
    seen = []
    with pytest.raises(errors.APIError):
        async for chunk in await models.generate_content_stream(model="m", contents="?"):
            seen.append(chunk.text)
    assert seen == ["Hel"]
