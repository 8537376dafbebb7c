"""Accounts whose credentials are made for each call, and keys with scopes and priorities, through the real gateway."""
import asyncio
import json

import aiohttp
import pytest

from gateway.mock.script import body_of, reply, stream
from gateway.mock.upstream import Upstream
from gateway.wire.bedrock_converse.eventstream import message
from tests.conftest import provider

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def http(stack):
    return await stack.enter_async_context(aiohttp.ClientSession())


async def said(http, base, **more):
    async with http.post(base + "/v1/chat/completions", json={**ASK, **more}) as answer:
        return answer.status, await answer.read(), answer.headers


def oauth(up, tokens, name="a", **more):
    return (f'[[providers]]\nid = "{name}"\nbase_url = "{up.base_url}"\nmodels = ["m"]\nauth = "oauth"\n'
            f'oauth = {{token_url = "{tokens.base_url}/token", client_id = "c", client_secret = "s", refresh_token = "r0"}}\n')


def token(name, **more):
    return body_of(json.dumps({"access_token": name, "expires_in": 3600, **more}).encode(), 200, JSON)


async def test_fifty_requests_cause_one_refresh(upstream, gateway, http):
    up, tokens = await upstream(reply("Hello")), await upstream(token("t-access-1"))
    base = await gateway(oauth(up, tokens))
    done = await asyncio.gather(*(said(http, base) for _ in range(50)))
    assert {status for status, _, _ in done} == {200}
    assert len(tokens.requests) == 1 and b"refresh_token=r0" in tokens.requests[0].body
    assert {asked.headers["authorization"] for asked in up.requests} == {"Bearer t-access-1"}


async def test_an_expired_token_is_replaced_and_the_call_made_again(upstream, gateway, http):
    def answer(asked):
        good = asked.headers["authorization"] == "Bearer t-access-2"
        return reply("Hello") if good else body_of(b'{"error":{"message":"expired"}}', 401, JSON)
    up, tokens = await upstream(answer), await upstream([token("t-access-1"), token("t-access-2")])
    base = await gateway(oauth(up, tokens))
    done = await asyncio.gather(*(said(http, base) for _ in range(20)))
    assert {status for status, _, _ in done} == {200} and len(tokens.requests) == 2
    assert not any("X-Fallback-Attempts" in headers for _, _, headers in done)


async def test_a_revoked_sign_in_fails_over_and_says_so(upstream, gateway, http, caplog):
    up, spare = await upstream(reply("never")), await upstream(reply("from spare"))
    tokens = await upstream(body_of(b'{"error":"invalid_grant"}', 400, JSON))
    base = await gateway(oauth(up, tokens) + provider(spare, "b"))
    status, body, headers = await said(http, base)
    assert status == 200 and b"from spare" in body and headers["X-Routed-Via"] == "b/m"
    assert not up.requests and "sign in again" in caplog.text
    alone = await gateway(oauth(up, tokens))
    status, body, _ = await said(http, alone)
    assert status == 502 and json.loads(body)["error"]["code"] == "provider_authentication_failed"


async def test_a_token_that_the_upstream_repeats_is_hidden(upstream, gateway, http):
    up = await upstream([stream("your token is t-access-1234567890 and so on"),
                         stream("your token is t-access", "-12345", "67890 and so on")])
    tokens = await upstream(token("t-access-1234567890"))
    base = await gateway(oauth(up, tokens))
    for _ in "whole", "cut":
        status, body, _ = await said(http, base, stream=True)
        deltas = [json.loads(line[6:])["choices"] for line in body.splitlines() if line.startswith(b"data: {")]
        text = "".join(choices[0]["delta"].get("content") or "" for choices in deltas if choices)
        assert status == 200 and text == "your token is [redacted] and so on"


def event(name, **payload):
    return message({":message-type": "event", ":event-type": name}, json.dumps(payload).encode())


BEDROCK = ('[[providers]]\nid = "aws"\nwire = "bedrock-converse"\nbase_url = "{url}"\nmodels = ["m:0"]\nvars = {{region = "eu-west-1"}}\n'
           'credentials = {{access_key_id = "AKIDX", secret_access_key = "very-secret", session_token = "sess-token-123"}}\n')


