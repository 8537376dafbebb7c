"""Vectors between formats, without a server."""
import json

import pytest

from gateway.core.embedding import Vectors
from gateway.core.errors import GatewayError
from gateway.wire.base import Outbound
from gateway.wire.embeddings import CLIENTS, UPSTREAMS, packed, render, unpacked

TO = Outbound(model="big", provider="p", stream=False)


def asked(operation="embeddings", **body):
    return CLIENTS[operation].parse(json.dumps({"model": "m", "input": "hi"} | body).encode())


@pytest.mark.parametrize("vector", [[0.25, -0.5], [0.0], [1.5] * 100])
def test_base64_is_32_bit_numbers_and_back(vector):
    assert unpacked(packed(vector)) == vector and packed(packed(vector)) == packed(vector)


@pytest.mark.parametrize("text", ["AAA", "AAAAAAA=", "!"])
def test_base64_of_anything_else_is_refused(text):
    with pytest.raises(GatewayError) as bad:
        unpacked(text)
    assert bad.value.kind == "bad_reply"


def test_fields_that_a_target_refuses_or_calls_otherwise_are_dropped_and_renamed():
    to = Outbound(model="big", provider="p", stream=False, drop_params=frozenset({"user"}), rename_params={"dimensions": "size"})
    body = json.loads(UPSTREAMS["openai-chat"].build(asked(user="u", dimensions=3, odd=1), to))
    assert body == {"model": "big", "input": "hi", "size": 3, "odd": 1}


def test_a_request_of_another_format_is_written_anew():
    ask = CLIENTS["batch_embed_contents"].parse(json.dumps({"requests": [
        {"content": {"parts": [{"text": t}]}, "outputDimensionality": 3} for t in "ab"]}).encode())
    assert json.loads(UPSTREAMS["openai-chat"].build(ask, TO)) == {
        "input": ["a", "b"], "dimensions": 3, "encoding_format": "float", "model": "big"}


def test_what_passes_is_only_renamed():
    raw = b'{"data":[{"index":0, "embedding": [1,2.50]}],"model":"up","usage":{"prompt_tokens":1}, "odd":1}'
    ask = asked()
    assert render(UPSTREAMS["openai-chat"].read(raw, ask), ask, "shown") == raw.replace(b'"up"', b'"shown"')


def test_a_model_that_cannot_be_renamed_in_place_is_written_anew():
    raw = b'{"data":[{"index":0,"embedding":[1,2.50],"model":"x"}],"model":"up","usage":{"prompt_tokens":1}}'
    ask = asked()
    assert json.loads(render(UPSTREAMS["openai-chat"].read(raw, ask), ask, "shown"))["data"][0]["embedding"] == [1, 2.5]


@pytest.mark.parametrize("name", UPSTREAMS)
def test_every_wire_says_what_it_is_asked_and_reads_no_nonsense(name):
    form = UPSTREAMS[name]
    assert form.path("m").startswith("/") and b"hi" in form.build(asked(), TO)
    for raw in (b"", b"[]", b"<html>", b'{"data": 5, "embeddings": 5}', b"{}"):
        with pytest.raises(GatewayError) as bad:
            form.read(raw, asked())
        assert bad.value.kind == "bad_reply"


@pytest.mark.parametrize("operation", CLIENTS)
def test_every_client_reads_vectors(operation):
    body = {"embeddings": {"input": "a"}, "ollama_embed": {"input": "a"}, "ollama_embeddings": {"prompt": "a"},
            "embed_content": {"content": {"parts": [{"text": "a"}]}},
            "batch_embed_contents": {"requests": [{"content": {"parts": [{"text": "a"}]}}]}}[operation]
    client = CLIENTS[operation]
    ask = client.parse(json.dumps({"model": "m"} | body).encode())
    assert b"0.25" in client.render(Vectors(items=[packed([0.25])], tokens=1), ask, "m")
