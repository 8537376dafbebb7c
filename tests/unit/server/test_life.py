"""Start, reload, drain: what an operator's signals do to requests under way."""
import asyncio
import json

import aiohttp
import pytest
import yarl

from gateway.config.load import ConfigError, load
from gateway.mock import script as say
from gateway.server.reload import Reloader
from gateway.server.run import Life
from tests.conftest import client_key, provider
from tests.surfaces import OPEN_ALL, SURFACES
from tests.talk import ASK, AUTH, ask


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


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_what_the_drain_ends_is_told_in_the_words_of_every_surface(gateway, upstream, stream):
    up = await upstream(say.stall("for ", "ever") if stream else say.hang())
    base_url = await gateway(client_key() + provider(up) + OPEN_ALL)
    running = [asyncio.create_task(surface.ask(base_url, "m", stream)) for surface in SURFACES.values()]
    await up.until(lambda: up.busy == len(SURFACES))
    await asyncio.sleep(0.1)
    await gateway.listener.close(0.1)
    for surface, got in zip(SURFACES.values(), await asyncio.gather(*running), strict=True):
        said = surface.said(got, stream)
        assert (got.status, got.broken) == (200 if stream else 503, ""), surface.name
        assert "shutting down" in said.error and not said.ended, surface.name
        assert said.text == ("for ever" if stream else ""), surface.name


async def test_a_kept_connection_is_told_with_its_last_answer_and_a_silent_one_is_closed(gateway, upstream):
    slow = await upstream(say.stream("a ", "while", delay_s=0.3))
    base_url = await gateway(client_key() + provider(slow, models='["slow"]') + provider(await upstream(say.reply("last")), "b"))
    async with aiohttp.ClientSession(base_url, headers=AUTH) as one, aiohttp.ClientSession(base_url) as other:
        for session in (one, other):
            async with session.get("/livez") as got:
                assert "Connection" not in got.headers
        running = asyncio.create_task(ask(base_url, {**ASK, "model": "slow"}, stream=True))
        await slow.until(lambda: slow.busy == 1)
        closing = asyncio.create_task(gateway.listener.close(20))
        await asyncio.sleep(0.05)
        async with one.post("/v1/chat/completions", json=ASK) as got:
            assert got.status == 200 and got.headers["Connection"] == "close"
        async with other.get("/readyz") as got:
            assert got.status == 503 and (await got.json())["reason"] == "draining"
        assert (await running).text == "a while"
        await closing


@pytest.mark.parametrize("asked", ["", "GET /livez", "POST /v1/chat/completions"], ids=["nothing", "aiohttp", "plain"])
async def test_a_kept_connection_that_asks_no_more_does_not_hold_up_the_end(gateway, upstream, asked):
    base_url = await gateway(client_key() + provider(await upstream(say.reply("whole"))))
    where = yarl.URL(base_url)
    reader, writer = await asyncio.open_connection(where.host, where.port)
    try:
        if asked:
            body = json.dumps(ASK) if asked.startswith("POST") else ""
            heads = "".join(f"{name}: {value}\r\n" for name, value in AUTH.items())
            writer.write(f"{asked} HTTP/1.1\r\nHost: {where.authority}\r\n{heads}Content-Type: application/json\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            assert b" 200 " in await reader.readuntil(b"\r\n")
        async with asyncio.timeout(20):                  # the drain would wait for ten minutes
            await gateway.listener.close(600)
            while await reader.read(65536):
                pass
    finally:
        writer.close()


async def test_a_second_signal_ends_what_is_left(gateway, upstream):
    up = await upstream(say.stall("for ", "ever"))
    base_url = await gateway(client_key() + provider(up))
    running = asyncio.create_task(ask(base_url, stream=True))
    await up.until(lambda: up.busy == 1)
    life = Life(gateway.listener)
    life.leave()
    closing = asyncio.create_task(gateway.listener.close(1_000))
    await asyncio.sleep(0.1)
    life.leave()
    async with asyncio.timeout(10):
        await closing
    assert "shutting down" in (await running).error["message"]


async def test_a_loop_that_is_late_sheds_load(gateway, upstream):
    base_url = await gateway(client_key() + provider(await upstream(say.reply("quick"))) + "[limits]\nmax_lag_s = 0.5\n")
    gateway.listener.parts.lag.late(0.8)
    got = await ask(base_url)
    assert (got.status, got.error["code"]) == (503, "overloaded") and int(got.headers["Retry-After"]) >= 1
    gateway.listener.parts.lag.late(0.0)
    assert (await ask(base_url)).status == 200, "what it was fades"


def full(parts):
    parts.inflight.count += 10
    return "no room"


def late(parts):
    parts.lag.late(0.8)
    return "0.8 s late"


def leaving(parts):
    parts.inflight.closed = True
    return "shutting down"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("why", [full, late, leaving])
async def test_what_is_shed_is_told_in_the_words_of_every_surface(gateway, upstream, why, stream):
    up = await upstream(say.reply("never"))
    base_url = await gateway(client_key() + provider(up) + OPEN_ALL + "[limits]\nmax_inflight = 5\nmax_lag_s = 0.5\n")
    words = why(gateway.listener.parts)
    for surface in SURFACES.values():
        got = await surface.ask(base_url, "m", stream)
        said = surface.said(got, stream)
        assert (got.status, got.broken, said.text, said.ended) == (503, "", "", False), surface.name
        assert words in said.error and int(got.headers["Retry-After"]) >= 1, surface.name
    assert not up.requests


async def test_a_unix_socket_serves_too_and_outlives_its_process_for_a_successor(gateway, upstream, tmp_path):
    path = tmp_path / "s"
    await gateway(client_key() + provider(await upstream(say.reply("here"))) + f'[server]\nunix = "{path}"\n')
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), headers=AUTH) as session:
        async with session.post("http://localhost/v1/chat/completions", json=ASK) as got:
            assert got.status == 200
    assert len(gateway.listener.descriptors()) == 2
    await gateway.listener.close(0)
    assert path.exists()
