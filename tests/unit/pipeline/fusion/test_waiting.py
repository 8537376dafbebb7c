"""For whom is waited, how long, and what is left when the client goes: quorum, grace, timeout, disconnect, progress."""
import asyncio
import json

import pytest

from gateway.mock import script as say
from tests.conftest import KEY
from tests.talk import ask
from tests.unit.pipeline.fusion.panels import ASK, extras, house, judges, member
from tests.unit.pipeline.fusion.test_fusion import rests

SLOW = member(say.hang())


async def test_after_the_quorum_the_others_get_their_grace_and_are_not_blamed(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, SLOW, member("b"), member("c"), member("d", "judged"))
    got = await ask(base_url, {**ASK, "fusion": {"judge": "m-d", "models": ["m-a", "m-b", "m-c"]}}, stream=True)
    assert (got.text, got.headers["X-Routed-Via"]) == ("judged", "fusion(b/m-b+c/m-c -> d/m-d)")
    assert got.headers["X-Fallback-Trail"] == "a/m-a key1=hedged"
    assert [one["status"] for one in extras(got) if one["event"] == "panel"] == ["ok", "ok", "failed"]
    assert [(attempt.label, attempt.hedged, attempt.error) for attempt in calls[0].attempts[:1]] == [("a/m-a", True, None)]
    assert gateway.listener.parts.health.snapshot(asyncio.get_running_loop().time()) == []
    assert await rests(gateway)


async def test_who_comes_within_the_grace_is_heard(gateway, upstream):
    late = member(say.reply("late").later(0.15))
    ups, base_url, calls = await house(gateway, upstream, late, member("b"), member("c"), more="[fusion]\ngrace_s = 5\n")
    got = await ask(base_url, ASK)
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b+c/m-c -> a/m-a)"
    assert b"late" in next(asked.body for up in ups for asked in up.requests if judges(asked))


@pytest.mark.parametrize(("quorum", "n_ok"), [(1, 1), (2, 2), (3, 3)])
async def test_a_quorum_of_any_size(gateway, upstream, quorum, n_ok):
    quick = [member(name) for name in "abc"[:n_ok]]
    ups, base_url, calls = await house(gateway, upstream, *quick, *[SLOW] * (4 - n_ok),
                                       more=f"[fusion]\ngrace_s = 0.1\nquorum = {quorum}\n")
    got = await ask(base_url, ASK)
    assert got.status == 200
    assert [attempt.hedged for attempt in calls[0].attempts if attempt.role == "panel"].count(True) == 4 - n_ok


async def test_the_panels_time_ends_with_what_there_is(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, SLOW, member("the only one"), SLOW, more="[fusion]\ntimeout_s = 1\n")
    got = await ask(base_url, ASK, stream=True)
    assert (got.text, got.headers["X-Routed-Via"]) == ("the only one", "fusion(b/m-b -> b/m-b)")
    assert [attempt.error.kind for attempt in calls[0].attempts if attempt.error] == ["timeout", "timeout"]
    assert await rests(gateway)


async def test_nobody_in_time_is_504(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, SLOW, SLOW, more="[fusion]\ntimeout_s = 1\n")
    got = await ask(base_url, ASK, stream=True)
    assert (got.status, got.headers["X-Fallback-Trail"]) == (504, "a/m-a key1=timeout; b/m-b key2=timeout")
    assert await rests(gateway)


async def leave(base_url, stream=True):
    host, port = base_url.removeprefix("http://").split(":")
    body = json.dumps({**ASK, "stream": stream}).encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (KEY.encode(), len(body), body))
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("where", ["panel", "judge", "answer"])
async def test_a_client_that_goes_takes_everybody_along(gateway, upstream, stream, where):
    if where == "panel":
        ups, base_url, calls = await house(gateway, upstream, SLOW, SLOW, SLOW)
    else:
        verdict = say.hang() if where == "judge" or not stream else say.stall("the ", "ver")
        ups, base_url, calls = await house(gateway, upstream, member("a", verdict), member("b", verdict))
    reader, writer = await leave(base_url, stream)
    if where == "panel":
        for up in ups:
            await up.until(lambda up=up: up.busy == 1)
    else:
        await ups[0].until(lambda: any(judges(asked) for asked in ups[0].requests))
        if where == "answer" and stream:
            await reader.readuntil(b"ver")
    writer.transport.abort()
    for up in ups:
        await up.until(lambda up=up: not up.busy, 1.0)
    assert await rests(gateway)
    assert [call.outcome for call in calls] == ["client_gone"]
    assert {attempt.error.kind for attempt in calls[0].attempts if attempt.error} == {"client_gone"}
    assert gateway.listener.parts.health.snapshot(asyncio.get_running_loop().time()) == []


async def test_with_progress_the_panel_is_heard_live(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("early"), member("soon"), SLOW,
                                   more="[fusion]\nprogress = true\nquorum = 3\ntimeout_s = 60\n")
    reader, writer = await leave(base_url)
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"200 OK" in head and b"X-Routed-Via: fusion(a/m-a+b/m-b+c/m-c)\r\n" in head
    await reader.readuntil(b"early")
    await ups[2].until(lambda: ups[2].busy == 1)
    await ups[2].stop()                              # the last one ends only now, after the first was heard
    rest = await reader.readuntil(b"[DONE]")
    assert rest.count(b'"event":"judge"') == 1 and b'"status":"failed"' in rest
    writer.close()


async def test_with_progress_a_failure_is_told_in_band(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, member(say.error(500)), member(say.error(500)),
                                       more="[fusion]\nprogress = true\n")
    got = await ask(base_url, ASK, stream=True)
    assert (got.status, got.error["code"], got.done) == (200, "upstream_failed", 1)
    assert [one["status"] for one in extras(got)] == ["failed", "failed"]


async def test_a_silent_panel_keeps_the_client_company_when_the_operator_wants_that(gateway, upstream):
    late = member(say.reply("late").later(1.0))
    ups, base_url, _ = await house(gateway, upstream, late, late, more="[timeouts]\nearly_keepalive_s = 0.2\n")
    reader, writer = await leave(base_url)
    await reader.readuntil(b": ")
    assert ups[0].busy == 1
    rest = await reader.readuntil(b"[DONE]")
    assert rest.count(b"_fusion") == 3
    writer.close()
