"""OpenAI's Agents SDK against a real gateway: an agent calls its tool and answers, on chat completions and on Responses."""
import json

import agents
import pytest
from openai import AsyncOpenAI

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider

agents.set_tracing_disabled(True)


@agents.function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"4 degrees in {city}"


def answering(asked):
    """A chat upstream that calls the tool, and answers when it has the result."""
    body = asked.json()
    told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if told:
        words = ["It is ", json.dumps(told[0]).strip('"'), "."]
        return say.stream(*words) if body.get("stream") else say.reply("".join(words))
    call = '{"city": "Oslo"}'
    if body.get("stream"):
        return say.tool_stream("weather", [call[:5], call[5:]])
    return say.reply(None, finish="tool_calls", tool_calls=[
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": call}}])


@pytest.fixture(params=[agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel], ids=["chat", "responses"])
async def agent(request, stack, gateway, upstream):
    """An agent with one tool; ``agent.up`` is the upstream behind its model."""
    up = await upstream(answering)
    base_url = await gateway(client_key() + provider(up))
    client = AsyncOpenAI(base_url=base_url + "/v1", api_key=KEY, max_retries=0)
    stack.push_async_callback(client.close)
    made = agents.Agent(name="Helper", instructions="Use your tool.", tools=[weather],
                        model=request.param(model="m", openai_client=client))
    return made, up


async def test_an_agent_uses_its_tool(agent):
    made, up = agent
    got = await agents.Runner.run(made, "Weather in Oslo?")
    assert got.final_output == "It is 4 degrees in Oslo." and len(up.requests) == 2
    assert got.context_wrapper.usage.total_tokens > 0


async def test_the_same_as_a_stream(agent):
    made, up = agent
    got = agents.Runner.run_streamed(made, "Weather in Oslo?")
    kinds = [event.type async for event in got.stream_events()]
    assert got.final_output == "It is 4 degrees in Oslo." and len(up.requests) == 2 and "run_item_stream_event" in kinds
