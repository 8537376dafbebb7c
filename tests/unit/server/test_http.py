"""Bytes that are no request are answered in our words, and what they held is told to nobody."""
import asyncio
import json
import logging

import pytest

from gateway.mock import script as say
from gateway.server.reload import Reloader
from tests.conftest import KEY, client_key, provider

HEAD = f"Host: localhost\r\nAuthorization: Bearer {KEY}\r\n"


async def send(base_url, data, close=True):
    host, port = base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data.encode("latin-1"))
    answer = await asyncio.wait_for(reader.read() if close else reader.readuntil(b"\r\n\r\n"), 10)
    writer.close()
    return answer.decode("latin-1")


MALFORMED = {
    "bare line feeds": "POST /v1/chat/completions HTTP/1.1\n" + HEAD.replace("\r", "") + "\n",
    "two lengths": f"POST /v1/chat/completions HTTP/1.1\r\n{HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    "length and chunks": f"POST /v1/chat/completions HTTP/1.1\r\n{HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bad chunk": f"POST /v1/chat/completions HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a folded header": f"GET /v1/models HTTP/1.1\r\n{HEAD}X-A: b\r\n c\r\n\r\n",
    "a long header": f"GET /v1/models HTTP/1.1\r\n{HEAD}X-A: {'b' * 20_000}\r\n\r\n",
    "no http": "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
async def test_what_is_no_request_gets_our_error_and_leaves_no_trace(gateway, upstream, caplog, data):
    caplog.set_level(logging.DEBUG)
    up = await upstream(say.reply())
    answer = await send(await gateway(client_key() + provider(up)), data)
    head, _, body = answer.partition("\r\n\r\n")
    assert " 400 " in head.splitlines()[0] and "application/json" in head and "X-Request-ID" in head
    assert "aiohttp" not in answer and "Python" not in answer
    assert json.loads(body)["error"]["message"]
    assert KEY not in answer and KEY not in caplog.text and "Traceback" not in caplog.text
    assert not up.requests


async def test_a_body_that_does_not_come_is_not_waited_for(gateway, upstream, monkeypatch):
    monkeypatch.setattr("gateway.pipeline.deliver.UPLOAD_IDLE_S", 0.1)
    base_url = await gateway(client_key() + provider(await upstream(say.reply())))
    data = f"POST /v1/chat/completions HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    assert " 408 " in await send(base_url, data, close=False)
    assert gateway.listener.parts.inflight.count == 0


async def test_a_stated_length_that_is_too_large_is_refused_before_it_is_sent(gateway, upstream):
    base_url = await gateway(client_key() + provider(await upstream(say.reply())))
    data = f"POST /v1/chat/completions HTTP/1.1\r\n{HEAD}Expect: 100-continue\r\nContent-Length: 1000000000000\r\n\r\n"
    answer = await send(base_url, data, close=False)
    assert " 413 " in answer and "100 Continue" not in answer


async def test_a_probe_that_leaves_is_no_error(gateway, upstream, caplog):
    base_url = await gateway(client_key() + provider(await upstream(say.reply())))
    host, port = base_url.removeprefix("http://").split(":")
    for _ in range(20):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writer.transport.abort()
    await asyncio.sleep(0.1)
    assert "Traceback" not in caplog.text


async def test_a_reload_cannot_open_a_gateway_that_others_reach(gateway, upstream, tmp_path):
    from gateway.config.load import load
    up = await upstream(say.reply())
    await gateway(client_key() + provider(up))
    file = tmp_path / "gateway.toml"
    gateway.listener.host = "0.0.0.0"
    file.write_text(provider(up))
    problems = await Reloader(gateway.listener, lambda: load(file, {}), file).reload()
    assert problems[0][0] == "auth.keys" and gateway.listener.desk.ground.snapshot.keys
