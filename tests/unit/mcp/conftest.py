"""A gateway with its MCP server, and agents that speak with it through the official SDK."""
import json
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

ADMIN_KEY = "adm-0123456789abcdef"
ON = f'[mcp]\nenabled = true\n[admin]\nkey = "{ADMIN_KEY}"\n'


def bearer(key):
    return {"Authorization": f"Bearer {key}"} if key else {}


@asynccontextmanager
async def over_http(url, key=ADMIN_KEY, mode="auto"):
    async with httpx2.AsyncClient(headers=bearer(key)) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, cache=None) as client:
            yield client


@asynccontextmanager
async def over_sse(url, key=ADMIN_KEY, mode="auto"):
    async with Client(sse_client(f"{url}/mcp/sse", headers=bearer(key)), mode=mode, cache=None) as client:
        yield client


def said(result):
    """The JSON of an answer that is none of failure."""
    [content] = result.content
    assert not result.is_error, content.text
    return json.loads(content.text)


def refused(result):
    """The words of a failure."""
    assert result.is_error, result.content[0].text
    return result.content[0].text