async def test_bedrock_is_signed_and_streams(stack, gateway, http):
    data = event("messageStart", role="assistant") + event("contentBlockDelta", contentBlockIndex=0, delta={"text": "Hello"}) \
        + event("messageStop", stopReason="end_turn") + event("metadata", usage={"inputTokens": 3, "outputTokens": 1})
    up = await stack.enter_async_context(Upstream(body_of(data, 200, {"Content-Type": "application/vnd.amazon.eventstream"}), prefix=""))
    status, body, _ = await said(http, await gateway(BEDROCK.format(url=up.base_url)), model="m:0", stream=True,
                                 stream_options={"include_usage": True})
    assert status == 200 and b'"content":"Hello"' in body and b'"prompt_tokens":3' in body and body.endswith(b"data: [DONE]\n\n")
    asked = up.requests[0]
    assert asked.path == "/model/m%3A0/converse-stream"
    assert "AWS4-HMAC-SHA256 Credential=AKIDX/" in asked.headers["authorization"] and "/eu-west-1/bedrock/" in asked.headers["authorization"]
    assert asked.headers["x-amz-security-token"] == "sess-token-123"
    assert "very-secret" not in str(asked.headers)


async def test_bedrock_answers_whole_and_takes_keys_of_its_own(stack, gateway, http):
    answer = {"output": {"message": {"content": [{"text": "Hello"}]}}, "stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 1}}
    up = await stack.enter_async_context(Upstream(body_of(json.dumps(answer).encode(), 200, JSON), prefix=""))
    config = f'[[providers]]\nid = "aws"\nwire = "bedrock-converse"\nbase_url = "{up.base_url}"\nmodels = ["m"]\napi_keys = ["bedrock-key-1"]\n'
    status, body, _ = await said(http, await gateway(config))
    assert status == 200 and json.loads(body)["choices"][0]["message"]["content"] == "Hello"
    assert up.requests[0].headers["authorization"] == "Bearer bedrock-key-1" and up.requests[0].path == "/model/m/converse"


async def test_a_failure_in_a_binary_stream_moves_on(stack, upstream, gateway, http):
    data = message({":message-type": "exception", ":exception-type": "throttlingException"}, b'{"message":"Too many tokens"}')
    up = await stack.enter_async_context(Upstream(body_of(data, 200, {"Content-Type": "application/vnd.amazon.eventstream"}), prefix=""))
    spare = await upstream(stream("from spare"))
    config = BEDROCK.format(url=up.base_url).replace('"m:0"', '"m"') + provider(spare, "b")
    status, body, headers = await said(http, await gateway(config), stream=True)
    assert status == 200 and b"from spare" in body and headers["X-Routed-Via"] == "b/m"


async def test_cohere_streams(upstream, gateway, http):
    data = b"".join(b"data: " + json.dumps(doc).encode() + b"\n\n" for doc in (
        {"type": "message-start", "id": "x"}, {"type": "content-delta", "delta": {"message": {"content": {"text": "Hello"}}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 3, "output_tokens": 1}}}}))
    up = await upstream(body_of(data, 200, {"Content-Type": "text/event-stream"}))
    status, body, _ = await said(http, await gateway(provider(up, "co", wire='"cohere"')), stream=True)
    assert status == 200 and b'"content":"Hello"' in body and b'"finish_reason":"stop"' in body
    assert up.requests[0].path == "/v1/chat" and up.requests[0].json()["messages"] == [{"role": "user", "content": "Hi"}]


async def test_keys_are_used_by_priority_and_only_for_their_models(upstream, gateway, http):
    up = await upstream(reply("Hello"))
    keys = ('[{key = "sk-later", priority = 1}, {key = "sk-first", label = "main"}, {key = "sk-other", models = ["n*"]}]')
    base = await gateway(provider(up, keys=keys, models='["m", "n1"]'))
    for _ in range(4):
        assert (await said(http, base))[0] == 200
    assert {asked.headers["authorization"] for asked in up.requests} == {"Bearer sk-first"}
    for _ in range(4):
        await said(http, base, model="n1")
    assert {asked.headers["authorization"] for asked in up.requests[4:]} == {"Bearer sk-first", "Bearer sk-other"}
