"""What an upstream says of the model that answered is noted, and told the operator once."""
import json
import logging

import pytest

from gateway.mock.script import JSON, SSE, Head, Send, body_of, error, frame, reply, script, stream
from tests.conftest import client_key, provider
from tests.talk import ask
from tests.unit.pipeline.test_explaining import Kept


def served(model, streamed):
    """The mock's answer, by another model."""
    told = stream("Hello") if streamed else reply("Hello")
    return type(told)(tuple(Send(step.data.replace(b"mock-model", model.encode())) if isinstance(step, Send) else
                            Head(200, SSE if streamed else JSON) for step in told.steps))


async def house(gateway, up, models='["gpt-4o"]'):
    base_url = await gateway(client_key() + provider(up, "a", models=models))
    kept = gateway.listener.desk.ground.journal = Kept()
    return base_url, kept.calls


def body(model="gpt-4o"):
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("streamed", [True, False])
async def test_another_model_is_noted_and_told_once(gateway, upstream, caplog, streamed):
    base_url, calls = await house(gateway, await upstream(served("gpt-4o-mini", streamed)))
    with caplog.at_level(logging.WARNING, "gateway.drift"):
        for _ in range(3):
            assert (await ask(base_url, body(), stream=streamed)).status == 200
    assert [(call.attempts[0].drift, call.attempts[0].upstream_model) for call in calls] == [(True, "gpt-4o-mini")] * 3
    assert gateway.listener.parts.health.stats.drifts == {("a/gpt-4o", "gpt-4o-mini"): 3}
    assert [record.getMessage() for record in caplog.records] == ["a/gpt-4o serves another model: gpt-4o-mini"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_its_date_is_no_other_model(gateway, upstream, caplog, streamed):
    base_url, calls = await house(gateway, await upstream(served("gpt-4o-2024-08-06", streamed)))
    assert (await ask(base_url, body(), stream=streamed)).status == 200
    assert (calls[0].attempts[0].drift, calls[0].attempts[0].upstream_model) == (False, "gpt-4o-2024-08-06")
    assert not gateway.listener.parts.health.stats.drifts


async def test_the_client_is_not_told(gateway, upstream):
    base_url, _ = await house(gateway, await upstream(served("gpt-4o-mini", False)))
    assert (await ask(base_url, body())).json["model"] == "gpt-4o"


async def test_embeddings_too(gateway, upstream):
    up = await upstream(body_of(json.dumps({"object": "list", "model": "other-embed", "data": [
        {"object": "embedding", "index": 0, "embedding": [0.1]}], "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode()))
    base_url, calls = await house(gateway, up, '[{id = "embed-1", kind = "embedding"}]')
    got = await ask(base_url, {"model": "embed-1", "input": "hi"}, path="/v1/embeddings")
    assert got.status == 200 and calls[0].attempts[0].drift


async def test_a_line_break_in_a_name_makes_no_second_line(gateway, upstream, caplog):
    odd = script(Head(200, SSE), Send(frame("Hello").replace(b'"mock-model"', b'"x\\nfake line"')), Send(frame(finish="stop")))
    base_url, _ = await house(gateway, await upstream(odd))
    await ask(base_url, body(), stream=True)
    assert "x%0Afake line" in caplog.text


async def test_a_failure_is_no_drift(gateway, upstream):
    base_url, calls = await house(gateway, await upstream(error(503)))
    await ask(base_url, body())
    assert not calls[0].attempts[0].drift
