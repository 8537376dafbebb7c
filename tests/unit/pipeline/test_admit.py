"""Does the limit of one request count all that was asked for?"""
import aiohttp
import pytest

from gateway.mock.script import reply
from tests.conftest import provider

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(("more", "status"), [
    ({"max_tokens": 4_000}, 200), ({}, 200), ({"max_tokens": 100_000}, 413), ({"max_completion_tokens": 100_000}, 413),
    ({"max_tokens": 3_000, "n": 2}, 413)])
async def test_the_limit_of_a_request_counts_the_whole_answer_that_was_asked_for(upstream, gateway, stack, more, status):
    up = await upstream(reply("Hello"))
    base = await gateway(provider(up) + "\n[limits]\nrequest_max_tokens = 5000\n")
    http = await stack.enter_async_context(aiohttp.ClientSession())
    async with http.post(f"{base}/v1/chat/completions", json={**ASK, **more}) as answer:
        assert answer.status == status
    assert len(up.requests) == (status == 200)
