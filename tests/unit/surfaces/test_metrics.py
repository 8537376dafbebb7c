"""/metrics: open on this machine, by key elsewhere, and what it says is what happened."""
import asyncio

import pytest

from gateway.mock import script as say
from gateway.observe.families import FAMILIES
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, ask
from tests.unit.observe.calls import read

ADMIN_KEY = "an-admin-key-of-some-length"
SCRAPE_KEY = "a-key-for-scrapes"
AWAY = {"Host": "gateway.example"}


async def page(url, headers=None):
    return await ask(url, path="/metrics", method="GET", headers=headers or {})


async def numbers(url):
    return read((await page(url)).body.decode())


@pytest.fixture
def door(gateway, upstream):
    async def start(config="", answer=None):
        up = await upstream(answer or say.reply("hello"))
        return await gateway(client_key() + provider(up) + config)
    return start


async def test_what_was_asked_is_on_the_page(door):
    url = await door()
    assert (await ask(url)).status == 200
    assert (await ask(url, stream=True)).done == 1
    assert (await ask(url, {**ASK, "model": "nobody-has-it"})).status == 404
    assert (await ask(url, headers={"Authorization": "Bearer no"})).status == 401
    found = await numbers(url)
    assert found["gateway_requests_total", "chat", "m", "up", "ok"] == 2
    assert found["gateway_requests_total", "chat", "other", "none", "refused"] == 2
    assert found["gateway_stream_outcomes_total", "committed_ok"] == found["gateway_ttft_seconds_count", "m", "up"] == 1
    assert found["gateway_breaker_state", "up"] == found["gateway_in_flight_requests",] == 0
    assert found["process_resident_memory_bytes",] > 1_000_000


async def test_failures_of_an_upstream_show_as_attempts_and_cooldowns(door):
    url = await door(answer=say.error(500, "boom"))
    assert (await ask(url)).status >= 500
    found = await numbers(url)
    assert found["gateway_attempts_total", "m", "up", "server_error"] == 1
    assert found["gateway_cooldowns", "up"] >= 1


async def test_a_reload_keeps_what_was_counted(door, gateway):
    from gateway.server import compose

    url = await door()
    await ask(url)
    compose.rebuild(gateway.listener.desk, gateway.listener.parts)
    await ask(url)
    assert (await numbers(url))["gateway_requests_total", "chat", "m", "up", "ok"] == 2


async def test_the_page_names_no_family_that_is_not_in_the_table(door):
    url = await door()
    await ask(url)
    said = {line.split()[2] for line in (await page(url)).body.decode().splitlines() if line.startswith("# TYPE")}
    assert "gateway_build_info" in said and said <= set(FAMILIES)


@pytest.mark.parametrize("headers", [AWAY, {"X-Forwarded-For": "203.0.113.7"}, {"Forwarded": "for=203.0.113.7"}])
async def test_from_elsewhere_a_key_is_needed(door, headers):
    url = await door(f'[admin]\nkey = "{ADMIN_KEY}"\n')
    assert (await page(url, headers)).status == 401
    assert (await page(url, {**headers, "Authorization": "Bearer wrong"})).status == 401
    assert (await page(url, {**headers, **AUTH})).status == 200
    assert (await page(url, {**headers, "Authorization": f"Bearer {ADMIN_KEY}"})).status == 200


async def test_a_key_of_its_own_keeps_clients_out(door):
    url = await door(f'[metrics]\nkey = "{SCRAPE_KEY}"\n')
    assert (await page(url, {**AWAY, **AUTH})).status == 401
    assert (await page(url, {**AWAY, "Authorization": f"Bearer {SCRAPE_KEY}"})).status == 200


async def test_without_any_key_nobody_else_reads_it(gateway):
    url = await gateway("")
    assert (await page(url)).status == 200
    assert (await page(url, AWAY)).status == 401


async def test_it_can_be_switched_off(door):
    url = await door("[metrics]\nenabled = false\n")
    assert (await page(url)).status == 404


async def test_a_loop_that_is_held_up_shows(door, gateway):
    url = await door()
    lag, inflight = gateway.listener.parts.lag, gateway.listener.parts.inflight
    lag.late(0.7)
    assert inflight.lag_s == 0.7
    lag.late(0.1)
    assert inflight.lag_s == 0.35
    found = await numbers(url)
    assert found["gateway_loop_lag_seconds_bucket", "+Inf"] - found["gateway_loop_lag_seconds_bucket", "0.5"] >= 1


async def test_the_timer_of_the_loop_runs_while_the_gateway_does(door, gateway):
    await door()
    lag = gateway.listener.parts.lag
    async with asyncio.timeout(5):
        while not sum(lag.spread.counts):
            await asyncio.sleep(0.05)
