"""Where nobody can be asked now: what an operator allows is waited for, nothing else."""
import asyncio

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ask


def routing(**settings):
    return "[routing]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


async def test_the_nearest_cooldown_is_waited_for(gateway, upstream):
    up = await upstream([say.error(429, "slow down", headers={"Retry-After": "2"}), say.stream("again")])
    base_url = await gateway(client_key() + routing(wait_s=5) + provider(up))
    got = await ask(base_url, stream=True)
    assert (got.status, got.text, got.headers["X-Fallback-Trail"]) == (200, "again", "up/m key1=rate_limited")


async def test_but_not_for_longer_than_was_allowed(gateway, upstream):
    up = await upstream(say.error(429, "slow down", headers={"Retry-After": "9"}))
    base_url = await gateway(client_key() + routing(wait_s=3) + provider(up))
    got = await ask(base_url)
    assert got.status == 429 and int(got.headers["Retry-After"]) >= 8 and len(up.requests) == 1


async def test_nor_beyond_the_time_for_the_request(gateway, upstream):
    up = await upstream(say.error(429, "slow down", headers={"Retry-After": "2"}))
    base_url = await gateway(client_key() + routing(wait_s=5, budget_s=1) + provider(up))
    assert (await ask(base_url)).status == 429 and len(up.requests) == 1


async def test_what_is_waited_is_counted_over_all_rounds(gateway, upstream):
    up = await upstream(say.error(429, "slow down", headers={"Retry-After": "1"}))
    base_url = await gateway(client_key() + routing(wait_s=1.5) + provider(up))
    assert (await ask(base_url)).status == 429 and len(up.requests) == 2


async def test_a_bad_key_is_not_waited_for(gateway, upstream):
    up = await upstream(say.error(401, "bad key"))
    base_url = await gateway(client_key() + routing(wait_s=20, max_set_retries=3, set_retry_delay_s=0.05) + provider(up))
    assert (await ask(base_url)).status == 502 and len(up.requests) == 1


async def test_a_stopping_gateway_waits_for_nobody(gateway, upstream):
    up = await upstream(say.error(429, "slow down", headers={"Retry-After": "30"}))
    base_url = await gateway(client_key() + routing(wait_s=40) + provider(up))
    asking = asyncio.ensure_future(ask(base_url))
    await up.until(lambda: up.requests and not up.busy)
    gateway.listener.parts.inflight.draining = True
    assert (await asyncio.wait_for(asking, 3)).status == 429


async def test_the_client_is_kept_company_meanwhile(gateway, upstream):
    up = await upstream([say.error(429, "slow down", headers={"Retry-After": "2"}), say.stream("again")])
    base_url = await gateway(client_key() + routing(wait_s=5) + "[timeouts]\nearly_keepalive_s = 0.3\n" + provider(up))
    got = await ask(base_url, stream=True)
    assert got.status == 200 and got.body.startswith(b": keep-alive\n\n") and got.text == "again" and got.done == 1


async def test_the_whole_set_is_asked_again(gateway, upstream):
    a = await upstream([say.error(503), say.error(500), say.stream("third time")])
    b = await upstream(say.error(503))
    base_url = await gateway(client_key() + routing(max_set_retries=2, set_retry_delay_s=0.05)
                             + provider(a, "a", keys='["sk-a-123456"]') + provider(b, "b", keys='["sk-b-123456"]'))
    got = await ask(base_url, stream=True)
    assert (got.status, got.text) == (200, "third time")
    assert got.headers["X-Fallback-Attempts"] == "4" and len(b.requests) == 2


async def test_as_often_as_was_allowed(gateway, upstream):
    up = await upstream(say.error(503))
    base_url = await gateway(client_key() + routing(max_set_retries=2, set_retry_delay_s=0.05) + provider(up))
    got = await ask(base_url)
    assert got.status == 503 and len(up.requests) == 3


async def test_a_combo_has_its_own_number(gateway, upstream):
    up = await upstream(say.error(503))
    base_url = await gateway(client_key() + routing(max_set_retries=2, set_retry_delay_s=0.05) + provider(up)
                             + '[[combos]]\nname = "once"\ntargets = ["up/m"]\nmax_set_retries = 0\n')
    got = await ask(base_url, {"model": "once", "messages": [{"role": "user", "content": "hi"}]})
    assert got.status == 503 and len(up.requests) == 1


async def test_who_stated_a_time_is_not_asked_before_it(gateway, upstream):
    up = await upstream(say.error(429, "slow down", headers={"Retry-After": "20"}))
    base_url = await gateway(client_key() + routing(max_set_retries=5, set_retry_delay_s=0.05) + provider(up))
    assert (await ask(base_url)).status == 429 and len(up.requests) == 1


async def test_in_another_pass_only_who_may_be_well_again_is_asked(gateway, upstream):
    a, b = await upstream([say.error(503), say.stream("well again")]), await upstream(say.error(401, "bad key"))
    base_url = await gateway(client_key() + routing(max_set_retries=1, set_retry_delay_s=0.05)
                             + provider(a, "a", keys='["sk-a-123456"]') + provider(b, "b", keys='["sk-b-123456"]'))
    got = await ask(base_url, stream=True)
    assert got.text == "well again" and len(b.requests) == 1
