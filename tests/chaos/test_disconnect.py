"""Client gone means upstream gone, at every stage, and it is nobody's failure."""
import asyncio
import json

import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.talk import ask

STAGES = {
    "before the upstream's headers": (say.hang(), True),
    "before the first token": (say.stall(), True),
    "in the middle of the answer": (say.stall("one ", "two"), True),
    "of a whole answer": (say.hang(), False),
    "while a whole answer arrives": (say.script(say.Head(200, say.JSON), say.Send(b'{"id":'), say.Hang()), False),
}


async def leave(base_url, stream):
    """Send a request and close the socket once the gateway is at work on it."""
    host, port = base_url.removeprefix("http://").split(":")
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}).encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (KEY.encode(), len(body), body))
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES.keys())
async def test_the_upstream_is_left_when_the_client_leaves(gateway, upstream, stage):
    answer, stream = stage
    up = await upstream(answer)
    base_url = await gateway(client_key() + provider(up))
    reader, writer = await leave(base_url, stream)
    await up.until(lambda: up.busy == 1)
    if stage is STAGES["in the middle of the answer"]:
        await reader.readuntil(b"two")
    else:
        await asyncio.sleep(0.1)
    writer.transport.abort()
    await up.until(lambda: not up.open_connections, 1.0)
    parts = gateway.listener.parts
    assert parts.transports["network"].open_connections() == 0
    assert parts.inflight.count == 0
    assert parts.health.snapshot(0.0) == []
    tasks = [t for t in asyncio.all_tasks() if "Exchange" in repr(t) or "try_once" in repr(t)]
    assert tasks == []


async def test_a_slow_reader_slows_its_upstream_and_loses_nothing(gateway, upstream):
    texts = ["x" * 4000] * 300
    up = await upstream(say.stream(*texts))
    base_url = await gateway(client_key() + provider(up))
    reader, writer = await leave(base_url, True)
    await asyncio.sleep(0.3)
    data = b""
    while b"[DONE]" not in data:
        data += await reader.read(65536)
    assert data.count(b'"content":"xxxx') == 300
    writer.close()


async def test_keep_alives_fill_a_silence_after_the_commit_point(gateway, upstream):
    up = await upstream(say.stream("one ", "two").but(say.Wait(0.5), say.Send(say.frame("three")),
                                                       say.Send(say.frame(finish="stop")), say.Send(say.DONE), after=3))
    base_url = await gateway(client_key() + provider(up) + "[timeouts]\nkeepalive_s = 0.1\n")
    got = await ask(base_url, stream=True)
    assert got.text == "one twothree" and got.body.count(b": keep-alive\n\n") >= 2


async def test_an_early_keep_alive_opens_the_stream_and_failover_still_works(gateway, upstream):
    bad, good = await upstream(say.error(503).later(0.4)), await upstream(say.stream("good"))
    base_url = await gateway(client_key() + provider(bad, "a") + provider(good, "b") + "[timeouts]\nearly_keepalive_s = 0.1\n")
    got = await ask(base_url, stream=True)
    assert got.status == 200 and got.body.startswith(b": keep-alive\n\n") and got.text == "good" and got.done == 1


async def test_after_an_early_start_exhaustion_is_told_in_band(gateway, upstream):
    bad = await upstream(say.error(503).later(0.4))
    base_url = await gateway(client_key() + provider(bad) + "[timeouts]\nearly_keepalive_s = 0.1\n")
    got = await ask(base_url, stream=True)
    assert got.status == 200 and got.error is not None and got.done == 1


async def test_long_thinking_commits_after_hold_max(gateway, upstream):
    thinking = say.script(say.Head(200, say.SSE), say.Send(say.frame(reasoning_content="hmm ")), say.Wait(1.5),
                          say.Send(say.frame("done")), say.Send(say.frame(finish="stop")), say.Send(say.DONE))
    up = await upstream(thinking)
    base_url = await gateway(client_key() + provider(up) + "[stream]\nhold_max_s = 0.2\n")
    reader, writer = await leave(base_url, True)
    head = await asyncio.wait_for(reader.readuntil(b"hmm"), 1.4)
    assert b"200 OK" in head
    rest = await reader.readuntil(b"[DONE]")
    assert rest.count(b"hmm") == 0 and rest.count(b'"done"') == 1
    writer.close()
