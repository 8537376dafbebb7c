"""The official MCP SDK as a client: all transports, with ``initialize`` and without, get the same tools and the same answers."""
import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from gateway.mcp.table import BY_NAME, TOOLS
from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.unit.mcp.conftest import ADMIN_KEY, ON, over_http, over_sse, refused, said

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@asynccontextmanager
async def over_stdio(*words, mode="auto", **env):
    """`gateway mcp` as an agent starts it."""
    command = StdioServerParameters(command=sys.executable, args=["-m", "gateway", "mcp", *words], env={**os.environ, **env})
    async with Client(stdio_client(command), mode=mode, cache=None) as client:
        yield client


@asynccontextmanager
async def passed_on(url, key=ADMIN_KEY, mode="auto"):
    async with over_stdio("--url", url, "--key", key, mode=mode) as client:
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", [over_http, over_sse, passed_on])
async def test_tools_are_listed_called_and_refused(gateway, upstream, way, mode):
    up = await upstream(say.reply("hello"))
    url = await gateway(ON + provider(up))
    async with way(url, mode=mode) as client:
        assert client.session.protocol_version == ERAS[mode]
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == set(BY_NAME)
        assert all(tool.input_schema["type"] == "object" and tool.description for tool in listed.values())
        assert listed["get_health"].annotations.read_only_hint and listed["delete_combo"].annotations.destructive_hint
        assert said(await client.call_tool("get_health", {}))["status"] == "ok"
        asked = {"model": "up/m", "messages": [{"role": "user", "content": "hi"}]}
        assert said(await client.call_tool("route_request", asked))["text"] == "hello"
        assert refused(await client.call_tool("get_provider", {"provider": "gone"})) == "provider: There is no such provider."
        with pytest.raises(MCPError, match="There is no tool 'nothing'"):
            await client.call_tool("nothing", {})
        several = await asyncio.gather(*(client.call_tool("list_models", {"limit": n}) for n in range(1, 9)))
        assert [len(said(one)["models"]) for one in several] == [1] + [min(len(said(several[-1])["models"]), n) for n in range(2, 9)]


@pytest.mark.parametrize("way", [over_http, over_sse, passed_on])
async def test_a_client_key_gets_what_its_scopes_say(gateway, way):
    url = await gateway(ON + client_key("reader", "gw-reader-0123456789", mcp_scopes='["read:models"]'))
    async with way(url, "gw-reader-0123456789") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"list_models", "find_model", "get_prices"}
        assert "needs read:health" in refused(await client.call_tool("get_health", {}))


async def test_a_version_of_the_protocol_may_be_pinned(gateway):
    async with over_http(await gateway(ON), mode="2026-07-28") as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)


async def test_without_a_gateway_the_configuration_and_the_store_are_enough(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text('[server]\nport = 1\n' + provider("http://127.0.0.1:1/v1", "up", keys='["sk-up-1-0123456789"]'), encoding="utf-8")
    words = ("--config", str(file), "--scope", "read:*", "--scope", "write:combos", "--scope", "write:keys")
    async with over_stdio(*words, XDG_STATE_HOME=str(tmp_path)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"list_providers", "create_combo", "list_keys", "usage_report", "simulate_route"} <= names
        assert not names & {"get_health", "reload_config", "route_request", "cache_flush"}
        assert said(await client.call_tool("create_combo", {"combo": "best", "targets": ["up/m"]}))["targets"] == ["up/m"]
        assert said(await client.call_tool("simulate_route", {"model": "best"}))["primary"]["place"]["label"] == "up/m"
        assert said(await client.call_tool("create_key", {"name": "ci"}))["secret"].startswith("gw-")
        assert "sk-up-1" not in json.dumps(said(await client.call_tool("get_config", {"text": True})))
        assert "needs a gateway that runs" in refused(await client.call_tool("list_cooldowns", {}))
        assert "needs write:config" in refused(await client.call_tool("reload_config", {}))
        assert {row["who"] for row in said(await client.call_tool("list_audit", {}))["changes"]} == {"mcp:cli"}
