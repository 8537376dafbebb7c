"""How is MCP spoken on standard input and output? Passed on to a gateway that runs, or done here by what the configuration says.

Passed on, nothing is decided here: the gateway there knows the key, its scopes and the tools. Standard output carries the protocol
and nothing else; whatever is logged goes to standard error.
"""
import logging
from typing import Any, Final

import httpx2
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

import gateway
from gateway.mcp import sdk
from gateway.mcp.callers import Caller
from gateway.mcp.calling import LONGEST_S, Toolbox

log = logging.getLogger("gateway.mcp")

CONNECT_S: Final = 10.0
OFFLINE: Final = "mcp:cli"


class Refused(Exception):
    """Why the gateway there does not speak MCP with us."""


async def here(toolbox: Toolbox, scopes: frozenset[str]) -> None:
    """Serve the tools of this process, until standard input ends."""
    who = Caller(OFFLINE, scopes)
    await _serve(sdk.server(toolbox, lambda context: who))


async def there(url: str, key: str) -> None:
    """Pass everything on to the gateway at this address. Raises Refused where it cannot be begun."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx2.Timeout(LONGEST_S + CONNECT_S, connect=CONNECT_S)
    async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http:
        await _welcome(http, url)
        async with Client(streamable_http_client(url + "/mcp", http_client=http), cache=None) as upstream:
            await _serve(passing(upstream, url))


async def _welcome(http: httpx2.AsyncClient, url: str) -> None:
    """Its own words, where it refuses us: the SDK would only say that it did."""
    ask = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    try:
        answer = await http.post(url + "/mcp", json=ask, headers={"Accept": "application/json, text/event-stream"})
    except httpx2.HTTPError as error:
        raise Refused(f"no gateway answers at {url}: {error or type(error).__name__}") from None
    if answer.status_code in (401, 403, 404, 503):
        try:
            said = str(answer.json()["error"]["message"])[:500]
        except (ValueError, KeyError, TypeError):
            said = "it speaks no MCP"
        raise Refused(f"{url} answered {answer.status_code}: {said}")


def passing(upstream: Client, url: str) -> Server[Any]:
    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        try:
            return await upstream.list_tools(cursor=params.cursor if params is not None else None)
        except (httpx2.HTTPError, OSError) as error:
            raise MCPError(types.INTERNAL_ERROR, f"The gateway at {url} does not answer: {type(error).__name__}.") from None

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await upstream.call_tool(params.name, dict(params.arguments or {}))
        except (httpx2.HTTPError, OSError) as error:
            words = f"The gateway at {url} does not answer: {type(error).__name__}."
            return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=True)

    return Server(sdk.NAME, version=gateway.__version__, instructions=sdk.ABOUT, on_list_tools=listed, on_call_tool=called)


async def _serve(made: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options())
