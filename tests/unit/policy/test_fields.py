"""Fields that choose past a caller's bounds: vendors' own, and those that stand twice."""
import json

import aiohttp
import pytest

from gateway.core.errors import GatewayError
from gateway.mock.script import JSON, body_of
from gateway.policy.budget import scope
from gateway.policy.fields import bounded, once, vet
from gateway.policy.keys import ClientKey, Principal
from tests.conftest import KEY, client_key, provider

PRICED = '[{id = "m", max_output = 1000, price = {input = 1.0, output = 10.0}}]'
ASK = '"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]'


def who(models=("*",), usd=0.0):
    return Principal(ClientKey(name="k", sha256="", models=models), (scope("key:k", "k", usd, 0.0),))


LISTED, PAYING, FREE = who(models=("m",)), who(usd=1.0), who()


@pytest.mark.parametrize("field", ["models", "route", "fallbacks", "provider", "plugins", "preset"])
@pytest.mark.parametrize("principal", [LISTED, PAYING])
def test_what_chooses_another_model_is_refused_by_name_unless_the_operator_allows_it(field, principal):
    raw = json.dumps({"model": "m", field: ["x"]}).encode()
    with pytest.raises(GatewayError) as told:
        vet(raw, principal)
    assert told.value.status == 400 and told.value.param == field and told.value.code == "field_not_allowed"
    vet(raw, principal, (field,))
    vet(raw, FREE)


def test_what_is_dearer_than_the_list_price_is_refused_where_there_is_a_budget():
    for body in ({"service_tier": "priority"}, {"serviceTier": "priority"}, {"speed": "fast"}, {"web_search_options": {}}):
        with pytest.raises(GatewayError, match=next(iter(body))):
            vet(json.dumps(body).encode(), PAYING)
        vet(json.dumps(body).encode(), LISTED)
    for tier in ("auto", "default", "flex", "standard_only", None):
        vet(json.dumps({"service_tier": tier}).encode(), PAYING)


@pytest.mark.parametrize("raw", [
    b'{"model": "a", "model": "b"}', b'{"model": "a", "\\u006dodel": "b"}', b'{"max_tokens":1,"x":{"max_tokens":2},"max_tokens":3}',
    b'{"generationConfig": {"maxOutputTokens": 1, "maxOutputTokens": 9}}', b'{"generationConfig": {}, "generation_config": {}}',
    b'{"n": 1, "q\\u0022q\\u0022": "", "n": 2}', b'\xef\xbb\xbf {"n": 1, "n": 1}'])
def test_what_stands_twice_is_refused_however_it_is_spelled(raw):
    with pytest.raises(GatewayError) as told:
        vet(raw, PAYING)
    assert told.value.status == 400


@pytest.mark.parametrize("value", [
    {}, {"a": 1}, {"a": 'say "model": "b"', "model": "m"}, {"é": "\\\"", "b": [{"a": {"a": '"'}}], "a": {"b": {"a": None}}},
    {"tools": [{"parameters": {"properties": {"model": {}, "n": {}}}}], "model": "m", "n": 1}])
def test_what_stands_once_is_left_alone_however_it_is_written(value):
    for ascii_only in (True, False):
        assert list(once(json.dumps(value, ensure_ascii=ascii_only, indent=2).encode(), "")) == list(value)


def test_only_who_has_bounds_is_looked_at():
    assert bounded(LISTED) and bounded(PAYING) and not bounded(FREE)


async def test_a_bounded_key_is_answered_400_and_nobody_is_asked(gateway, upstream):
    answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1},
              "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    up = await upstream(body_of(json.dumps(answer).encode(), 200, JSON))
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="5.0"))
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}) as http:
        for more in ('"models": ["dear"]', '"max_tokens": 9999', '"service_tier": "priority"'):
            async with http.post(f"{base}/v1/chat/completions", data=f"{{{ASK}, {more}}}") as got:
                assert got.status == 400 and (await got.json())["error"]["type"] == "invalid_request_error"
        assert not up.requests
        async with http.post(f"{base}/v1/chat/completions", data=f"{{{ASK}}}") as got:
            assert got.status == 200
