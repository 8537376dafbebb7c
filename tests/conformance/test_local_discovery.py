"""Zero configuration on a machine where llama.cpp's own server runs on its usual port: found, listed, and it streams."""
import asyncio
import socket

import openai
import pytest

from gateway.config.load import load
from gateway.server.listen import listen
from tests.conformance.tiny_gguf import WORDS, write

pytestmark = pytest.mark.real

USUAL_PORT = 8080


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """llama.cpp's HTTP server where people run it, with a model that recites one sentence."""
    import xllamacpp

    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", USUAL_PORT)) == 0:
            pytest.skip(f"somebody else listens on port {USUAL_PORT}")
    model = tmp_path_factory.mktemp("model") / "recite.gguf"
    write(model)
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.model_alias = {"recite"}
    settings.hostnames, settings.port = ["127.0.0.1"], USUAL_PORT
    settings.n_ctx, settings.n_parallel, settings.n_predict = 4096, 2, 64
    settings.use_jinja, settings.warmup, settings.ui = True, False, False
    settings.cpuparams.n_threads = 1
    server = xllamacpp.Server(settings)
    yield server.listening_address
    del server


async def test_it_is_found_its_models_are_listed_and_it_streams(llama, stack, tmp_path):
    listener = await listen(load(None, {}, here=tmp_path, system=tmp_path / "none"), "127.0.0.1", 0)
    stack.push_async_callback(listener.close, 0)
    client = await stack.enter_async_context(openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{listener.port}/v1", api_key="open"))
    async with asyncio.timeout(10):
        while "recite" not in (names := [model.id async for model in client.models.list()]):
            await asyncio.sleep(0.05)
    assert "auto" in names
    stream = await client.chat.completions.create(model="recite", messages=[{"role": "user", "content": "What do you promise?"}],
                                                  stream=True, temperature=0)
    chunks = [chunk async for chunk in stream]
    assert [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content] == list(WORDS)
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
