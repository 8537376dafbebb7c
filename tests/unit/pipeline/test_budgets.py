"""A budget holds: reserved before anybody is asked, settled by what it cost, whatever the end of a request was (R01, R02, R08)."""
import asyncio
import json

import aiohttp
import pytest

from gateway.core.keys import NANOS
from gateway.mock.script import JSON, Close, Hang, body_of, reply, stream
from gateway.policy.budget import periods
from tests.conftest import KEY, client_key, provider

PRICED = '[{id = "m", max_output = 1000, price = {input = 1.0, output = 10.0}}]'
AUTH = {"Authorization": f"Bearer {KEY}"}
ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100}


@pytest.fixture
async def http(stack):
    return await stack.enter_async_context(aiohttp.ClientSession())


async def said(http, base, path="/v1/chat/completions", **more):
    body = {**ASK, **more}
    async with http.post(base + path, json=body, headers=AUTH) as answer:
        return answer.status, await answer.read(), answer.headers


def spent(gateway, scope="key:test"):
    """Dollars of today and of this month."""
    parts = gateway.listener.parts
    return tuple(nanos / NANOS for nanos in parts.budgets.spent(scope))


def counted(text="Hello", n_in=1000, n_out=100, **details):
    usage = {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out, **details}
    return body_of(json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage, "choices": [
        {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}).encode(), 200, JSON)


async def test_an_answer_is_settled_at_its_real_cost(upstream, gateway, http):
    up = await upstream(counted())
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="5.0"))
    status, _, _ = await said(http, base)
    assert status == 200
    assert spent(gateway) == pytest.approx((0.002, 0.002))           # 1000 at $1 and 100 at $10 a million


async def test_r01_cached_and_thought_tokens_are_not_counted_twice(upstream, gateway, http):
    up = await upstream(counted(prompt_tokens_details={"cached_tokens": 600}, completion_tokens_details={"reasoning_tokens": 40}))
    models = '[{id = "m", max_output = 1000, price = {input = 1.0, output = 10.0, cached = 0.1, reasoning = 20.0}}]'
    base = await gateway(provider(up, models=models) + client_key(budget_usd_month="5.0"))
    await said(http, base)
    assert spent(gateway)[1] == pytest.approx((400 * 1 + 600 * 0.1 + 60 * 10 + 40 * 20) / 1e6)


async def test_r02_an_unknown_price_is_refused_by_name_before_anybody_is_asked(upstream, gateway, http):
    up = await upstream(counted())
    base = await gateway(provider(up) + client_key(budget_usd_day="5.0"))
    status, body, _ = await said(http, base)
    error = json.loads(body)["error"]
    assert (status, error["code"], error["param"]) == (402, "price_unknown", "model")
    assert not up.requests


async def test_a_key_may_be_allowed_models_of_unknown_price(upstream, gateway, http):
    up = await upstream(counted())
    base = await gateway(provider(up) + client_key(budget_usd_day="5.0", allow_unknown_price="true"))
    assert (await said(http, base))[0] == 200
    assert spent(gateway) == (0, 0)


async def test_where_some_prices_are_known_only_those_are_asked(upstream, gateway, http):
    free, priced = await upstream(counted("from free")), await upstream(counted("from priced"))
    base = await gateway(provider(free, "a") + provider(priced, "b", models=PRICED) + client_key(budget_usd_day="5.0"))
    status, body, headers = await said(http, base)
    assert (status, headers["X-Routed-Via"]) == (200, "b/m") and not free.requests


