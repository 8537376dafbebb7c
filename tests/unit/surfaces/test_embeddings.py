"""Vectors, whatever the client reads and whatever the upstream speaks."""
import base64
import json
import struct

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ask

MODELS = '[{id = "vec", kind = "embedding"}]'
NUMBERS = [0.25, -0.5, 0.125]
PACKED = base64.b64encode(struct.pack("<3f", *NUMBERS)).decode()


def answer(*vectors, **more):
    rows = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return say.body_of(json.dumps({"object": "list", "data": rows, "model": "vec", "usage": {"prompt_tokens": 5, "total_tokens": 5},
                                   **more}).encode())


@pytest.fixture
def embed(gateway, upstream):
    """Ask a gateway with one upstream that answers so; ``embed.up`` is it."""
    async def start(script, body=None, path="/v1/embeddings", models=MODELS, **more):
        start.up = await upstream(script)
        base_url = await gateway(client_key() + provider(start.up, models=models, **more))
        return await ask(base_url, {"model": "vec", "input": "hi"} if body is None else body, path=path)
    return start


async def test_the_same_form_on_both_sides_passes_as_it_came(embed):
    got = await embed(answer(NUMBERS, note="kept"), {"model": "vec", "input": ["hi"], "user": "u", "odd": {"a": 1}})
    assert got.status == 200 and got.json["note"] == "kept" and got.json["data"][0]["embedding"] == NUMBERS
    assert embed.up.requests[0].path == "/v1/embeddings"
    assert embed.up.requests[0].json() == {"model": "vec", "input": ["hi"], "user": "u", "odd": {"a": 1}}
    assert got.headers["X-Routed-Via"] == "up/vec"


@pytest.mark.parametrize("wanted, given, seen", [
    ("base64", NUMBERS, PACKED), ("float", PACKED, NUMBERS), ("base64", PACKED, PACKED), ("float", NUMBERS, NUMBERS)])
async def test_vectors_come_in_the_form_that_was_asked_for(embed, wanted, given, seen):
    got = await embed(answer(given), {"model": "vec", "input": "hi", "encoding_format": wanted})
    assert got.json["data"] == [{"object": "embedding", "index": 0, "embedding": seen}]
    assert got.json["usage"] == {"prompt_tokens": 5, "total_tokens": 5}


async def test_vectors_out_of_order_are_put_into_order(embed):
    rows = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    got = await embed(say.body_of(json.dumps({"data": rows, "model": "vec"}).encode()), {"model": "vec", "input": ["a", "b"]})
    assert [row["embedding"] for row in got.json["data"]] == [[1.0], [2.0]]


