"""count_tokens: cheap, local, everything counted."""
import pytest

from gateway.core.request import Conversation, Document, Message, Result, Text
from gateway.mock import script as say
from gateway.tokens.count import count
from tests.conftest import client_key, provider
from tests.talk import ask

PATH = "/v1/messages/count_tokens?beta=true"
BASE = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL = {"name": "get_weather", "description": "The weather of a city, by its name", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "description": "A city"}}}}


@pytest.fixture
async def tokens(gateway, upstream):
    up = await upstream(say.reply("no"))
    base_url = await gateway(client_key() + provider(up))

    async def go(**more):
        got = await ask(base_url, {**BASE, **more}, path=PATH)
        assert got.status == 200 and not up.requests
        return got.json["input_tokens"]
    go.base_url = base_url
    return go


async def test_everything_that_a_model_reads_counts(tokens):
    plain = await tokens()
    assert 1 <= plain < 20
    assert await tokens(system="You are a careful engineer. " * 40) > plain + 150
    assert await tokens(tools=[TOOL]) > plain + 20
    assert await tokens(messages=[{"role": "user", "content": [{"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]) > plain + 500
    turns = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Paris " * 50}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "sunny " * 50}]}]
    assert await tokens(messages=turns, tools=[TOOL]) > plain + 100


async def test_no_tools_and_no_limit_are_fine(tokens):
    assert await tokens(tools=[]) == await tokens()


@pytest.mark.parametrize("body, status, kind", [
    ({"model": "m"}, 400, "invalid_request_error"), ({**BASE, "model": "other/m"}, 404, "not_found_error")])
async def test_what_is_wrong_is_told_in_anthropics_words(tokens, body, status, kind):
    got = await ask(tokens.base_url, body, path=PATH)
    assert (got.status, got.json["error"]["type"]) == (status, kind)


async def test_nobody_counts_without_a_key(tokens):
    got = await ask(tokens.base_url, BASE, path=PATH, headers={})
    assert (got.status, got.json["error"]["type"]) == (401, "authentication_error")


def test_results_and_documents_are_looked_into():
    inside = Conversation([Message("tool", [Result("a", [Text("word " * 100), Document(media_type="application/pdf", data="A" * 300_000)])])])
    assert count(inside) > 100 + 6_000
    assert count(Conversation([])) == 1
