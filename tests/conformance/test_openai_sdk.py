"""The official openai SDK, sync and async, against a real gateway: what a user's program sees."""
import asyncio
import json

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider

ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]
WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather of a city.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"],
    "additionalProperties": False}}}


class Forecast(BaseModel):
    city: str
    days: list[int]


class Weather(BaseModel):
    """The weather of a city."""
    city: str


class Direct:
    """The async SDK in the test's loop."""

    def __init__(self, base_url, **more):
        self.client = AsyncOpenAI(base_url=base_url + "/v1", api_key=KEY, max_retries=0, **more)

    async def call(self, use):
        return await use(self.client)

    async def collect(self, use):
        return [item async for item in await use(self.client)]

    async def close(self):
        await self.client.close()


class Threaded:
    """The sync SDK in a thread, since the gateway runs in the test's loop."""

    def __init__(self, base_url, **more):
        self.client = OpenAI(base_url=base_url + "/v1", api_key=KEY, max_retries=0, **more)

    async def call(self, use):
        return await asyncio.to_thread(use, self.client)

    async def collect(self, use):
        return await asyncio.to_thread(lambda: list(use(self.client)))

    async def close(self):
        self.client.close()


@pytest.fixture(params=[Direct, Threaded], ids=["async", "sync"])
def sdk(request, stack, gateway, upstream):
    """``await sdk(answer)``: the SDK, a gateway with a client key, one upstream with this answer. ``sdk.up`` is the upstream."""
    async def start(answer, extra="", key=KEY):
        start.up = await upstream(answer)
        base_url = await gateway(client_key() + provider(start.up) + extra)
        sdk = request.param(base_url)
        sdk.client.api_key = key
        stack.push_async_callback(sdk.close)
        return sdk
    return start


def chat(**more):
    return lambda client: client.chat.completions.create(model="m", messages=ASK, **more)