@pytest.mark.parametrize(("path", "body", "where"), [
    ("/v1/chat/completions", {}, lambda doc: doc["error"]["message"]),
    ("/v1/responses", {"model": "m", "input": "Hi", "max_output_tokens": 100, "messages": None, "max_tokens": None}, lambda doc: doc["error"]["message"]),
    ("/v1/messages", {}, lambda doc: (doc["type"] == "error" and doc["error"]["type"] == "rate_limit_error") and doc["error"]["message"]),
    ("/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 100}},
     lambda doc: (doc["error"]["status"] == "RESOURCE_EXHAUSTED") and doc["error"]["message"]),
])
async def test_r08_a_spent_budget_is_refused_in_the_callers_format(upstream, gateway, http, path, body, where):
    up = await upstream(counted(n_out=100))
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="0.0025"))
    assert (await said(http, base))[0] == 200
    sent = {name: value for name, value in {**ASK, **body}.items() if value is not None} if "beta" not in path else body
    async with http.post(base + path, json=sent, headers=AUTH) as answer:
        doc = json.loads(await answer.read())
        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) <= 86_400
    message = where(doc)
    assert "client key 'test' is $0.0025 a day" in message and "starts anew at 20" in message
    assert len(up.requests) == 1


async def test_a_request_that_can_never_fit_is_told_so(upstream, gateway, http):
    up = await upstream(counted())
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="0.0025"))
    status, body, headers = await said(http, base, max_tokens=900)
    assert status == 402 and "never fits" in json.loads(body)["error"]["message"] and "Retry-After" not in headers
    assert not up.requests


async def test_200_at_once_never_settle_above_the_budget(upstream, gateway, http):
    """Each costs at most what it reserved, so the whole stays below the limit; those that do not fit were never sent."""
    limit, most = 0.02, 100 * 10 / 1e6 + 20 / 1e6
    up = await upstream(counted(n_in=8, n_out=100))
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day=str(limit)))
    done = await asyncio.gather(*(said(http, base) for _ in range(200)))
    ok = sum(status == 200 for status, _, _ in done)
    assert {status for status, _, _ in done} == {200, 429}
    assert ok == len(up.requests) and ok * 0.001 <= spent(gateway)[0] <= limit
    assert spent(gateway)[0] > limit - 2 * most
    purse = gateway.listener.parts.budgets._purse("key:test", periods(gateway.listener.parts.clock.wall())[0])
    assert purse.held == 0


async def test_groups_and_everybody_together_have_budgets_too(upstream, gateway, http):
    up = await upstream(counted())
    config = provider(up, models=PRICED) + client_key(group='"team"') + client_key("other", "gw-other", group='"team"') \
        + client_key("third", "gw-third") \
        + '[[auth.groups]]\nname = "team"\nparent = "org"\nbudget_usd_day = 0.0035\n[[auth.groups]]\nname = "org"\n' \
        + "[limits]\nbudget_usd_month = 0.0055\n"
    base = await gateway(config)

    async def ask(key):
        async with http.post(base + "/v1/chat/completions", json=ASK, headers={"x-api-key": key}) as answer:
            return answer.status, (await answer.json()).get("error", {}).get("message", "")
    assert (await ask(KEY))[0] == (await ask("gw-other"))[0] == 200
    status, message = await ask(KEY)
    assert status == 429 and "group 'team'" in message
    assert spent(gateway, "group:org")[0] == pytest.approx(0.004)
    assert (await ask("gw-third"))[0] == 200
    status, message = await ask("gw-third")
    assert status == 429 and "gateway as a whole" in message and "a month" in message


async def test_open_mode_spends_the_budget_of_everybody(upstream, gateway, http):
    up = await upstream(counted())
    base = await gateway(provider(up, models=PRICED) + "[limits]\nbudget_usd_day = 0.0025\n")
    async with http.post(base + "/v1/chat/completions", json=ASK) as answer:
        assert answer.status == 200
    async with http.post(base + "/v1/chat/completions", json=ASK) as answer:
        assert answer.status == 429


async def test_failed_attempts_are_billed_for_what_was_used(upstream, gateway, http):
    """The first target spoke and was cut off; the second answered: both are paid."""
    cut = await upstream(stream("x" * 400, finish=None).but(Close(), after=2))
    good = await upstream(counted())
    base = await gateway(provider(cut, "a", models=PRICED) + provider(good, "b", models=PRICED) + client_key(budget_usd_day="5.0"))
    status, _, headers = await said(http, base, stream=False)
    assert (status, headers["X-Routed-Via"]) == (200, "b/m")
    assert spent(gateway)[0] > 0.002


