"""Who may come in at /mcp, and what is said to those who may not; malformed words, other methods, the end."""
import asyncio
import gzip
import json

import aiohttp
import pytest

from gateway.policy import passwords
from tests.conftest import client_key
from tests.unit.mcp.conftest import ADMIN_KEY, ON, bearer, over_http, over_sse, refused, said

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
BOTH = {"Accept": "application/json, text/event-stream"}
OPEN = "[mcp]\nenabled = true\n"
SCOPED = client_key("reader", "gw-reader-0123456789", mcp_scopes='["read:*"]')


async def sent(url, body=PING, method="POST", path="/mcp", key="", headers=None, raw=None):
    data = raw if raw is not None else json.dumps(body).encode() if method == "POST" else None
    given = {"Content-Type": "application/json", **BOTH, **bearer(key), **(headers or {})}
    async with aiohttp.ClientSession() as session, session.request(method, url + path, data=data, headers=given) as answer:
        text = await answer.text()
        return answer.status, answer.headers, json.loads(text) if text.startswith("{") else text


async def status(*given, **more):
    return (await sent(*given, **more))[0]


async def test_it_is_off_unless_the_configuration_says_otherwise(gateway):
    url = await gateway("")
    for path in ("/mcp", "/mcp/sse", "/mcp/messages"):
        code, _, told = await sent(url, path=path, method="GET" if path.endswith("sse") else "POST")
        assert code == 404 and "switched off" in told["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_only_post_is_possible_where_nothing_streams(gateway, method):
    code, headers, _ = await sent(await gateway(OPEN), method=method)
    assert code == 405 and headers["Allow"] == "POST, OPTIONS"


async def test_there_is_nothing_else(gateway):
    url = await gateway(OPEN)
    assert await status(url, path="/mcp/other") == 404
    assert await status(url, path="/mcp/sse") == 405 and await status(url, path="/mcp/messages", method="GET") == 405
    assert await status(url, path="/mcpx") == 404


async def test_this_machine_is_the_operator_where_no_key_and_no_password_is_set(gateway):
    async with over_http(await gateway(OPEN), key="") as client:
        assert len((await client.list_tools()).tools) >= 30


async def test_behind_a_proxy_or_by_another_name_nobody_is(gateway):
    url = await gateway(OPEN)
    for headers in ({"X-Forwarded-For": "10.0.0.9"}, {"Host": "evil.example"}):
        assert await status(url, headers=headers) == 401


async def test_with_a_password_the_key_is_needed(gateway):
    url = await gateway(f'{ON}password_hash = "{passwords.hashed("correct horse")}"\n')
    assert await status(url) == 401
    assert await status(url, key="adm-wrong-0123456789") == 401
    assert await status(url, key=ADMIN_KEY) == 200


async def test_a_client_key_needs_a_scope(gateway):
    url = await gateway(ON + client_key("bare", "gw-bare-0123456789") + SCOPED)
    assert await status(url) == 401 and await status(url, key="gw-wrong-0123456789") == 401
    code, headers, told = await sent(url, key="gw-bare-0123456789")
    assert code == 403 and "holds no scope for MCP" in told["error"]["message"] and told["error"]["data"]["code"] == "insufficient_scope"
    assert await status(url, key="gw-reader-0123456789") == 200
    assert await status(url, headers={"x-api-key": "gw-reader-0123456789"}) == 200


@pytest.mark.parametrize(("origin", "code"), [("https://evil.example", 403), ("null", 403), ("http://localhost:3000", 200),
                                              ("https://app.example", 200)])
async def test_pages_of_other_origins_are_refused_with_and_without_a_key(gateway, origin, code):
    url = await gateway(ON + '[server]\ncors_allow_origins = ["https://app.example"]\n')
    for key in ("", ADMIN_KEY):
        found, headers, _ = await sent(url, key=key, headers={"Origin": origin})
        assert found == code
    assert (headers.get("Access-Control-Allow-Origin") == origin) is (origin == "https://app.example")


MALFORMED = {
    "no JSON": (b"{", {}, 400), "no body": (b"", {}, 400), "a batch": (b"[]", {}, 400), "no request": (b'{"jsonrpc": "2.0"}', {}, 400),
    "deep": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}", {}, 400),
    "a number too long": (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', {}, 400),
    "other content": (b"x=1", {"Content-Type": "text/plain"}, 415), "compressed": (gzip.compress(b"{}"), {"Content-Encoding": "gzip"}, 415),
    "too large": (b" " * ((1 << 20) + 1), {}, 413), "no accept": (json.dumps(PING).encode(), {"Accept": "text/plain"}, 406),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', {}, 400),
    "a version of nobody": (json.dumps(PING).encode(), {"MCP-Protocol-Version": "1999-01-01"}, 400),
}


@pytest.mark.parametrize("version", ["", "2026-07-28"])
@pytest.mark.parametrize("case", MALFORMED)
async def test_what_is_malformed_is_refused_and_nothing_breaks(gateway, case, version):
    raw, headers, code = MALFORMED[case]
    url = await gateway(ON)
    assert await status(url, raw=raw, headers={**({"MCP-Protocol-Version": version} if version else {}), **headers}, key=ADMIN_KEY) == code
    async with over_http(url) as client:
        assert said(await client.call_tool("get_health", {}))["status"] == "ok"


async def test_a_message_for_a_stream_needs_the_key_that_opened_it(gateway):
    url = await gateway(ON + SCOPED)
    async with aiohttp.ClientSession() as session, session.get(f"{url}/mcp/sse", headers=bearer(ADMIN_KEY)) as stream:
        where = ""
        while not where.startswith("data: "):
            where = (await stream.content.readline()).decode().strip()
        path = where.removeprefix("data: ")
        assert path.startswith("/mcp/messages?session_id=")
        assert await status(url, path=path, key="gw-reader-0123456789") == 404
        assert await status(url, path=path) == 401
        assert await status(url, path=path, key=ADMIN_KEY) == 202
        assert await status(url, path="/mcp/messages?session_id=" + "0" * 32, key=ADMIN_KEY) == 404
        assert await status(url, path="/mcp/messages", key=ADMIN_KEY) == 400


async def test_a_key_is_judged_anew_with_every_message(gateway):
    url = await gateway(ON)
    async with over_http(url) as admin:
        secret = said(await admin.call_tool("create_key", {"name": "ci", "mcp_scopes": ["read:*"]}))["secret"]
        async with over_sse(url, secret) as client:
            said(await client.call_tool("get_health", {}))
            said(await admin.call_tool("update_key", {"key": "ci", "mcp_scopes": ["read:logs"]}))
            assert "needs read:health" in refused(await client.call_tool("get_health", {}))


async def test_streams_end_when_the_gateway_stops(gateway):
    url = await gateway(ON)
    async with aiohttp.ClientSession() as session, session.get(f"{url}/mcp/sse", headers=bearer(ADMIN_KEY)) as stream:
        await stream.content.readline()
        async with asyncio.timeout(5):
            await gateway.listener.mcp.close()
            await stream.content.read()
        assert stream.content.at_eof()


async def test_a_client_that_leaves_takes_its_stream_along(gateway, caplog):
    url = await gateway(ON)
    mcp = gateway.listener.mcp
    async with aiohttp.ClientSession() as session:
        stream = await session.get(f"{url}/mcp/sse", headers=bearer(ADMIN_KEY))
        await stream.content.readline()
        assert len(mcp._streams) == 1
        stream.close()
    async with asyncio.timeout(5):
        while mcp._streams:
            await asyncio.sleep(0.01)
    async with over_sse(url) as client:
        said(await client.call_tool("get_health", {}))
    async with asyncio.timeout(5):
        while mcp._streams:
            await asyncio.sleep(0.01)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