@pytest.mark.parametrize("given, n", [("hi", 1), (["a", "b"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2)])
async def test_texts_and_tokens_are_understood(embed, given, n):
    got = await embed(answer(*[NUMBERS] * n), {"model": "vec", "input": given})
    assert got.status == 200 and len(got.json["data"]) == n
    assert embed.up.requests[0].json()["input"] == given


@pytest.mark.parametrize("body, param", [
    ({"model": "vec"}, "input"), ({"model": "vec", "input": []}, "input"), ({"model": "vec", "input": [1, "a"]}, "input"),
    ({"model": "vec", "input": 5}, "input"), ({"model": "vec", "input": "a", "dimensions": 0}, "dimensions"),
    ({"model": "vec", "input": "a", "encoding_format": "hex"}, "encoding_format"), ({"model": "vec", "input": ["a"] * 2049}, "input")])
async def test_a_bad_body_names_its_field(embed, body, param):
    got = await embed(answer(NUMBERS), body)
    assert (got.status, got.error["param"], got.error["type"]) == (400, param, "invalid_request_error")
    assert not embed.up.requests


async def test_only_one_embedding_model_needs_no_name(embed):
    assert (await embed(answer(NUMBERS), {"input": "hi"})).status == 200
    got = await embed(answer(NUMBERS), {"input": "hi"}, models='[{id = "v1", kind = "embedding"}, {id = "v2", kind = "embedding"}]')
    assert (got.status, got.error["param"]) == (400, "model")


async def test_a_model_of_unstated_kind_may_embed_and_an_unknown_one_is_404(embed):
    assert (await embed(answer(NUMBERS), {"model": "m", "input": "hi"}, models='["m"]')).status == 200
    for name in ("other", "claude-sonnet-4-5"):
        got = await embed(answer(NUMBERS), {"model": name, "input": "hi"}, models='["m"]')
        assert (got.status, got.error["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("script", [
    say.error(501, "This server does not support embeddings. Start it with `--embeddings`"),
    say.error(500, "this model does not support embeddings"), say.body_of(b'{"data": []}'), say.reply("Hello")])
async def test_a_chat_model_that_makes_no_vectors_goes_on_chatting(gateway, upstream, script):
    up = await upstream(lambda asked: script if asked.path.endswith("embeddings") else say.reply("still here"))
    base_url = await gateway(client_key() + provider(up, models='["m"]'))
    for _ in range(4):
        refused = await ask(base_url, {"model": "m", "input": "hi"}, path="/v1/embeddings")
        assert (refused.status, refused.error["code"]) == (400, "provider_rejected_request")
    chatted = await ask(base_url, {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    assert chatted.status == 200 and len(up.requests) == 5


async def test_a_chat_model_whose_provider_is_down_rests_whatever_it_was_asked_for(gateway, upstream):
    up = await upstream(say.error(500, "out of memory"))
    base_url = await gateway(client_key() + provider(up, models='["m"]'))
    assert (await ask(base_url, {"model": "m", "input": "hi"}, path="/v1/embeddings")).status == 502
    assert (await ask(base_url, {"model": "m", "messages": [{"role": "user", "content": "hi"}]})).status == 503


async def test_an_embedding_model_does_not_chat(embed):
    got = await embed(answer(NUMBERS), {"model": "vec", "messages": [{"role": "user", "content": "x"}]}, path="/v1/chat/completions")
    assert got.status == 404 and "kind" in got.error["message"]


async def test_another_provider_of_the_same_model_takes_over(gateway, upstream):
    bad, good = await upstream(say.error(503, "busy")), await upstream(answer(NUMBERS))
    base_url = await gateway(client_key() + provider(bad, "a", models=MODELS) + provider(good, "b", models=MODELS))
    got = await ask(base_url, {"model": "vec", "input": "hi"}, path="/v1/embeddings")
    assert got.status == 200 and got.headers["X-Routed-Via"] == "b/vec" and got.headers["X-Fallback-Attempts"] == "1"


async def test_another_model_never_does(gateway, upstream):
    bad, other = await upstream(say.error(503, "busy")), await upstream(answer(NUMBERS))
    base_url = await gateway(client_key() + provider(bad, "a", models='[{id = "v1", kind = "embedding", aliases = ["vec"]}]')
                             + provider(other, "b", models='[{id = "v2", kind = "embedding", aliases = ["vec"]}]'))
    got = await ask(base_url, {"model": "vec", "input": "hi"}, path="/v1/embeddings")
    assert got.status == 503 and not other.requests


@pytest.mark.parametrize("script", [answer(), answer([]), answer(NUMBERS, NUMBERS), say.body_of(b"<html>"), say.body_of(b'{"data": 5}'),
                                    answer("no base64!")])
async def test_an_answer_that_is_none_is_told(embed, script):
    got = await embed(script, {"model": "vec", "input": "hi", "encoding_format": "float"})
    assert got.status == 502 and got.error["message"]


async def test_an_error_under_200_means_what_it_says(embed):
    got = await embed(say.body_of(b'{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}'))
    assert got.status == 429


async def test_a_key_that_is_echoed_is_blotted_out(embed):
    got = await embed(answer(NUMBERS, echo="sk-upstream-secret-0123456789"), keys='["sk-upstream-secret-0123456789"]')
    assert got.status == 200 and b"sk-upstream-secret-0123456789" not in got.body


# ---------------------------------------------------------------- other formats
async def test_gemini_upstreams_embed_for_openai_clients(embed):
    got = await embed(say.body_of(json.dumps({"embeddings": [{"values": NUMBERS}]}).encode()),
                      {"model": "vec", "input": "hello there", "dimensions": 3, "encoding_format": "base64"}, wire='"gemini"')
    assert got.json["data"][0]["embedding"] == PACKED and got.json["usage"]["prompt_tokens"] > 0
    sent = embed.up.requests[0]
    assert sent.path == "/v1/models/vec:batchEmbedContents" and sent.headers["x-goog-api-key"] == "sk-up-1"
    assert sent.json()["requests"][0]["outputDimensionality"] == 3


async def test_openai_upstreams_embed_for_gemini_clients(embed):
    one = await embed(answer(PACKED), {"content": {"parts": [{"text": "hi"}]}}, path="/v1beta/models/vec:embedContent")
    assert one.json == {"embedding": {"values": NUMBERS}}
    many = await embed(answer(NUMBERS, NUMBERS), {"requests": [{"content": {"parts": [{"text": t}]}} for t in "ab"]},
                       path="/v1beta/models/vec:batchEmbedContents")
    assert [row["values"] for row in many.json["embeddings"]] == [NUMBERS, NUMBERS]
    assert embed.up.requests[0].json()["input"] == ["a", "b"]


async def test_ollama_upstreams_embed_texts_and_refuse_tokens(embed):
    script = say.body_of(json.dumps({"model": "vec", "embeddings": [NUMBERS], "prompt_eval_count": 2}).encode())
    got = await embed(script, wire='"ollama"')
    assert got.json["data"][0]["embedding"] == NUMBERS and got.json["usage"]["prompt_tokens"] == 2
    assert embed.up.requests[0].json() == {"model": "vec", "input": ["hi"]}
    got = await embed(script, {"model": "vec", "input": [1, 2]}, wire='"ollama"')
    assert got.status == 400 and got.error["message"]
