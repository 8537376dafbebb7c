"""Start, reload, drain: what an operator's signals do to requests under way."""
import asyncio

import pytest

from gateway.config.load import ConfigError, load
from gateway.mock import script as say
from gateway.server.reload import Reloader
from tests.conftest import client_key, provider
from tests.talk import ask


async def test_a_reload_takes_effect_for_new_requests_and_old_ones_keep_what_they_had(gateway, upstream, tmp_path):
    a, b = await upstream(say.stream("from ", "a", delay_s=0.1)), await upstream(say.stream("from b"))
    base_url = await gateway(client_key() + provider(a, "a"))
    file = tmp_path / "gateway.toml"
    reloader = Reloader(gateway.listener, lambda: load(file, {}), file)
    running = asyncio.create_task(ask(base_url, stream=True))
    await a.until(lambda: a.busy == 1)
    file.write_text(client_key() + provider(b, "b"))
    assert await reloader.reload() == []
    assert (await ask(base_url, stream=True)).headers["X-Routed-Via"] == "b/m"
    assert (await running).text == "from a"


async def test_a_bad_file_is_refused_and_the_old_configuration_stays(gateway, upstream, tmp_path):
    up = await upstream(say.stream("still here"))
    base_url = await gateway(client_key() + provider(up))
    file = tmp_path / "gateway.toml"
    reloader = Reloader(gateway.listener, lambda: load(file, {}), file)
    file.write_text("[server]\nprot = 1\n")
    problems = await reloader.reload()
    assert problems and problems[0][0] == "server.prot"
    with pytest.raises(ConfigError):
        load(file, {})
    assert (await ask(base_url, stream=True)).text == "still here"


async def test_a_changed_file_is_noticed(gateway, upstream, tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.server.reload.POLL_S", 0.02)
    a, b = await upstream(say.stream("a")), await upstream(say.stream("b"))
    base_url = await gateway(client_key() + provider(a, "a"))
    file = tmp_path / "gateway.toml"
    reloader = Reloader(gateway.listener, lambda: load(file, {}), file)
    reloader.start()
    try:
        file.write_text(client_key() + provider(b, "bee"))
        async with asyncio.timeout(5):
            while "bee" not in gateway.listener.desk.ground.catalog.providers:
                await asyncio.sleep(0.01)
    finally:
        reloader.stop()
    assert (await ask(base_url, stream=True)).text == "b"


async def test_cooldowns_outlive_a_reload(gateway, upstream, tmp_path):
    up = await upstream([say.error(429, headers={"Retry-After": "60"}), say.stream("too early")])
    base_url = await gateway(client_key() + provider(up))
    await ask(base_url)
    file = tmp_path / "gateway.toml"
    await Reloader(gateway.listener, lambda: load(file, {}), file).reload()
    assert (await ask(base_url)).status == 429 and len(up.requests) == 1


async def test_draining_finishes_what_runs_and_accepts_nothing_new(gateway, upstream):
    up = await upstream(say.stream("slow ", "but ", "whole", delay_s=0.1))
    base_url = await gateway(client_key() + provider(up))
    running = asyncio.create_task(ask(base_url, stream=True))
    await up.until(lambda: up.busy == 1)
    closing = asyncio.create_task(gateway.listener.close(5))
    got = await running
    assert got.text == "slow but whole" and got.done == 1
    await closing
    with pytest.raises(OSError):
        await ask(base_url)


async def test_a_stream_that_outlives_the_drain_is_ended_and_its_upstream_left(gateway, upstream):
    up = await upstream(say.stall("for ", "ever"))
    base_url = await gateway(client_key() + provider(up))
    running = asyncio.create_task(ask(base_url, stream=True))
    await up.until(lambda: up.busy == 1)
    await asyncio.sleep(0.1)
    await gateway.listener.close(0.1)
    got = await running
    assert got.text == "for ever"
    assert got.error is not None and "shutting down" in got.error["message"]
    await up.until(lambda: not up.open_connections)
