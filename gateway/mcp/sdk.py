"""How do the tools speak MCP? The official SDK's server, which knows protocol versions and transports; imported where MCP is used.

Nothing of ours depends on a version of the protocol: the SDK answers clients that begin with ``initialize`` and those that do not.
"""
import logging
from collections.abc import Callable
from typing import Any, Final

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

import gateway
from gateway.mcp.callers import Caller
from gateway.mcp.calling import Told, Toolbox, Unknown
from gateway.mcp.tool import Tool, schema

NAME: Final = "gateway"
ABOUT: Final = ("An LLM gateway: its providers, combos, routing, usage, budgets, cache, configuration and health. The tools listed "
                "are those that your key's scopes allow. simulate_route and get_health are good places to begin; tools that cost "
                "something say so.")
MAX_BODY_BYTES: Final = 1 << 20
MESSAGES: Final = "/mcp/messages"

# It writes bodies into the log where they are wrong; what goes wrong in a tool is logged by us.
logging.getLogger("mcp").setLevel(logging.ERROR)
logging.getLogger("mcp.server.sse").setLevel(logging.CRITICAL)

WhoAsks = Callable[[Any], Caller]


def server(toolbox: Toolbox, who: WhoAsks) -> Server[Any]:
    """``who``: the caller of a request, told by what its transport knows of it."""
    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(tool) for tool in toolbox.offered(who(context))])

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return result(await toolbox.call(params.name, params.arguments or {}, who(context)))
        except Unknown:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}.") from None

    return Server(NAME, version=gateway.__version__, instructions=ABOUT, on_list_tools=listed, on_call_tool=called,
                  get_tool_input_schema=lambda name: None)


def described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(title=tool.title, read_only_hint=tool.reads, destructive_hint=tool.destroys,
                                  idempotent_hint=tool.again, open_world_hint=any(s.startswith("execute:") for s in tool.scopes))
    return types.Tool(name=tool.name, title=tool.title, description=f"{tool.says} Scope: {', '.join(tool.scopes)}.",
                      input_schema=schema(tool.asks), annotations=hints)


def result(told: Told) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=told.text)], is_error=told.failed)


def streamable(made: Server[Any]) -> StreamableHTTPSessionManager:
    """Without sessions: every request stands for itself, on whichever worker or node it arrives."""
    return StreamableHTTPSessionManager(made, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES)


def sse() -> SseServerTransport:
    return SseServerTransport(MESSAGES, max_request_body_size=MAX_BODY_BYTES)


def user(caller: Caller) -> Any:
    """What binds an SSE session to the key that opened it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=caller.name, scopes=sorted(caller.scopes)))