def two_calls():
    first = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Os'}}
    second = {"index": 1, "id": "call_b", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    rest = {"index": 0, "function": {"arguments": 'lo"}'}}
    frames = [say.frame(role="assistant", content=None, tool_calls=[first]), say.frame(tool_calls=[second]),
              say.frame(tool_calls=[rest]), say.frame(finish="tool_calls"), say.frame(choices=[], usage=say.USAGE), say.DONE]
    return say.script(say.Head(200, say.SSE), *map(say.Send, frames))


def whole_calls(*arguments):
    calls = [{"id": f"call_{n}", "type": "function", "function": {"name": "weather", "arguments": text}}
             for n, text in enumerate(arguments)]
    return say.reply(None, finish="tool_calls", tool_calls=calls)


async def test_a_whole_answer(sdk):
    client = await sdk(say.reply("Rain until noon."))
    answer = await client.call(chat())
    assert answer.choices[0].message.content == "Rain until noon."
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == say.USAGE["total_tokens"]
    assert answer.object == "chat.completion"
    assert answer.model == "m"


async def test_the_provider_sees_its_own_key_and_model(sdk):
    client = await sdk(say.reply("Rain."))
    await client.call(chat(temperature=0.3, extra_body={"unknown_field": {"kept": True}}))
    asked = sdk.up.requests[0]
    assert asked.headers["authorization"] == "Bearer sk-up-1"
    assert asked.json()["temperature"] == 0.3
    assert asked.json()["unknown_field"] == {"kept": True}
    assert not [value for value in asked.headers.values() if KEY in value]


async def test_a_stream(sdk):
    client = await sdk(say.stream("Rain", " until", " noon."))
    chunks = await client.collect(chat(stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Rain until noon."
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert {c.object for c in chunks} == {"chat.completion.chunk"}
    assert len({c.id for c in chunks}) == 1
    assert not [c for c in chunks if c.usage]


async def test_a_stream_with_usage_has_it_once_and_last(sdk):
    client = await sdk(say.stream("Rain."))
    chunks = await client.collect(chat(stream=True, stream_options={"include_usage": True}))
    assert [c.usage is not None for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == say.USAGE["completion_tokens"]


async def test_a_tool_call(sdk):
    client = await sdk(whole_calls('{"city": "Oslo"}'))
    answer = await client.call(chat(tools=[WEATHER]))
    call = answer.choices[0].message.tool_calls[0]
    assert (call.type, call.function.name, json.loads(call.function.arguments)) == ("function", "weather", {"city": "Oslo"})
    assert answer.choices[0].finish_reason == "tool_calls"


async def test_a_streamed_tool_call_is_mended(sdk):
    client = await sdk(say.tool_stream("weather", ['{"city": ', '"Oslo", }']))
    chunks = await client.collect(chat(tools=[WEATHER], stream=True))
    deltas = [d for c in chunks if c.choices for d in c.choices[0].delta.tool_calls or ()]
    assert deltas[0].function.name == "weather"
    assert json.loads("".join(d.function.arguments or "" for d in deltas)) == {"city": "Oslo"}
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"


async def test_parallel_tool_calls(sdk):
    client = await sdk(two_calls())
    chunks = await client.collect(chat(tools=[WEATHER], stream=True, parallel_tool_calls=True))
    calls = {}
    for delta in (d for c in chunks if c.choices for d in c.choices[0].delta.tool_calls or ()):
        call = calls.setdefault(delta.index, {"id": "", "arguments": ""})
        call["id"] += delta.id or ""
        call["arguments"] += delta.function.arguments or ""
    assert {n: json.loads(call["arguments"]) for n, call in calls.items()} == {0: {"city": "Oslo"}, 1: {"city": "Rome"}}
    assert [calls[n]["id"] for n in (0, 1)] == ["call_a", "call_b"]


async def test_parallel_tool_calls_whole(sdk):
    client = await sdk(whole_calls('{"city": "Oslo"}', '{"city": "Rome", "days": 2}'))
    answer = await client.call(chat(tools=[WEATHER]))
    calls = answer.choices[0].message.tool_calls
    assert [json.loads(c.function.arguments)["city"] for c in calls] == ["Oslo", "Rome"]
    assert len({c.id for c in calls}) == 2


async def test_a_tool_result_goes_back(sdk):
    client = await sdk([whole_calls('{"city": "Oslo"}'), say.reply("It rains in Oslo.")])
    first = await client.call(chat(tools=[WEATHER]))
    call = first.choices[0].message
    messages = [*ASK, call.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "rain"}]
    second = await client.call(lambda c: c.chat.completions.create(model="m", messages=messages, tools=[WEATHER]))
    assert second.choices[0].message.content == "It rains in Oslo."
    assert [m["role"] for m in sdk.up.requests[1].json()["messages"]] == ["user", "assistant", "tool"]


async def test_parse_gives_an_object(sdk):
    client = await sdk(say.reply('```json\n{"city": "Oslo", "days": [1, 2]}\n```'))
    answer = await client.call(lambda c: c.chat.completions.parse(model="m", messages=ASK, response_format=Forecast))
    assert answer.choices[0].message.parsed == Forecast(city="Oslo", days=[1, 2])
    assert sdk.up.requests[0].json()["response_format"]["json_schema"]["strict"] is True


async def test_parse_gives_a_tool_s_arguments(sdk):
    client = await sdk(whole_calls('{"city": "Oslo"}'))
    tool = openai.pydantic_function_tool(Weather, name="weather")
    answer = await client.call(lambda c: c.chat.completions.parse(model="m", messages=ASK, tools=[tool]))
    assert answer.choices[0].message.tool_calls[0].function.parsed_arguments == Weather(city="Oslo")


async def test_an_answer_that_breaks_the_schema_moves_on(sdk, upstream):
    other = await upstream(say.reply('{"city": "Oslo", "days": [3]}'))
    client = await sdk(say.reply("I would rather talk about it."), extra=provider(other, "other"))
    answer = await client.call(lambda c: c.chat.completions.parse(model="m", messages=ASK, response_format=Forecast))
    assert answer.choices[0].message.parsed == Forecast(city="Oslo", days=[3])


async def test_headers_by_raw_response(sdk):
    client = await sdk(say.reply("Rain."))
    raw = await client.call(lambda c: c.chat.completions.with_raw_response.create(
        model="m", messages=ASK, extra_headers={"X-Request-ID": "mine-1"}))
    assert raw.headers["x-request-id"] == raw.headers["request-id"] == "mine-1"
    assert raw.headers["x-routed-via"] == "up/m"
    assert "x-fallback-attempts" not in raw.headers
    assert raw.parse().choices[0].message.content == "Rain."


async def test_headers_tell_a_fallback(sdk, upstream):
    other = await upstream(say.reply("Rain."))
    client = await sdk(say.error(503, "overloaded"), extra=provider(other, "other"))
    raw = await client.call(lambda c: c.chat.completions.with_raw_response.create(model="m", messages=ASK))
    assert raw.headers["x-routed-via"] == "other/m"
    assert raw.headers["x-fallback-attempts"] == "1"
    assert "up/m" in raw.headers["x-fallback-trail"]


async def test_the_request_id_is_on_the_answer(sdk):
    client = await sdk(say.reply("Rain."))
    answer = await client.call(chat())
    assert answer._request_id


async def test_a_wrong_key_is_an_authentication_error(sdk):
    client = await sdk(say.reply("Rain."), key="wrong")
    with pytest.raises(openai.AuthenticationError) as told:
        await client.call(chat())
    assert told.value.code == "invalid_api_key"
    assert not sdk.up.requests


async def test_an_unknown_model_is_not_found(sdk):
    client = await sdk(say.reply("Rain."))
    with pytest.raises(openai.NotFoundError) as told:
        await client.call(lambda c: c.chat.completions.create(model="nobody/nothing", messages=ASK))
    assert (told.value.code, told.value.param) == ("model_not_found", "model")
    assert not sdk.up.requests


async def test_a_bad_body_is_a_bad_request_that_names_the_field(sdk):
    client = await sdk(say.reply("Rain."))
    with pytest.raises(openai.BadRequestError) as told:
        await client.call(lambda c: c.chat.completions.create(model="m", messages="hello"))
    assert told.value.param == "messages"
    assert not sdk.up.requests


async def test_a_body_the_provider_refuses_comes_back_in_its_words(sdk, upstream):
    other = await upstream(say.reply("never asked"))
    client = await sdk(say.error(400, "tools.0: unknown shape", type="invalid_request_error", param="tools", code="bad_tool"),
                       extra=provider(other, "other"))
    with pytest.raises(openai.BadRequestError, match=r"tools\.0: unknown shape"):
        await client.call(chat())
    assert not other.requests


async def test_a_provider_s_rate_limit_has_its_time(sdk):
    client = await sdk(say.error(429, "slow down", headers={"Retry-After": "17"}))
    with pytest.raises(openai.RateLimitError) as told:
        await client.call(chat())
    assert 1 <= int(told.value.response.headers["retry-after"]) <= 17
    assert 0 < int(told.value.response.headers["retry-after-ms"]) <= 17_000


async def test_one_s_own_rate_limit(gateway, upstream, stack):
    up = await upstream(say.reply("Rain."))
    client = Direct(await gateway(client_key(rpm="1") + provider(up)))
    stack.push_async_callback(client.close)
    await client.call(chat())
    with pytest.raises(openai.RateLimitError) as told:
        await client.call(chat())
    assert int(told.value.response.headers["retry-after"]) >= 1
    assert len(up.requests) == 1


async def test_a_provider_s_bad_key_is_not_the_client_s(sdk):
    client = await sdk(say.error(401, "Incorrect API key provided: sk-up-1"))
    with pytest.raises(openai.InternalServerError) as told:
        await client.call(chat())
    assert told.value.status_code == 502
    assert told.value.code == "provider_authentication_failed"
    assert "sk-up-1" not in told.value.response.text


@pytest.mark.parametrize("broken", [
    say.stream("Rain", " until").but(say.Send(say.frame(error={"message": "worker died", "code": 500}, choices=[])), after=3),
    say.cut_chunked("Rain", " until"),
    say.half_frame("Rain", " until"),
], ids=["error frame", "cut", "half frame"])
async def test_a_failure_in_mid_stream_is_raised_and_never_a_clean_end(sdk, broken):
    client = await sdk(broken)
    with pytest.raises((openai.APIError, openai.APIConnectionError)):
        await client.collect(chat(stream=True))


@pytest.mark.parametrize("broken", [
    say.error(200, "not really an answer"), say.html(), say.stream(), say.error(500), say.reset_before_headers(),
    say.stream("").but(say.Send(say.frame(error={"message": "overloaded"}, choices=[])), after=1),
], ids=["error under 200", "a web page", "empty", "500", "reset", "error frame first"])
async def test_a_failure_before_the_answer_is_never_seen(sdk, upstream, broken):
    other = await upstream(say.stream("Rain", "."))
    client = await sdk(broken, extra=provider(other, "other"))
    chunks = await client.collect(chat(stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Rain."


async def test_models(sdk):
    client = await sdk(say.reply("Rain."))
    listed = await client.collect(lambda c: c.models.list()) if isinstance(client, Threaded) else \
        [model async for model in client.client.models.list()]
    assert {"auto", "m"} <= {model.id for model in listed}
    one = await client.call(lambda c: c.models.retrieve("up/m"))
    assert one.id == "up/m"
    with pytest.raises(openai.NotFoundError):
        await client.call(lambda c: c.models.retrieve("nobody/nothing"))


async def test_legacy_completions(sdk):
    client = await sdk(say.reply(" upon a time"))
    answer = await client.call(lambda c: c.completions.create(model="m", prompt="Once"))
    assert (answer.object, answer.choices[0].text) == ("text_completion", " upon a time")


async def test_legacy_completions_streamed(sdk):
    client = await sdk(say.stream(" upon", " a time"))
    chunks = await client.collect(lambda c: c.completions.create(model="m", prompt="Once", stream=True))
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == " upon a time"


async def test_the_stream_helper_collects_the_turn(gateway, upstream, stack):
    up = await upstream(two_calls())
    client = Direct(await gateway(client_key() + provider(up)))
    stack.push_async_callback(client.close)
    strict = openai.pydantic_function_tool(Weather, name="weather")
    async with client.client.chat.completions.stream(model="m", messages=ASK, tools=[strict]) as stream:
        final = await stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert [call.function.parsed_arguments.city for call in calls] == ["Oslo", "Rome"]


async def test_many_streams_at_once(gateway, upstream, stack):
    up = await upstream(say.stream(*"abcdefghij"))
    client = Direct(await gateway(client_key() + provider(up)))
    stack.push_async_callback(client.close)
    answers = await asyncio.gather(*(client.collect(chat(stream=True)) for _ in range(24)))
    assert {"".join(c.choices[0].delta.content or "" for c in chunks if c.choices) for chunks in answers} == {"abcdefghij"}
