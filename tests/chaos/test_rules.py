"""[[rules]] over real sockets: what an upstream of each wire gets, whoever asked."""
import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ASK, ask

RULES = '[[rules]]\nmodels = ["up/*"]\nremove = ["top_p"]\ndefault = {"own.level" = 3}\noverride = {temperature = 0.25}\n'
# Wire of the upstream -> where its language keeps temperature, and top_p.
WIRES = {"openai-chat": ("temperature", "top_p"), "openai-responses": ("temperature", "top_p"), "anthropic": ("temperature", "top_p"),
         "gemini": ("generationConfig.temperature", "generationConfig.topP"), "ollama": ("options.temperature", "options.top_p"),
         "cohere": ("temperature", "p"), "bedrock-converse": ("inferenceConfig.temperature", "inferenceConfig.topP")}
CLIENTS = {
    "/v1/chat/completions": {**ASK, "top_p": 0.5, "temperature": 1},
    "/v1/responses": {"model": "m", "input": "hi", "top_p": 0.5, "temperature": 1},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": ASK["messages"], "top_p": 0.5, "temperature": 1},
}


def at(doc, path):
    for name in path.split("."):
        doc = doc.get(name, {})
    return doc


@pytest.mark.parametrize("path", CLIENTS)
@pytest.mark.parametrize("wire", WIRES)
async def test_every_upstream_gets_the_operator_s_fields(gateway, upstream, wire, path):
    up = await upstream(say.reply("hello"))
    temperature, top_p = WIRES[wire]
    rules = f'[[rules]]\nwires = ["{wire}"]\nremove = ["{top_p}"]\ndefault = {{"own.level" = 3, "{temperature}" = 9}}\n' \
            f'[[rules]]\noverride = {{"{temperature}" = 0.25}}\n'
    base_url = await gateway(client_key() + provider(up, wire=f'"{wire}"', auth='"bearer"') + rules)
    await ask(base_url, CLIENTS[path], path=path, stream=False)
    doc = up.requests[0].json()
    assert (at(doc, temperature), at(doc, top_p), doc["own"]) == (0.25, {}, {"level": 3})


async def test_a_rule_leaves_other_models_alone(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key() + provider(up) + RULES.replace("up/*", "other-*"))
    await ask(base_url, CLIENTS["/v1/chat/completions"], stream=False)
    doc = up.requests[0].json()
    assert (doc["temperature"], doc["top_p"], "own" in doc) == (1, 0.5, False)


async def test_embeddings_and_what_is_passed_on_go_by_the_rules_too(gateway, upstream):
    up = await upstream(say.reply("no vectors"))
    models = '[{id = "e", kind = "embedding"}, {id = "i", kind = "image"}]'
    base_url = await gateway(client_key() + provider(up, models=models) + RULES)
    await ask(base_url, {"model": "e", "input": "hi"}, path="/v1/embeddings")
    await ask(base_url, {"model": "i", "prompt": "a cat"}, path="/v1/images/generations")
    assert [one.json()["own"] for one in up.requests] == [{"level": 3}, {"level": 3}]
