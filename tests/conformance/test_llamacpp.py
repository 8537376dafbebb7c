"""Real inference: llama.cpp's own server as the upstream, the official SDK as the client."""
import json
import socket

import openai
import pytest

from tests.conformance.tiny_gguf import SENTENCE, WORDS, write
from tests.conftest import provider

pytestmark = pytest.mark.real

KEY = "sk-llama"
ASK = [{"role": "user", "content": "What do you promise?"}]
GREEDY = {"temperature": 0}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """Address of llama.cpp's HTTP server with a model that recites one sentence."""
    import xllamacpp

    model = tmp_path_factory.mktemp("model") / "recite.gguf"
    write(model)
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.model_alias = {"recite"}
    settings.hostnames, settings.port, settings.api_keys = ["127.0.0.1"], free_port(), [KEY]
    settings.n_ctx, settings.n_parallel, settings.n_predict = 4096, 2, 64
    settings.use_jinja, settings.warmup, settings.ui = True, False, False
    settings.cpuparams.n_threads = 1
    server = xllamacpp.Server(settings)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture
async def client(llama, gateway, stack):
    base_url = await gateway(provider(llama, "local", models='["recite"]', keys=f'["{KEY}"]'))
    return await stack.enter_async_context(openai.AsyncOpenAI(base_url=base_url + "/v1", api_key="open", max_retries=0))


async def test_a_whole_answer(client):
    answer = await client.chat.completions.create(model="recite", messages=ASK, **GREEDY)
    assert answer.choices[0].message.content == SENTENCE
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == len(WORDS) + 1


async def test_a_stream_comes_word_by_word(client):
    stream = await client.chat.completions.create(model="local/recite", messages=ASK, stream=True,
                                                  stream_options={"include_usage": True}, **GREEDY)
    chunks = [chunk async for chunk in stream]
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert texts == list(WORDS)
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens == len(WORDS) + 1


async def test_what_is_cut_by_length_says_so(client):
    stream = await client.chat.completions.create(model="recite", messages=ASK, stream=True, max_tokens=3, **GREEDY)
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "".join(WORDS[:3])
    assert chunks[-1].choices[0].finish_reason == "length"


async def test_a_schema_is_kept(client):
    schema = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"], "additionalProperties": False}
    answer = await client.chat.completions.create(
        model="recite", messages=ASK, **GREEDY,
        response_format={"type": "json_schema", "json_schema": {"name": "promise", "strict": True, "schema": schema}})
    assert json.loads(answer.choices[0].message.content) == {"ok": True}


async def test_legacy_completions(client):
    answer = await client.completions.create(model="recite", prompt="What do you promise?", **GREEDY)
    assert answer.choices[0].text == SENTENCE


async def test_a_request_that_is_too_long_comes_back_in_the_server_s_words(client):
    with pytest.raises(openai.APIStatusError, match="context size") as told:
        await client.chat.completions.create(model="recite", messages=[{"role": "user", "content": "x " * 6000}], **GREEDY)
    assert told.value.status_code == 400
