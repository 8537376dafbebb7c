"""Others' software at the other end, and no way out beside ours: aiohttp's server as an upstream, no ClientSession anywhere."""
import pytest
from aiohttp import web
from aioresponses import aioresponses

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, ask


async def chunked(request):
    """A stream as aiohttp frames it: its own headers, chunks and end."""
    body = await request.json()
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    answer.enable_compression() if "gzip" in request.headers.get("Accept-Encoding", "") else None
    await answer.prepare(request)
    for data in (say.frame(role="assistant", content=""), say.frame(f"to {body['model']}"), say.frame(finish="stop"), say.DONE):
        await answer.write(data)
    return answer


@pytest.mark.parametrize("transport", ["fast", "aiohttp"])
async def test_an_upstream_of_other_software_is_understood_by_both_clients(gateway, aiohttp_server, transport):
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chunked)
    server = await aiohttp_server(app)
    base = await gateway(client_key() + provider(str(server.make_url("/v1")), transport=f'"{transport}"'))
    got = await ask(base, {**ASK, "model": "m"}, stream=True, headers=AUTH)
    assert (got.status, got.text, got.finishes, got.done) == (200, "to m", ["stop"], 1)


async def test_nothing_goes_out_by_a_session_of_its_own(gateway, upstream):
    """Every way out has the guard, the proxies and the deadline of the transports: a ClientSession would have none of them. While
    it is patched, each request of one fails."""
    up = await upstream(say.reply("heard"))
    base = await gateway(client_key() + provider(up) + provider(up, "plain", models='["n"]', transport='"aiohttp"'))
    with aioresponses(passthrough=[base]) as refusing:
        told = [await ask(base, {**ASK, "model": model}, stream=False, headers=AUTH) for model in ("m", "n")]
        others = [url for _, url in refusing.requests if not str(url).startswith(base)]
    assert [got.status for got in told] == [200, 200] and len(up.requests) == 2 and others == []