async def test_a_client_that_left_is_billed_for_what_was_used(upstream, gateway, http):
    up = await upstream(stream("word " * 40).but(Hang(), after=2))
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="5.0"))
    async with http.post(base + "/v1/chat/completions", json={**ASK, "stream": True}, headers=AUTH) as answer:
        await answer.content.readany()
    for _ in range(200):
        if gateway.listener.parts.inflight.count == 0:
            break
        await asyncio.sleep(0.01)
    assert 50 * 10 / 1e6 <= spent(gateway)[0] <= 100 * 10 / 1e6


async def test_what_is_refused_for_other_reasons_reserves_nothing(upstream, gateway, http):
    up = await upstream(reply("Hi"))
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="5.0", rpm="1"))
    await said(http, base)
    before = spent(gateway)
    assert (await said(http, base))[0] == 429 and spent(gateway) == before
    assert (await said(http, base, messages="no list"))[0] == 400
    budgets = gateway.listener.parts.budgets
    assert all(purse.held == 0 for purse in budgets._purses.values())


async def test_spending_outlives_a_restart(upstream, gateway, http, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    up = await upstream(counted())
    config = provider(up, models=PRICED) + client_key(budget_usd_day="0.0025") + f'[store]\nurl = "sqlite:{tmp_path}/gw.db"\n'
    base = await gateway(config)
    assert (await said(http, base))[0] == 200
    await gateway.listener.close(0)
    base = await gateway(config)
    assert spent(gateway)[0] == pytest.approx(0.002)
    assert (await said(http, base))[0] == 429


async def test_vectors_reserve_their_input_alone(upstream, gateway, http):
    vectors = {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
               "usage": {"prompt_tokens": 50, "total_tokens": 50}}
    up = await upstream(body_of(json.dumps(vectors).encode(), 200, JSON))
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="0.0002"))
    async with http.post(base + "/v1/embeddings", json={"model": "m", "input": "Hello " * 20}, headers=AUTH) as answer:
        assert answer.status == 200
    assert spent(gateway)[0] == pytest.approx(50 / 1e6)
    async with http.post(base + "/v1/embeddings", json={"model": "m", "input": ["Hello " * 20] * 30}, headers=AUTH) as answer:
        assert answer.status == 402                      # each is short, all of them are not


async def test_several_answers_are_set_aside_each(upstream, gateway, http):
    up = await upstream(counted())
    base = await gateway(provider(up, models=PRICED) + client_key(budget_usd_day="0.0025"))
    assert (await said(http, base, n=3))[0] == 402 and not up.requests
    assert (await said(http, base, n=2))[0] != 402


async def test_of_two_limits_of_an_answer_the_larger_is_set_aside(upstream, gateway, http):
    up = await upstream(counted())
    models = PRICED.replace("max_output = 1000", "max_output = 100000")
    base = await gateway(provider(up, models=models) + client_key(budget_usd_day="0.01"))
    assert (await said(http, base, max_tokens=1, max_completion_tokens=50_000))[0] == 402 and not up.requests
    assert (await said(http, base, max_tokens=50_000, max_completion_tokens=1))[0] == 402 and not up.requests


@pytest.mark.parametrize("more", [{"prompt": ["Hi"] * 30}, {"prompt": [[1, 2]] * 30}, {"prompt": "Hi", "best_of": 30}])
async def test_every_answer_of_a_completion_is_set_aside_shown_or_not(upstream, gateway, http, more):
    up = await upstream(counted())
    models = PRICED.replace("max_output", "completions = true, max_output")
    base = await gateway(provider(up, models=models) + client_key(budget_usd_day="0.02"))
    assert (await said(http, base, "/v1/completions", **more))[0] == 402 and not up.requests
    assert (await said(http, base, "/v1/completions", prompt=[1, 2, 3]))[0] != 402
